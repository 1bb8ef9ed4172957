#include "documents/text_check.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace hpcbatch {
namespace {

/// Length of the valid UTF-8 sequence at the start of `text`; 0 where there is none.
std::size_t valid_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;   // overlong
    if (first == 0xED) high = 0x9F;  // surrogates
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;   // overlong
    if (first == 0xF4) high = 0x8F;  // beyond U+10FFFF
  } else {
    return 0;
  }
  if (text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

/// Most texts are ASCII, and long ones (answers, lists) are looked through as a whole.
bool is_ascii_word(std::string_view text, std::size_t at) {
  std::uint64_t word = 0;
  if (text.size() - at < sizeof word) return false;
  std::memcpy(&word, text.data() + at, sizeof word);
  return (word & 0x8080808080808080U) == 0;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n') || byte == 0x7F;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (is_ascii_word(text, at)) {
      at += sizeof(std::uint64_t);
      continue;
    }
    const std::size_t length = valid_sequence(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string valid_utf8(std::string text) {
  auto bad = find_invalid_utf8(text);
  if (!bad) return text;
  std::string result;
  std::string_view left = text;
  for (; bad; bad = find_invalid_utf8(left)) {
    result.append(left.substr(0, *bad)).append("\xEF\xBF\xBD");
    left.remove_prefix(*bad + 1);
  }
  return result.append(left);
}

std::optional<std::size_t> find_control_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_control(text[at])) return at;
  }
  return std::nullopt;
}

std::string make_printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = valid_sequence(text.substr(at));
    if (length == 0) {
      result += "\xEF\xBF\xBD";
      ++at;
    } else if (length == 1 && is_control(text[at])) {
      const auto byte = static_cast<unsigned char>(text[at]);
      result += "\xE2\x90";
      result += static_cast<char>(byte == 0x7F ? 0xA1 : 0x80 + byte);
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

std::string show_text(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (at >= most) return result + "...";
    const std::size_t length = valid_sequence(text.substr(at));
    if (length == 0 || (length == 1 && (is_control(text[at]) || text[at] == '\n'))) {
      result += text[at] == '\n'
                    ? "\\n"
                    : fmt::format("\\x{:02x}",
                                  static_cast<unsigned>(static_cast<unsigned char>(text[at])));
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

}  // namespace hpcbatch
