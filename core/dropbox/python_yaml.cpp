#include "dropbox/python_yaml.hpp"

#include "documents/text_check.hpp"
#include "documents/yaml_scalars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace hpcbatch {
namespace {

/// Words that YAML 1.1 takes for something else than a text.
constexpr std::array<std::string_view, 10> kReserved{"y",   "n",    "yes",   "no",   "on",
                                                     "off", "true", "false", "null", "~"};

bool is_reserved(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kReserved.begin(), kReserved.end(), lower) != kReserved.end();
}

bool is_plain(std::string_view text) {
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./ -").find(c) != std::string_view::npos;
  };
  return !text.empty() &&
         (std::isalpha(static_cast<unsigned char>(text.front())) || text.front() == '_' ||
          text.front() == '/') &&
         text.back() != ' ' && std::all_of(text.begin(), text.end(), is_fine) && !is_reserved(text);
}

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

/// PyYAML refuses to read C1 controls and U+FFFE, U+FFFF where they stand as they are, and takes
/// U+0085, U+2028, U+2029 for line ends.
bool must_be_escaped(unsigned code_point) {
  return (code_point >= 0x80 && code_point < 0xA0) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0xFEFF || code_point == 0xFFFE ||
         code_point == 0xFFFF;
}

std::string double_quoted(std::string_view text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) {
      return static_cast<unsigned>(static_cast<unsigned char>(text[at + i]));
    };
    const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
    unsigned code_point = byte(0);
    if (length == 2) code_point = (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU);
    if (length == 3)
      code_point = (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
    if (length == 1) {
      switch (text[at]) {
        case '"':
          result += "\\\"";
          break;
        case '\\':
          result += "\\\\";
          break;
        case '\n':
          result += "\\n";
          break;
        case '\t':
          result += "\\t";
          break;
        default:
          result += text[at];
      }
    } else if (length < 4 && must_be_escaped(code_point)) {
      result += fmt::format("\\u{:04x}", code_point);
    } else {
      result += text.substr(at, length);
    }
    at += length;
  }
  return result + "\"";
}

std::string scalar(const Node& node) {
  // What the client wrote without quotes keeps its meaning only without quotes.
  if (!node.quoted && !node.text.empty() && node.text.find('\n') == std::string::npos &&
      !entry::begins_as_indicator(node.text))
    return node.text;
  if (is_plain(node.text)) return node.text;
  return is_printable_ascii(node.text) ? single_quoted(node.text) : double_quoted(node.text);
}

void write(const Node& node, std::size_t indent, bool begins_line, std::string& text);

void write_fields(const Node& node, std::size_t indent, std::string& text) {
  std::vector<const Field*> fields;
  for (const Field& field : node.fields) fields.push_back(&field);
  std::sort(fields.begin(), fields.end(),
            [](const Field* a, const Field* b) { return a->name < b->name; });
  bool is_first = true;
  for (const Field* field : fields) {
    if (!is_first) text.append(indent, ' ');
    is_first = false;
    const std::string name = scalar(text_node(field->name));
    if (name.size() > entry::kLongestKey)
      text += "? " + name + "\n" + std::string(indent, ' ') + ":";
    else
      text += name + ":";
    write(field->value, indent, false, text);
  }
}

void write(const Node& node, std::size_t indent, bool begins_line, std::string& text) {
  const auto leaf = [&](std::string_view value) {
    if (!begins_line) text += " ";
    text += value;
    text += "\n";
  };
  switch (node.kind) {
    case Node::Kind::Null:
      return leaf("null");
    case Node::Kind::Scalar:
      return leaf(scalar(node));
    case Node::Kind::Map:
      if (node.fields.empty()) return leaf("{}");
      if (!begins_line) {
        indent += 2;
        text += "\n" + std::string(indent, ' ');
      }
      return write_fields(node, indent, text);
    case Node::Kind::List:
      if (node.items.empty()) return leaf("[]");
      if (!begins_line) text += "\n" + std::string(indent, ' ');
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        if (i > 0) text.append(indent, ' ');
        text += "- ";
        write(node.items[i], indent + 2, true, text);
      }
  }
}

}  // namespace

std::string python_yaml(const Node& node) {
  std::string text;
  write(node, 0, true, text);
  return text;
}

Node text_node(std::string_view text) {
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = make_printable(text);
  node.quoted = true;
  return node;
}

Node integer_node(std::int64_t value) {
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = std::to_string(value);
  return node;
}

}  // namespace hpcbatch
