#include "pilot/policy/json_text.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace hpcbatch::pilot {
namespace {

constexpr unsigned kDeepest = 32;
constexpr unsigned kLargestOneByte = 0x7f;

struct JsonReader {
  std::string_view rest;
  bool failed{false};

  void skip_blanks() {
    const std::size_t begin = rest.find_first_not_of(" \t\r\n");
    rest.remove_prefix(begin == std::string_view::npos ? rest.size() : begin);
  }
  bool takes(char wanted) {
    skip_blanks();
    if (rest.empty() || rest.front() != wanted) return false;
    rest.remove_prefix(1);
    return true;
  }
  JsonText fail() {
    failed = true;
    rest = {};
    return {};
  }

  char escaped() {
    const char letter = rest.front();
    rest.remove_prefix(1);
    switch (letter) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'u':
        break;
      default:
        return letter;
    }
    constexpr std::size_t kDigits = 4;
    if (rest.size() < kDigits) {
      fail();
      return 0;
    }
    const auto code = static_cast<unsigned>(
        std::strtoul(std::string(rest.substr(0, kDigits)).c_str(), nullptr, 16));
    rest.remove_prefix(kDigits);
    // What is more stands in no path, digest or variable that is used.
    return code <= kLargestOneByte ? static_cast<char>(code) : '?';
  }

  std::string text() {
    std::string text;
    while (!rest.empty() && rest.front() != '"') {
      const char letter = rest.front();
      rest.remove_prefix(1);
      if (letter != '\\') {
        text += letter;
      } else if (!rest.empty()) {
        text += escaped();
      }
    }
    if (rest.empty()) {
      fail();
    } else {
      rest.remove_prefix(1);
    }
    return text;
  }

  JsonText list(unsigned depth) {
    JsonText value;
    if (takes(']')) return value;
    do {
      value.list.push_back(read(depth));
    } while (!failed && takes(','));
    return takes(']') ? value : fail();
  }

  JsonText object(unsigned depth) {
    JsonText value;
    if (takes('}')) return value;
    do {
      if (!takes('"')) return fail();
      std::string name = text();
      if (!takes(':')) return fail();
      value.fields[std::move(name)] = read(depth);
    } while (!failed && takes(','));
    return takes('}') ? value : fail();
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  JsonText read(unsigned depth) {
    if (depth == 0) return fail();
    if (takes('{')) return object(depth - 1);
    if (takes('[')) return list(depth - 1);
    JsonText value;
    if (takes('"')) {
      value.text = text();
      return value;
    }
    const std::size_t end = std::min(rest.find_first_of(",]} \t\r\n"), rest.size());
    if (end == 0) return fail();
    value.text = rest.substr(0, end);
    rest.remove_prefix(end);
    return value;
  }
};

}  // namespace

const JsonText& JsonText::at(const std::string& name) const {
  static const JsonText nothing;
  const auto field = fields.find(name);
  return field == fields.end() ? nothing : field->second;
}

std::optional<JsonText> read_json(std::string_view text) {
  JsonReader reader{text};
  JsonText value = reader.read(kDeepest);
  reader.skip_blanks();
  if (reader.failed || !reader.rest.empty()) return std::nullopt;
  return value;
}

}  // namespace hpcbatch::pilot
