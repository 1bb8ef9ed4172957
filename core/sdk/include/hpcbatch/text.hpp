// What readers of other programs' texts have in common, and writers of texts for people.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hpcbatch {

/// The whole text as a number; nothing where it is none, or does not fit.
template <class Number, class... Base>
std::optional<Number> number_in(std::string_view text, Base... base) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base...);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

// Letters of ASCII; all others stay as they are, whatever the locale is.

constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr char upper_case(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
inline std::string lower_case(std::string text) {
  for (char& c : text) c = lower_case(c);
  return text;
}
inline std::string upper_case(std::string text) {
  for (char& c : text) c = upper_case(c);
  return text;
}

/// Without what blanks stand before and behind it.
inline std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n") {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

/// What stands between these letters, empty parts too; of an empty text nothing.  A letter at the
/// end begins no further part.
inline std::vector<std::string_view> parts_of(std::string_view text, char letter) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(letter), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}
/// Without their ends.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  return parts_of(text, '\n');
}

/// The texts that `of` makes of some things, with `between` between them.
template <class Things, class Of = std::identity>
std::string joined(const Things& things, std::string_view between, Of of = {}) {
  std::string all;
  bool is_first = true;
  for (const auto& one : things) {
    if (!is_first) all += between;
    all += std::invoke(of, one);
    is_first = false;
  }
  return all;
}

}  // namespace hpcbatch
