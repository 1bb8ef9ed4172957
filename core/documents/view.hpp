// A document as plain values, and a look at it with expectations: each accessor returns a
// checked value or says file, line and what was expected.
#pragma once

#include "model/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// What a YAML document says, as plain values of our own: scalars stay the text that the author
// wrote.

struct Field;

/// One value of a document.  `Null` is an empty value, `~` or `null`.
struct Node {
  enum class Kind { Null, Scalar, List, Map };
  Kind kind{Kind::Null};
  std::string text;           ///< of a scalar, unescaped: `010` and `yes` stay these letters
  bool quoted{false};         ///< the scalar was written in quotes or as a block
  std::vector<Node> items;    ///< of a list
  std::vector<Field> fields;  ///< of a map, in the order written
  int line{1};

  const Node* find(const std::string& name) const;
};

struct Field {
  std::string name;
  int line{1};
  Node value;
};

/// What a document says is wrong.  `what()` is `FILE:LINE: message`.
class DocumentError : public std::runtime_error {
 public:
  DocumentError(std::string in_file, int at_line, std::string text)
      : std::runtime_error(in_file + ":" + std::to_string(at_line) + ": " + text),
        file(std::move(in_file)),
        line(at_line),
        message(std::move(text)) {}

  std::string file;
  int line;
  std::string message;
};

inline const Node* Node::find(const std::string& name) const {
  for (const Field& field : fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

// Looks at a document with expectations: each accessor returns a checked value or says file, line
// and what was expected.

class MapView;

/// Letters, digits, `_.-`, a letter or digit first; at most 64 of them: fit for a name of a file or
/// of an option.
bool is_word(std::string_view text);

/// One node under the name by which people know it.  Refers to the node and the file's name: both
/// must outlive it. All accessors throw DocumentError.
class View {
 public:
  View(const Node& node, const std::string& file, std::string name)
      : node_(&node), file_(&file), name_(std::move(name)) {}

  const Node& node() const { return *node_; }
  const std::string& file() const { return *file_; }
  const std::string& name() const { return name_; }
  int line() const { return node_->line; }
  bool is_null() const { return node_->kind == Node::Kind::Null; }
  [[noreturn]] void fail(const std::string& message) const;
  /// `'NAME' must be EXPECTED, not WHAT IS THERE`.
  [[noreturn]] void expected(std::string_view what) const;

  std::string text() const;  ///< any scalar
  std::string non_empty_text() const;
  std::string word() const;  ///< as is_word says
  std::string tag() const;   ///< a word, or KEY=VALUE, which has neither blanks nor '+'
  std::string absolute_path() const;
  bool boolean() const;  ///< true, false, yes, no
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  double number(double least, double most) const;
  Duration duration() const;
  std::uint64_t size() const;  ///< bytes
  std::string one_of(const std::vector<std::string>& choices) const;

  std::vector<View> list() const;
  std::vector<std::string> texts() const;
  std::map<std::string, std::string> text_map() const;
  MapView map() const;

 private:
  const Node* node_;
  const std::string* file_;
  std::string name_;
};

/// A map whose keys are asked for by name; `finish` then refuses those that nobody asked for.
class MapView {
 public:
  explicit MapView(const View& view);

  /// No value where the key is absent or its value is empty.
  std::optional<View> find(const std::string& name);
  /// Must be there.
  View get(const std::string& name);
  /// Throws for the first unknown key, with the nearest known spelling.
  void finish() const;
  const View& view() const { return view_; }
  /// All entries, for maps whose keys are the author's own.
  std::vector<View> entries() const;

 private:
  void refuse_misspelt(const std::string& name) const;

  View view_;
  std::vector<std::string> asked_;
};

}  // namespace hpcbatch
