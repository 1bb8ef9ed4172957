#include "tools/placeholders.hpp"

#include "programs/program_words.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <stdexcept>

namespace hpcbatch {
namespace {

/// Calls `literal` with pieces of plain text and `name` with each name in braces and its form, in
/// their order.
template <class Literal, class Name>
void walk(std::string_view text, Literal literal, Name name) {
  while (!text.empty()) {
    const auto brace = text.find_first_of("{}");
    literal(text.substr(0, brace));
    if (brace == std::string_view::npos) return;
    text.remove_prefix(brace);
    if (text.starts_with("{{") || text.starts_with("}}")) {
      literal(text.substr(0, 1));
      text.remove_prefix(2);
      continue;
    }
    const auto end = text.find('}');
    if (text.front() == '}' || end == std::string_view::npos) {
      throw std::invalid_argument("a brace has no partner; write {{ or }} for the brace itself");
    }
    std::string_view inner = text.substr(1, end - 1);
    const char form = take_form(inner);
    name(inner, form);
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<std::string> find_placeholders(std::string_view text) {
  std::vector<std::string> names;
  walk(
      text, [](std::string_view) {},
      [&](std::string_view name, char) { names.emplace_back(name); });
  return names;
}

std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values) {
  std::string result;
  walk(
      text, [&](std::string_view literal) { result += literal; },
      [&](std::string_view name, char form) {
        const std::string& value = values.at(std::string(name));
        result += form == kQuotedPlace ? shell_quoted(value) : value;
      });
  return result;
}

std::string mark_placeholders(std::string_view text,
                              const std::function<bool(const std::string& name)>& is_one) {
  std::string result;
  walk(
      text, [&](std::string_view literal) { result += without_marks(literal); },
      [&](std::string_view name, char form) {
        result += is_one(std::string(name)) ? std::string(1, form) : "1";
      });
  return result;
}

}  // namespace hpcbatch
