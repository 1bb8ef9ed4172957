// What a YAML document says, as plain values of our own: scalars stay the text that the author
// wrote.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace hpcbatch {

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

}  // namespace hpcbatch
