#include "documents/texts.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>

#include <locale.h>
#include <wchar.h>

namespace hpcbatch {
namespace {

/// How many letters must be put in, taken out, replaced or swapped with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::vector<std::size_t> next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower_case(a[i - 1]) == lower_case(b[j - 1]);
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row.back();
}

/// `oom` is one of `oom_task`.
bool is_part_of(std::string_view word, std::string_view whole) {
  const auto is_between = [](char c) { return c == '_' || c == '-' || c == '.' || c == '/'; };
  for (std::size_t at = whole.find(word); at != std::string_view::npos;
       at = whole.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || is_between(whole[at - 1])) && (end == whole.size() || is_between(whole[end])))
      return true;
  }
  return false;
}

/// Without the dashes of an option.
std::size_t letters_of(std::string_view word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == std::string_view::npos ? 0 : word.size() - first;
}

// Of less nobody can tell what it is the beginning of.
constexpr std::size_t kShortestPart = 3;

std::string shortest_that_begins_with(std::string_view word,
                                      const std::vector<std::string>& known) {
  std::string found;
  for (const std::string& candidate : known) {
    if (letters_of(word) < kShortestPart || !candidate.starts_with(word)) continue;
    if (found.empty() || candidate.size() < found.size()) found = candidate;
  }
  return found;
}

/// The only one of which the word is a part; else empty.
std::string the_only_with(std::string_view word, const std::vector<std::string>& known) {
  std::string found;
  for (const std::string& candidate : known) {
    if (letters_of(word) < kShortestPart || !is_part_of(word, candidate)) continue;
    if (!found.empty()) return "";
    found = candidate;
  }
  return found;
}

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

char32_t code_point_of(std::string_view sequence) {
  static constexpr unsigned kFirstBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t point = static_cast<unsigned char>(sequence[0]) & kFirstBits[sequence.size()];
  for (const char c : sequence.substr(1))
    point = point << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  return point;
}

/// No sign that is seen: the second set of control characters, which some terminals obey, what
/// changes the direction or the form of what follows, and what takes no room.
bool is_unseen(char32_t point) {
  struct Range {
    char32_t first, last;
  };
  static constexpr Range kUnseen[] = {
      {0x80, 0x9F},       {0xAD, 0xAD},      {0x34F, 0x34F},   {0x61C, 0x61C},   {0x115F, 0x1160},
      {0x17B4, 0x17B5},   {0x180B, 0x180F},  {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
      {0x3164, 0x3164},   {0xFEFF, 0xFEFF},  {0xFFA0, 0xFFA0}, {0xFFF9, 0xFFFB}, {0x1BCA0, 0x1BCA3},
      {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};
  return std::any_of(std::begin(kUnseen), std::end(kUnseen), [point](const Range& range) {
    return point >= range.first && point <= range.last;
  });
}

/// As wcwidth(3) has it, whatever the user's locale is.
int columns_of(char32_t point) {
  static const locale_t kUtf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (kUtf8 == nullptr) return 1;
  const locale_t before = ::uselocale(kUtf8);
  const int columns = ::wcwidth(static_cast<wchar_t>(point));
  ::uselocale(before);
  return columns;
}

/// The first sign of a text as people see it; returns its length.
std::size_t append_shown(std::string& out, std::string_view text, std::string_view line_end) {
  const std::size_t length = valid_sequence(text);
  const std::string_view sign = text.substr(0, length);
  if (length == 0 || (length == 1 && is_control(text[0]))) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    return 1;
  }
  if (sign == "\n") {
    out += line_end;
  } else if (const char32_t point = code_point_of(sign); length > 1 && is_unseen(point)) {
    out += point > 0xFFFF ? fmt::format("\\U{:08x}", static_cast<std::uint32_t>(point))
                          : fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point));
  } else {
    out += sign;
  }
  return length;
}

}  // namespace

std::string nearest_spelling(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > 64) return "";
  std::string whole = shortest_that_begins_with(word, known);
  if (!whole.empty()) return whole;
  std::string best;
  // One letter in three may be wrong.
  std::size_t least = std::max<std::size_t>(1, (letters_of(word) + 1) / 3);
  for (const std::string& candidate : known) {
    const std::size_t far = distance(word, candidate);
    if (far < least || (best.empty() && far == least)) {
      best = candidate;
      least = far;
    }
  }
  return best.empty() ? the_only_with(word, known) : best;
}

std::string spelling_hint(std::string_view word, const std::vector<std::string>& known) {
  if (const std::string near = nearest_spelling(word, known); !near.empty()) {
    return fmt::format("; did you mean '{}'?", near);
  }
  if (known.empty()) return "";
  return fmt::format("; known are {}", fmt::join(known, ", "));
}

std::string meant_elsewhere(std::span<const NamedElsewhere> names, std::string_view word,
                            const std::function<bool(std::string_view)>& may_be) {
  const std::string wanted = fmt::format(" {} ", word);
  if (word.empty() || word.find(' ') != std::string_view::npos) return "";
  for (const NamedElsewhere& name : names) {
    if (fmt::format(" {} ", name.theirs).find(wanted) != std::string::npos && may_be(name.ours))
      return std::string(name.ours);
  }
  return "";
}

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
    at += append_shown(result, text.substr(at), "\\n");
  }
  return result;
}

std::string show_lines(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) at += append_shown(result, text.substr(at), "\n");
  return result;
}

Letter first_letter(std::string_view text) {
  const std::size_t length = valid_sequence(text);
  if (length <= 1) return {};
  const int columns = columns_of(code_point_of(text.substr(0, length)));
  // Terminals give a letter that they do not know one.
  return {length, columns < 0 ? 1 : static_cast<std::size_t>(columns)};
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Letter letter = first_letter(text.substr(at));
    width += letter.columns;
    at += letter.bytes;
  }
  return width;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t used,
                    std::size_t indent) {
  std::string out;
  std::size_t column = used;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find(' '), text.size());
    const std::size_t shown = width_of(text.substr(0, size));
    if (column > indent && column + shown > width) {
      while (out.ends_with(' ')) out.pop_back();
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += text.substr(0, size);
    column += shown;
    text.remove_prefix(size);
    const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    if (blanks == 0) continue;
    if (column < width) {
      out += ' ';
      ++column;
    }
    text.remove_prefix(blanks);
  }
  return out;
}

}  // namespace hpcbatch
