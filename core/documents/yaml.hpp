// The one strict reader of YAML: everything that a person or a program hands us as a document comes
// through here.
#pragma once

#include "documents/node.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace hpcbatch {

/// What a document may cost us.  A document over them is refused before it is built.
struct DocumentLimits {
  std::size_t bytes{std::size_t{1} << 20};
  std::size_t nodes{10'000};
  int depth{32};
};

/// Reads one document.  Refused with DocumentError: anchors, aliases, tags, merge keys, duplicate
/// keys, keys that are no plain text, several documents, control bytes, invalid UTF-8, and what is
/// over `limits`.  A byte order mark and CRLF are tolerated.  An empty text is a null.  `file` is
/// only used in messages.
Node parse_yaml(std::string_view text, const std::string& file, const DocumentLimits& limits = {});

/// Reads a file as `parse_yaml` does.  Only regular files are read (a FIFO does not hang us).
Node read_yaml(const std::string& file, const DocumentLimits& limits = {});

/// The text of a regular file, at most `most` bytes.  Throws DocumentError.
std::string read_text(const std::string& file, std::size_t most);

/// A block of a document as YAML text again, to be handed on.  What stood on a line of its own is
/// again on that line, so that messages about the text name the line of the source.
std::string to_yaml(const Node& node);

}  // namespace hpcbatch
