#include "cli/top/keys.hpp"

#include "documents/texts.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace hpcbatch::top {
namespace {

using Kind = Key::Kind;

/// The longest that a terminal sends for one key; what is longer is none.
constexpr std::size_t kLongest = 32;

struct Taken {
  std::size_t bytes{0};  ///< 0: more has to come
  std::optional<Key> key{};
};

struct NamedSequence {
  std::string_view bytes;  ///< behind ESC [ or ESC O
  Kind kind;
};
constexpr std::array kSequences = {
    NamedSequence{"A", Kind::Up},      NamedSequence{"B", Kind::Down},
    NamedSequence{"C", Kind::Right},   NamedSequence{"D", Kind::Left},
    NamedSequence{"H", Kind::Home},    NamedSequence{"F", Kind::End},
    NamedSequence{"1~", Kind::Home},   NamedSequence{"7~", Kind::Home},
    NamedSequence{"4~", Kind::End},    NamedSequence{"8~", Kind::End},
    NamedSequence{"5~", Kind::PageUp}, NamedSequence{"6~", Kind::PageDown},
    NamedSequence{"Z", Kind::BackTab}, NamedSequence{"M", Kind::Enter}};

/// `<BUTTON;COLUMN;ROW` and M for a press, m for a release (SGR 1006 of xterm).
std::optional<Key> mouse_key(std::string_view words) {
  const bool is_press = words.back() == 'M';
  std::array<std::size_t, 3> numbers{};
  const char* at = words.data() + 1;
  const char* const end = words.data() + words.size() - 1;
  for (std::size_t& number : numbers) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) return std::nullopt;
    at = next == end ? end : next + 1;
  }
  constexpr std::size_t kLeft = 0, kWheelUp = 64, kWheelDown = 65;
  if (!is_press || numbers[1] == 0 || numbers[2] == 0) return std::nullopt;
  if (numbers[0] == kWheelUp) return Key{.kind = Kind::WheelUp};
  if (numbers[0] == kWheelDown) return Key{.kind = Kind::WheelDown};
  if (numbers[0] != kLeft) return std::nullopt;
  return Key{.kind = Kind::Click, .row = numbers[2] - 1, .column = numbers[1] - 1};
}

/// Of bytes that begin with ESC.
Taken take_sequence(std::string_view bytes) {
  if (bytes.size() == 1) return {};
  // A key with Alt is the key behind an Escape.
  if (bytes[1] != '[' && bytes[1] != 'O') return {1, Key{.kind = Kind::Escape}};
  std::size_t end = 2;
  // A control sequence ends with a byte from @ to ~ (ECMA-48, 5.4).
  while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) ++end;
  if (end == bytes.size()) return {bytes.size() > kLongest ? bytes.size() : 0};
  const std::string_view words = bytes.substr(2, end - 1);
  if (words.size() > 1 && words[0] == '<') return {end + 1, mouse_key(words)};
  for (const NamedSequence& one : kSequences) {
    if (one.bytes == words) return {end + 1, Key{.kind = one.kind}};
  }
  return {end + 1};
}

std::optional<Key> control_key(char byte) {
  constexpr char kCtrlC = 3, kCtrlD = 4, kCtrlL = 12, kCtrlZ = 26, kDelete = 127;
  switch (byte) {
    case '\r':
    case '\n':
      return Key{.kind = Kind::Enter};
    case '\t':
      return Key{.kind = Kind::Tab};
    case '\b':
    case kDelete:
      return Key{.kind = Kind::Backspace};
    case kCtrlC:
    case kCtrlD:
      return Key{.kind = Kind::Interrupt};
    case kCtrlL:
      return Key{.kind = Kind::Redraw};
    case kCtrlZ:
      return Key{.kind = Kind::Suspend};
    default:
      return std::nullopt;
  }
}

Taken take_key(std::string_view bytes) {
  if (bytes[0] == '\x1b') return take_sequence(bytes);
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first < 0x20 || first == 0x7F) return {1, control_key(bytes[0])};
  if (first < 0x80) return {1, Key{.text = std::string(1, bytes[0])}};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (bytes.size() < length) return {};
  const std::string_view sign = bytes.substr(0, length);
  if (find_invalid_utf8(sign)) return {1};
  return {length, Key{.text = std::string(sign)}};
}

}  // namespace

std::vector<Key> KeyReader::read(std::string_view bytes) {
  bytes_ += bytes;
  std::vector<Key> keys;
  std::string_view left = bytes_;
  while (!left.empty()) {
    Taken taken = take_key(left);
    if (taken.bytes == 0) break;
    if (taken.key) keys.push_back(std::move(*taken.key));
    left.remove_prefix(taken.bytes);
  }
  bytes_ = std::string(left);
  return keys;
}

std::vector<Key> KeyReader::pause() {
  const bool is_escape = bytes_ == "\x1b";
  bytes_.clear();
  return is_escape ? std::vector<Key>{{.kind = Kind::Escape}} : std::vector<Key>{};
}

}  // namespace hpcbatch::top
