#include "records/kind.hpp"

#include <algorithm>

namespace hpcbatch::records {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// `sample17.bam` -> `sample#.bam`.
std::string without_numbers(std::string_view name) {
  std::string kind;
  for (const char c : name) {
    if (!is_digit(c))
      kind += c;
    else if (kind.empty() || kind.back() != '#')
      kind += '#';
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
  return last.empty() ? std::string(kOtherKinds) : on_a_line(std::string(last));
}

}  // namespace hpcbatch::records
