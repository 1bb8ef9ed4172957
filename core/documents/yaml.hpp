// The one strict reader of YAML: everything that a person or a program hands us as a document comes
// through here.
#pragma once

#include "documents/view.hpp"
#include "model/site.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

namespace hpcbatch::entry {

// Values of a site's entry as words of YAML that stay on one line.

/// YAML looks for the colon of a key within 1,024 characters (YAML 1.2, section 7.4); a longer one
/// is marked by `? `, and the colon stands on the next line.
constexpr std::size_t kLongestKey = 1000;
/// In a list of one line yaml-cpp takes these for texts; on a line of their own they begin a list, a
/// key or a value, so that they need quotes there.
bool begins_as_indicator(std::string_view text);
std::string quoted_scalar(std::string_view text);
/// Plain where that is what YAML reads as this very text, in a list or map of one line too.
std::string scalar(std::string_view text);
/// `[a, "b c"]`
std::string list(const std::vector<std::string>& texts);
/// `slurm`, or `{plugin: slurm, its: own keys}`; `config` is the plugin's own YAML.
std::string plugin(const std::string& name, const std::string& config);
std::string duration(Duration time);
std::string size(std::uint64_t bytes);
const char* link_word(LinkKind link);

}  // namespace hpcbatch::entry

namespace hpcbatch {

// TOML as the same plain tree that the strict reader of YAML makes.

/// Reads a document of TOML 1.0 (https://toml.io/en/v1.0.0); its root is a map.  Numbers that have
/// a fraction, dates and times stay the letters that the author wrote; whole numbers are written in
/// decimals, so that 1_000 is 1000.  Throws DocumentError, also for what is over `limits`.  `file`
/// is only used in messages.
Node parse_toml(std::string_view text, const std::string& file, const DocumentLimits& limits = {});

}  // namespace hpcbatch
