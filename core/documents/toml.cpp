#define TOML_ENABLE_FORMATTERS 0
#include "documents/yaml.hpp"

#include "documents/texts.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <vector>

namespace hpcbatch {
namespace {

bool is_before(const toml::source_position& one, const toml::source_position& other) {
  return one.line != other.line ? one.line < other.line : one.column < other.column;
}

/// The letters of the document by line and column, which counts code points.
class Source {
 public:
  explicit Source(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '\n') begins_.push_back(at + 1);
    }
  }
  std::string between(const toml::source_position& begin, const toml::source_position& end) const {
    const std::size_t from = offset(begin);
    std::string letters(text_.substr(from, offset(end) - from));
    letters.resize(letters.find_last_not_of(" \t\r\n") + 1);
    return letters;
  }

 private:
  std::size_t offset(const toml::source_position& position) const {
    if (position.line == 0 || position.line > begins_.size()) return text_.size();
    // Values come in their order: of a long line each letter is looked at once.
    if (position.line != last_.line || position.column < last_.column)
      last_ = {position.line, 1, begins_[position.line - 1]};
    for (; last_.column < position.column && last_.at < text_.size(); ++last_.column) {
      ++last_.at;
      while (last_.at < text_.size() &&
             (static_cast<unsigned char>(text_[last_.at]) & 0xC0U) == 0x80U)
        ++last_.at;
    }
    return last_.at;
  }

  struct Found {
    std::uint32_t line{0}, column{1};
    std::size_t at{0};
  };
  mutable Found last_;
  std::string_view text_;
  std::vector<std::size_t> begins_{0};
};

class TomlTree {
 public:
  TomlTree(std::string_view text, const std::string& file, const DocumentLimits& limits)
      : source_(text), file_(file), limits_(limits) {}

  Node map(const toml::table& table, int depth) {
    Node node = begin(Node::Kind::Map, table, depth);
    std::vector<std::pair<const toml::key*, const toml::node*>> fields;
    for (auto&& [key, value] : table) fields.emplace_back(&key, &value);
    // Theirs are sorted by name.
    std::sort(fields.begin(), fields.end(), [](const auto& one, const auto& other) {
      return is_before(one.first->source().begin, other.first->source().begin);
    });
    for (const auto& [key, value] : fields) {
      node.fields.push_back({std::string(key->str()), static_cast<int>(key->source().begin.line),
                             of(*value, depth + 1)});
    }
    return node;
  }

 private:
  Node begin(Node::Kind kind, const toml::node& from, int depth) {
    const int line = static_cast<int>(std::max(from.source().begin.line, 1U));
    if (++nodes_ > limits_.nodes)
      throw DocumentError(file_, line,
                          fmt::format("the file has more than {} values", limits_.nodes));
    if (depth > limits_.depth)
      throw DocumentError(file_, line, fmt::format("more than {} levels", limits_.depth));
    return {.kind = kind, .line = line};
  }

  Node of(const toml::node& value, int depth) {
    if (const toml::table* table = value.as_table()) return map(*table, depth);
    if (const toml::array* array = value.as_array()) {
      Node node = begin(Node::Kind::List, value, depth);
      node.items.reserve(array->size());
      for (const toml::node& item : *array) node.items.push_back(of(item, depth + 1));
      return node;
    }
    Node node = begin(Node::Kind::Scalar, value, depth);
    if (const auto* text = value.as_string()) {
      node.text = text->get();
      node.quoted = true;
      if (node.text.find('\0') != std::string::npos)
        throw DocumentError(file_, node.line, "a text holds a control byte");
    } else if (const auto* whole = value.as_integer()) {
      node.text = std::to_string(whole->get());
    } else if (const auto* is_true = value.as_boolean()) {
      node.text = is_true->get() ? "true" : "false";
    } else {
      node.text = source_.between(value.source().begin, value.source().end);
      if (value.is_floating_point()) std::erase(node.text, '_');
    }
    return node;
  }

  Source source_;
  const std::string& file_;
  const DocumentLimits& limits_;
  std::size_t nodes_{0};
};

/// Where a text in quotes ends that begins at `at`.
std::size_t end_of_quotes(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool is_long = text.substr(at).starts_with(std::string(3, quote));
  const std::string_view end = text.substr(at, is_long ? 3 : 1);
  for (at += end.size(); at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"')
      ++at;
    else if (text.substr(at).starts_with(end))
      return at + end.size();
    else if (!is_long && text[at] == '\n')
      return at;
  }
  return text.size();
}

/// Each dot of a key is a level, and the library builds (and takes down) them all by recursion, with
/// no bound but the stack's end: they are counted before.
void check_dots(std::string_view text, const std::string& file, int most) {
  int dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_quotes(text, at);
      continue;
    }
    if (c == '#') at = std::min(text.find('\n', at), text.size() - 1);
    if (std::string_view("=,[]{}\n#").find(c) != std::string_view::npos) dots = 0;
    if (c == '.' && ++dots > most) {
      throw DocumentError(
          file,
          1 + static_cast<int>(
                  std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')),
          fmt::format("more than {} levels", most));
    }
    ++at;
  }
}

}  // namespace

Node parse_toml(std::string_view text, const std::string& file, const DocumentLimits& limits) {
  if (text.size() > limits.bytes)
    throw DocumentError(file, 1, fmt::format("the file is larger than {} bytes", limits.bytes));
  // Columns are counted without a byte order mark.
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  check_dots(text, file, limits.depth);
  try {
    return TomlTree(text, file, limits).map(toml::parse(text, file), 0);
  } catch (const toml::parse_error& error) {
    throw DocumentError(
        file, static_cast<int>(error.source().begin.line),
        fmt::format("this is not valid TOML: {}", show_text(error.description(), 200)));
  }
}

}  // namespace hpcbatch
