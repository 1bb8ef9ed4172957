#include "records/kind.hpp"

#include <algorithm>

namespace hpcbatch::records {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// `sample17.bam` -> `sample#.bam`; `bwa2` and `x86_64`, short ones that end a word, stay.
std::string without_numbers(std::string_view name) {
  std::string kind;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end == at) {
      kind += name[at++];
      continue;
    }
    const bool is_in_word = at > 0 && is_letter(name[at - 1]);
    const bool ends_word = end == name.size() || name[end] == '_' || name[end] == ' ';
    const bool is_part_of_name = is_in_word && ends_word && end - at <= 2;
    kind += is_part_of_name ? name.substr(at, end - at) : "#";
    at = end;
  }
  return kind;
}

std::string on_a_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  if (text.size() <= kLongestKind) return text;
  // Not within a letter of several bytes.
  std::size_t end = kLongestKind;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

std::string kind_of(const KindHints& hints) {
  if (!hints.said.empty()) return on_a_line(std::string(hints.said));
  if (!hints.tool.empty()) return on_a_line(std::string(hints.tool));
  if (!hints.name.empty()) return on_a_line(without_numbers(hints.name));
  const std::size_t slash = hints.program.rfind('/');
  const std::string_view last =
      slash == std::string_view::npos ? hints.program : hints.program.substr(slash + 1);
  return last.empty() ? std::string(kOtherKinds) : on_a_line(without_numbers(last));
}

}  // namespace hpcbatch::records
