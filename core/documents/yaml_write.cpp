// Writes a tree as block-style YAML, each entry on the line that it had, as far as there is room.
#include "documents/yaml.hpp"
#include "documents/yaml_scalars.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

class Writer {
 public:
  explicit Writer(std::string& text) : text_(text) {}

  void entry(const Node& node, int depth) {
    if (node.kind == Node::Kind::Map && !node.fields.empty()) {
      for (const Field& field : node.fields) {
        begin_line(field.line, depth);
        key(scalar(field.name, true), depth);
        value(field.value, depth);
      }
    } else if (node.kind == Node::Kind::List && !node.items.empty()) {
      for (const Node& item : node.items) {
        begin_line(item.line, depth);
        text_ += "-";
        value(item, depth);
      }
    } else {
      begin_line(node.line, depth);
      leaf(node);
    }
  }

 private:
  void key(const std::string& name, int depth) {
    if (name.size() <= entry::kLongestKey) {
      text_ += name + ":";
      return;
    }
    text_ += "? " + name;
    begin_line(0, depth);
    text_ += ":";
  }

  void begin_line(int wanted, int depth) {
    const int next = line_ == 0 ? 1 : line_ + 1;
    const int line = std::max(next, wanted);
    text_.append(static_cast<std::size_t>(line - std::max(line_, 1)), '\n');
    line_ = line;
    text_.append(static_cast<std::size_t>(depth) * 2, ' ');
  }

  void value(const Node& node, int depth) {
    const bool is_block = !node.fields.empty() || !node.items.empty();
    if (is_block) {
      entry(node, depth + 1);
    } else {
      text_ += " ";
      leaf(node);
    }
  }

  void leaf(const Node& node) {
    switch (node.kind) {
      case Node::Kind::Null:
        text_ += "~";
        break;
      case Node::Kind::List:
        text_ += "[]";
        break;
      case Node::Kind::Map:
        text_ += "{}";
        break;
      case Node::Kind::Scalar:
        text_ += scalar(node.text, node.quoted);
        break;
    }
  }

  /// What was written plain stays plain, so that `8` stays a number for whoever reads it.
  static std::string scalar(const std::string& value, bool quoted) {
    // At the beginning of a document these mean something else.
    const bool is_mark =
        value.starts_with("\xEF\xBB\xBF") || value.starts_with("---") || value.starts_with("...");
    const bool is_plain = !quoted && !is_mark && !value.empty() &&
                          value.find('\n') == std::string::npos &&
                          !entry::begins_as_indicator(value);
    if (is_plain) return value;
    return entry::quoted(value);
  }

  std::string& text_;
  int line_{0};
};

}  // namespace

std::string to_yaml(const Node& node) {
  std::string text;
  Writer(text).entry(node, 0);
  return text + "\n";
}

}  // namespace hpcbatch
