#include "dropbox/template_text.hpp"

#include "documents/text_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace hpcbatch {
namespace {

constexpr std::string_view kLettersOfNames =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

/// The name in `<<name>>` at the start of `text`; empty where there is none.
std::string_view name_at(std::string_view text) {
  if (!text.starts_with("<<")) return {};
  const std::string_view rest = text.substr(2);
  const auto end = std::min(rest.find_first_not_of(kLettersOfNames), rest.size());
  if (end == 0 || std::isdigit(static_cast<unsigned char>(rest.front()))) return {};
  return rest.substr(end).starts_with(">>") ? rest.substr(0, end) : std::string_view{};
}

bool is_number(std::string_view value) {
  return value.size() > 1 && std::all_of(value.begin() + 1, value.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) || c == '.';
         });
}

}  // namespace

bool is_safe_in_shell(std::string_view value) {
  const auto is_safe = [](char c) {
    return static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./:,=+@%-").find(c) != std::string_view::npos;
  };
  if (value.empty() || !std::all_of(value.begin(), value.end(), is_safe)) return false;
  return value.front() != '-' || is_number(value);
}

RenderedTemplate render_template(std::string_view text,
                                 const std::map<std::string, TemplateValue>& values) {
  RenderedTemplate rendered;
  std::string& result = rendered.text;
  while (!text.empty()) {
    const auto mark = text.find("<<");
    result += text.substr(0, mark);
    if (mark == std::string_view::npos) break;
    text.remove_prefix(mark);
    const std::string_view name = name_at(text);
    if (name.empty()) {
      // A here-document of the template's own, or a shift.
      result += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto value = values.find(std::string(name));
    if (value == values.end()) {
      rendered.unknown.emplace(name);
      result += text.substr(0, name.size() + 4);
      text.remove_prefix(name.size() + 4);
      continue;
    }
    if (!value->second.trusted && !is_safe_in_shell(value->second.text)) {
      throw std::invalid_argument(
          fmt::format("the value of '{}' may hold only letters, digits and _./:,=+@%- (no '-' "
                      "first), because it is "
                      "inserted into a shell script; it is '{}'",
                      name, show_text(value->second.text, 60)));
    }
    result += value->second.text;
    text.remove_prefix(name.size() + 4);
  }
  return rendered;
}

}  // namespace hpcbatch
