#include "cli/work/json_fields.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>

namespace hpcbatch {
namespace {

constexpr std::string_view kJsonBlanks = " \t\r\n";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kJsonBlanks), text.size());
  const std::size_t end = text.find_last_not_of(kJsonBlanks);
  return end == std::string_view::npos ? std::string_view{} : text.substr(begin, end + 1 - begin);
}

/// How long the value is that a text begins with; the text is known to be well formed.
std::size_t size_of_value(std::string_view text) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth-- == 0) return at;
    } else if ((c == ',' || c == ':') && depth == 0) {
      return at;
    }
  }
  return text.size();
}

std::string plain_value(std::string_view text) {
  text = without_blanks(text);
  if (text == "null") return "";
  if (!text.starts_with('"')) return std::string(text);
  return std::string(boost::json::parse({text.data(), text.size()}).as_string());
}

}  // namespace

std::optional<std::vector<std::pair<std::string, std::string>>> json_fields(std::string_view line) {
  boost::system::error_code error;
  const boost::json::value whole = boost::json::parse({line.data(), line.size()}, error);
  if (error || !whole.is_object()) return std::nullopt;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string_view rest = without_blanks(line);
  rest.remove_prefix(1);
  while (!without_blanks(rest).starts_with('}')) {
    std::size_t size = size_of_value(rest);
    std::string name = plain_value(rest.substr(0, size));
    rest.remove_prefix(size + 1);
    size = size_of_value(rest);
    fields.emplace_back(std::move(name), plain_value(rest.substr(0, size)));
    rest.remove_prefix(size);
    if (rest.starts_with(',')) rest.remove_prefix(1);
  }
  return fields;
}

}  // namespace hpcbatch
