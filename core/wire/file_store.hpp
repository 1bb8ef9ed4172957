// The store of files on a site without our file system: where a file lies there, by its content and
// name.  docs/formats.md has the layout and the exchange.
#pragma once

#include "hpcbatch/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch::wire {

/// Digits of a BLAKE2b-256.
constexpr std::size_t kHashDigits = 64;
/// Bytes of a name in the store.
constexpr std::size_t kLongestStoredName = 200;

/// FilesReport::Done::trouble.
enum class FileTrouble : std::uint32_t { None, Absent, DiskFull, Quota, Refused, Other };

/// The base name of `path` as it stands in the store: no bytes that harm, its ending kept.
std::string stored_name(std::string_view path);
/// "HASH/NAME".
std::string store_key(std::string_view hash, std::string_view name);
/// Whether it is what store_key makes of some hash and stored name.
bool is_store_key(std::string_view key);

// All relative to the workspace.
std::string place_of_key(std::string_view key);     ///< files/AB/HASH/NAME
std::string folder_of_key(std::string_view key);    ///< files/AB/HASH
std::string incoming_of_key(std::string_view key);  ///< files/incoming/HASH/NAME
std::string incoming_folder_of_key(std::string_view key);
/// Nothing where it is no place in the store.
std::string key_of_place(std::string_view place);

// What engine and program say to each other over the stream of `hpcbatch-pilot files`.

struct FileFrame {
  enum class Kind : std::uint8_t {
    Order = 1,   ///< a serialized FilesOrder, of the engine
    Report = 2,  ///< a serialized FilesReport, of the program
    Data = 3,    ///< the next bytes of the one file that is on its way
    Failed = 4,  ///< why the program cannot serve at all; its last frame
  };
  Kind kind{Kind::Order};
  std::string_view bytes;
};

/// Bytes of a frame's head: length, kind and checksum.
constexpr std::size_t kFileFrameHead = 9;
/// Bytes of a file in one frame.
constexpr std::size_t kFilePiece = std::size_t{256} << 10;

/// Writes the head of a frame whose bytes stand behind it, from `begin` of `frame` on.
void set_file_frame_head(std::string& frame, std::size_t begin, FileFrame::Kind kind);
void append_file_frame(std::string& out, FileFrame::Kind kind, std::string_view bytes);

/// Takes bytes as they come, and gives the frames that are complete.
class FileFrames {
 public:
  /// Where the next bytes are to be read to; of those `got` were.
  char* room(std::size_t most);
  void add(std::size_t got) { end_ += got; }
  bool is_empty() const { return begin_ == end_; }
  /// Its bytes hold until the next `room`.  Nothing: it is not complete yet.  An error means: drop the stream.
  hpcbatch::Result<std::optional<FileFrame>> next();

 private:
  std::string buffer_;
  std::size_t begin_{0};
  std::size_t end_{0};
};

/// Whether `path` names something below `files` or `out` by plain steps.
bool may_be_dropped(std::string_view path);
/// Not empty, not absolute, no `.`, `..` or empty step.
bool is_plain_path(std::string_view path);

}  // namespace hpcbatch::wire
