#include "documents/yaml.hpp"

#include "documents/texts.hpp"
#include "posix/files.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/node/node.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>
#include <unordered_set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {

// Builds our tree from yaml-cpp's events and stops at the first event that a strict document cannot
// have.  No node of yaml-cpp is ever made: its own loader expands aliases and keeps duplicate keys
// silently (0.7.0).

namespace {

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, const DocumentLimits& limits)
      : file_(file), limits_(limits) {}

  Node take() { return std::move(root_); }
  bool saw_document() const { return saw_document_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (saw_document_) fail(mark, "a second document begins here; the file must hold one");
    saw_document_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    if (expects_key()) fail(mark, "a key is empty; a key must be a text");
    add(mark, Node{.line = mark.line + 1});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "an alias (*name) is not allowed; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    if (value.find('\0') != std::string::npos || find_control_byte(value)) {
      fail(mark, fmt::format("'{}' holds a control byte", show_text(value, 40)));
    }
    // Of some escapes (\_, \N) yaml-cpp makes one byte.
    if (find_invalid_utf8(value)) {
      fail(mark, fmt::format("'{}' is not valid UTF-8", show_text(value, 40)));
    }
    const bool quoted = tag == "!";
    if (expects_key()) {
      take_key(mark, value, quoted);
    } else {
      add(mark,
          Node{.kind = Node::Kind::Scalar, .text = value, .quoted = quoted, .line = mark.line + 1});
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::List);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::Map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node* node;  // owned by the tree; its parent does not grow while it is open
    bool has_key{false};
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw DocumentError(file_, mark.line + 1, message);
  }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) fail(mark, "an anchor (&name) is not allowed; write the value out");
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark, fmt::format("a tag ({}) is not allowed", show_text(tag)));
    }
    if (++nodes_ > limits_.nodes) {
      fail(mark, fmt::format("the document has more than {} values", limits_.nodes));
    }
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().node->kind == Node::Kind::Map && !open_.back().has_key;
  }

  void take_key(const YAML::Mark& mark, const std::string& name, bool quoted) {
    if (name == "<<" && !quoted) fail(mark, "a merge key (<<) is not allowed; write the keys out");
    Open& map = open_.back();
    if (!map.keys.insert(name).second) {
      fail(mark, fmt::format("the key '{}' stands here a second time", show_text(name, 40)));
    }
    map.node->fields.push_back(Field{.name = name, .line = mark.line + 1, .value = {}});
    map.has_key = true;
  }

  Node* add(const YAML::Mark& mark, Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return &root_;
    }
    Open& parent = open_.back();
    if (parent.node->kind == Node::Kind::List) {
      parent.node->items.push_back(std::move(node));
      return &parent.node->items.back();
    }
    if (!parent.has_key) fail(mark, "a key must be a text, not a list or a map");
    parent.has_key = false;
    Field& field = parent.node->fields.back();
    // An empty value is reported at the following token.
    if (node.kind == Node::Kind::Null) node.line = field.line;
    field.value = std::move(node);
    return &field.value;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    check(mark, tag, anchor);
    if (static_cast<int>(open_.size()) >= limits_.depth) {
      fail(mark, fmt::format("lists and maps are nested more than {} deep", limits_.depth));
    }
    Node* const node = add(mark, Node{.kind = kind, .line = mark.line + 1});
    open_.push_back(Open{.node = node, .has_key = false, .keys = {}});
  }

  void close() { open_.pop_back(); }

  const std::string& file_;
  const DocumentLimits& limits_;
  Node root_;
  std::vector<Open> open_;
  std::size_t nodes_{0};
  bool saw_document_{false};
};

int line_at(std::string_view text, std::size_t at) {
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::string cleaned(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (const auto at = find_invalid_utf8(text)) {
    throw DocumentError(file, line_at(text, *at), "the text is not valid UTF-8");
  }
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    clean += text[i];
  }
  if (const auto at = find_control_byte(clean)) {
    throw DocumentError(file, line_at(clean, *at),
                        fmt::format("the text holds the control byte 0x{:02x}",
                                    static_cast<unsigned>(static_cast<unsigned char>(clean[*at]))));
  }
  return clean;
}

/// What mostly stands behind the parser's words, which tell nobody what to write.
std::string_view what_is_usual(const std::string& words) {
  struct Usual {
    std::string_view words, sentence;
  };
  static constexpr std::array<Usual, 5> kUsual{
      {{"illegal map value", "; a text with ': ' in it stands in quotes: name: \"a: b\""},
       {"end of map not found",
        "; lines that belong together begin in the same column, and a text "
        "with a '}' or ',' in it stands in quotes"},
       {"end of sequence not found", "; a list of lines has all its '- ' in the same column"},
       {"unknown token", "; a text that begins with %, @ or ` stands in quotes"},
       {"illegal block entry",
        "; the items of a list stand on lines of their own, each behind '- '"}}};
  for (const Usual& usual : kUsual) {
    if (words.find(usual.words) != std::string::npos) return usual.sentence;
  }
  return {};
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& file, const DocumentLimits& limits) {
  if (text.size() > limits.bytes) {
    throw DocumentError(file, 1, fmt::format("the document is larger than {} bytes", limits.bytes));
  }
  std::istringstream stream(cleaned(text, file));
  TreeBuilder builder(file, limits);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    throw DocumentError(
        file, e.mark.is_null() ? 1 : e.mark.line + 1,
        fmt::format("this is not valid YAML: {}{}", show_text(e.msg, 200), what_is_usual(e.msg)));
  }
  return builder.take();
}

std::string read_text(const std::string& file, std::size_t most) {
  const auto failed = [&](const char* what) {
    return DocumentError(file, 1,
                         fmt::format("cannot {} the file: {}", what, std::strerror(errno)));
  };
  const Fd open_file(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!open_file) throw failed("open");
  struct stat status {};
  if (::fstat(open_file.get(), &status) != 0) throw failed("look at");
  if (!S_ISREG(status.st_mode)) throw DocumentError(file, 1, "this is not a regular file");

  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(open_file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failed("read");
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > most) {
      throw DocumentError(file, 1, fmt::format("the file is larger than {} bytes", most));
    }
  }
}

Node read_yaml(const std::string& file, const DocumentLimits& limits) {
  return parse_yaml(read_text(file, limits.bytes), file, limits);
}

}  // namespace hpcbatch

namespace hpcbatch::entry {
namespace {

constexpr std::uint64_t kWholeMega = std::uint64_t{1} << 20;
constexpr std::uint64_t kWholeGiga = std::uint64_t{1} << 30;

/// On one line.
std::string flow(const Node& node) {
  switch (node.kind) {
    case Node::Kind::Null:
      return "~";
    case Node::Kind::Scalar:
      return node.quoted ? quoted_scalar(node.text) : scalar(node.text);
    case Node::Kind::List:
      return "[" + joined(node.items, ", ", flow) + "]";
    case Node::Kind::Map:
      return "{" +
             joined(
                 node.fields, ", ",
                 [](const Field& field) { return scalar(field.name) + ": " + flow(field.value); }) +
             "}";
  }
  return "";
}

}  // namespace

bool begins_as_indicator(std::string_view text) {
  return !text.empty() && std::string_view("-?:").find(text.front()) != std::string_view::npos &&
         (text.size() == 1 || text[1] == ' ');
}

std::string quoted_scalar(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string scalar(std::string_view text) {
  static constexpr std::string_view kFine = "_./@%+-";
  const auto is_fine = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kFine.find(c) != std::string_view::npos;
  };
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), is_fine) &&
                        text.front() != '-' && text.front() != '@' && text.front() != '%' &&
                        text != "null" && text != "Null" && text != "NULL";
  return is_plain ? std::string(text) : quoted_scalar(text);
}

std::string list(const std::vector<std::string>& texts) {
  return "[" + joined(texts, ", ", scalar) + "]";
}

std::string plugin(const std::string& name, const std::string& config) {
  const Node keys = config.empty() ? Node{} : parse_yaml(config, name);
  if (keys.kind != Node::Kind::Map || keys.fields.empty()) return scalar(name);
  return "{plugin: " + scalar(name) + ", " + flow(keys).substr(1);
}

std::string duration(Duration time) {
  const auto us = time.count();
  const std::int64_t second = 1'000'000;
  if (us != 0 && us % (3600 * second) == 0) return fmt::format("{}h", us / (3600 * second));
  if (us != 0 && us % (60 * second) == 0) return fmt::format("{}m", us / (60 * second));
  if (us % second == 0) return fmt::format("{}s", us / second);
  return fmt::format("{}ms", us / 1000);
}

std::string size(std::uint64_t bytes) {
  if (bytes % kWholeGiga == 0) return fmt::format("{}G", bytes / kWholeGiga);
  if (bytes % kWholeMega == 0) return fmt::format("{}M", bytes / kWholeMega);
  return fmt::format("{}", bytes);
}

const char* link_word(LinkKind link) {
  switch (link) {
    case LinkKind::Auto:
      break;
    case LinkKind::Unix:
      return "unix";
    case LinkKind::Direct:
      return "direct";
    case LinkKind::Relay:
      return "relay";
    case LinkKind::Spool:
      return "spool";
  }
  return "auto";
}

}  // namespace hpcbatch::entry

namespace hpcbatch {

// Writes a tree as block-style YAML, each entry on the line that it had, as far as there is room.

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
    return entry::quoted_scalar(value);
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
