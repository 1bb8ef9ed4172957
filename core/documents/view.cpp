#include "documents/view.hpp"

#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

namespace hpcbatch {
namespace {

constexpr std::size_t kLongestTag = 200;

std::string what_is_there(const Node& node) {
  switch (node.kind) {
    case Node::Kind::Null:
      return "empty";
    case Node::Kind::Scalar:
      return fmt::format("'{}'", show_text(node.text, 40));
    case Node::Kind::List:
      return "a list";
    case Node::Kind::Map:
      return "a map";
  }
  return "";
}

}  // namespace

void View::fail(const std::string& message) const {
  throw DocumentError(*file_, node_->line, message);
}

void View::expected(std::string_view what) const {
  fail(fmt::format("'{}' must be {}, not {}", name_, what, what_is_there(*node_)));
}

std::string View::text() const {
  if (node_->kind != Node::Kind::Scalar) expected("a text");
  return node_->text;
}

std::string View::non_empty_text() const {
  if (node_->kind != Node::Kind::Scalar || node_->text.empty())
    expected("a text that is not empty");
  return node_->text;
}

bool is_word(std::string_view text) {
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= 64 &&
         std::isalnum(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), is_fine);
}

std::string View::word() const {
  if (node_->kind != Node::Kind::Scalar || !is_word(node_->text)) {
    expected("a name of at most 64 letters, digits, '_', '.', '-', a letter or digit first");
  }
  return node_->text;
}

std::string View::tag() const {
  const auto equals = node_->text.find('=');
  const auto is_plain = [](unsigned char c) { return c > ' ' && c != 127 && c != '+'; };
  const bool is_tag =
      node_->kind == Node::Kind::Scalar &&
      (is_word(node_->text) ||
       (equals != std::string::npos && is_word(std::string_view(node_->text).substr(0, equals)) &&
        equals + 1 < node_->text.size() && node_->text.size() <= kLongestTag &&
        std::all_of(node_->text.begin(), node_->text.end(), is_plain)));
  if (!is_tag) expected("a tag: a name, or KEY=VALUE without blanks and '+'");
  return node_->text;
}

std::string View::absolute_path() const {
  if (node_->kind != Node::Kind::Scalar || !node_->text.starts_with('/')) {
    expected("an absolute path (beginning with '/')");
  }
  return node_->text;
}

bool View::boolean() const {
  const std::string& word = node_->text;
  if (node_->kind == Node::Kind::Scalar) {
    if (word == "true" || word == "yes") return true;
    if (word == "false" || word == "no") return false;
  }
  expected("true or false");
}

std::int64_t View::integer(std::int64_t least, std::int64_t most) const {
  const auto value = number_in<std::int64_t>(node_->text);
  if (node_->kind != Node::Kind::Scalar || !value || *value < least || *value > most) {
    expected(most == INT64_MAX ? fmt::format("a whole number of at least {}", least)
                               : fmt::format("a whole number from {} to {}", least, most));
  }
  return *value;
}

double View::number(double least, double most) const {
  const auto value = number_in<double>(node_->text);
  if (node_->kind != Node::Kind::Scalar || !value || !(*value >= least && *value <= most)) {
    constexpr double kAny = std::numeric_limits<double>::max();
    expected(least <= -kAny && most >= kAny ? std::string("a number")
             : most >= kAny                 ? fmt::format("a number of at least {:g}", least)
                            : fmt::format("a number from {:g} to {:g}", least, most));
  }
  return *value;
}

Duration View::duration() const {
  const auto value = node_->kind == Node::Kind::Scalar ? parse_duration(node_->text) : std::nullopt;
  if (!value) expected("a duration such as 90s, 1h30m, 2d or HH:MM:SS");
  return *value;
}

std::uint64_t View::size() const {
  const auto value = node_->kind == Node::Kind::Scalar ? parse_size(node_->text) : std::nullopt;
  if (!value) expected("a size such as 512M or 8G");
  return *value;
}

std::string View::one_of(const std::vector<std::string>& choices) const {
  const bool is_scalar = node_->kind == Node::Kind::Scalar;
  if (!is_scalar || std::find(choices.begin(), choices.end(), node_->text) == choices.end()) {
    const std::string near = is_scalar ? nearest_spelling(node_->text, choices) : "";
    fail(fmt::format("'{}' must be one of {}, not {}{}", name_, fmt::join(choices, ", "),
                     what_is_there(*node_), near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  return node_->text;
}

std::vector<View> View::list() const {
  if (node_->kind != Node::Kind::List) expected("a list");
  std::vector<View> views;
  views.reserve(node_->items.size());
  for (const Node& item : node_->items) {
    views.emplace_back(item, *file_, fmt::format("{}[{}]", name_, views.size()));
  }
  return views;
}

std::vector<std::string> View::texts() const {
  std::vector<std::string> texts;
  for (const View& item : list()) texts.push_back(item.text());
  return texts;
}

std::map<std::string, std::string> View::text_map() const {
  std::map<std::string, std::string> texts;
  for (const View& entry : map().entries()) texts.emplace(entry.name(), entry.text());
  return texts;
}

MapView View::map() const {
  return MapView(*this);
}

MapView::MapView(const View& view) : view_(view) {
  if (view.node().kind != Node::Kind::Map) view.expected("a map (key: value)");
}

std::optional<View> MapView::find(const std::string& name) {
  asked_.push_back(name);
  const Node* const node = view_.node().find(name);
  if (!node || node->kind == Node::Kind::Null) return std::nullopt;
  return View(*node, view_.file(), name);
}

View MapView::get(const std::string& name) {
  const auto found = find(name);
  if (!found) {
    refuse_misspelt(name);
    const bool is_empty = view_.node().find(name) != nullptr;
    view_.fail(is_empty ? fmt::format("'{}' of {} must not be empty", name, view_.name())
                        : fmt::format("'{}' is missing in {}", name, view_.name()));
  }
  return *found;
}

/// Where a key stands there that is nearly this one.
void MapView::refuse_misspelt(const std::string& name) const {
  constexpr std::size_t kShort = 4;
  if (name.size() < kShort) return;
  for (const Field& field : view_.node().fields) {
    if (std::find(asked_.begin(), asked_.end(), field.name) != asked_.end()) continue;
    // Another key that is asked for later, as output_map beside input_map, begins otherwise.
    const bool is_near = !field.name.empty() && field.name.front() == name.front();
    if (!is_near || nearest_spelling(field.name, {name}).empty()) continue;
    throw DocumentError(view_.file(), field.line,
                        fmt::format("unknown key '{}' in {}; did you mean '{}'?",
                                    show_text(field.name), view_.name(), name));
  }
}

void MapView::finish() const {
  for (const Field& field : view_.node().fields) {
    if (std::find(asked_.begin(), asked_.end(), field.name) != asked_.end()) continue;
    throw DocumentError(view_.file(), field.line,
                        fmt::format("unknown key '{}' in {}{}", show_text(field.name), view_.name(),
                                    spelling_hint(field.name, asked_)));
  }
}

std::vector<View> MapView::entries() const {
  std::vector<View> views;
  for (const Field& field : view_.node().fields) {
    views.emplace_back(field.value, view_.file(), field.name);
  }
  return views;
}

}  // namespace hpcbatch
