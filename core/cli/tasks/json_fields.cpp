#include "cli/tasks/json_fields.hpp"

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

/// Of a well-formed value.
std::string with_quoted_numbers(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '"') {
      for (; text[end] != '"'; ++end) end += text[end] == '\\' ? 1 : 0;
      out += text.substr(at, ++end - at);
    } else if (text[at] == '-' || (text[at] >= '0' && text[at] <= '9')) {
      end = std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
      out += '"' + std::string(text.substr(at, end - at)) + '"';
    } else {
      out += text[at];
    }
    at = end;
  }
  return out;
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

std::string with_numbers_as_texts(std::string_view line,
                                  const std::function<bool(std::string_view name)>& is_text) {
  boost::system::error_code error;
  const boost::json::value whole = boost::json::parse({line.data(), line.size()}, error);
  if (error || !whole.is_object()) return std::string(line);
  std::string_view rest = without_blanks(line);
  std::string out(1, '{');
  rest.remove_prefix(1);
  while (!without_blanks(rest).starts_with('}')) {
    std::size_t size = size_of_value(rest);
    const std::string name = plain_value(rest.substr(0, size));
    out += std::string(rest.substr(0, size)) + ":";
    rest.remove_prefix(size + 1);
    size = size_of_value(rest);
    const std::string_view value = rest.substr(0, size);
    out += is_text(name) ? with_quoted_numbers(value) : std::string(value);
    rest.remove_prefix(size);
    if (!rest.starts_with(',')) continue;
    out += ',';
    rest.remove_prefix(1);
  }
  return out + "}";
}

}  // namespace hpcbatch
