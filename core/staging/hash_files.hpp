// Says of files on this machine what they hold: many at a time, each only where it stays as it is
// while it is read.
#pragma once

#include "failure/failure.hpp"
#include "model/ids.hpp"
#include "wire/checksum.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace hpcbatch {

// Who needs files on a site, and why they could not be staged in or out.

/// An array for what all its tasks share, or one of its tasks.
struct StageOwner {
  ArrayId array;
  std::optional<std::uint32_t> index;
  friend auto operator<=>(const StageOwner&, const StageOwner&) = default;
};

struct StageError {
  bool can_be_tried_again{false};
  Failure failure{
      Failure::EngineError};  ///< of input or output; OutputMissing where nothing lies at the place
  std::string text;           ///< what was tried, what happened, what to do
  friend bool operator==(const StageError&, const StageError&) = default;
};

/// By what a changed file is known from the one that was read.
struct FileState {
  std::uint64_t size{0};
  std::int64_t modified_ns{0};
  std::int64_t changed_ns{0};
  std::uint64_t device{0};
  std::uint64_t inode{0};
  bool executable{false};
  friend bool operator==(const FileState&, const FileState&) = default;
};
/// Of an open file; nothing where it is no regular one.
std::optional<FileState> state_of(int descriptor);
/// Opens a file for reading, never waiting for anything; -1 and errno where it cannot be.
int open_to_read(const std::string& path);

struct HashedFile {
  FileState state;
  std::string hash;
};
/// Of these and larger ones each goes by itself, and is hashed on its way where that is possible.
inline constexpr std::uint64_t kLargeFile = std::uint64_t{8} << 20;
/// A state alone: it is a large one, and was not read.
using HashAnswer = std::variant<HashedFile, FileState, StageError>;

/// What came of one call until now; the loop may look at it when the call has been given up.
class HashProgress {
 public:
  enum class Stage : std::uint8_t { Waits, Begun, Answered };

  explicit HashProgress(std::size_t files) : files_(files) {}
  void begin(std::size_t file);
  /// Goes on in another call.
  void put_off(std::size_t file);
  void answer(std::size_t file, HashAnswer answer);
  struct File {
    Stage stage{Stage::Waits};
    std::optional<HashAnswer> answer;
  };
  std::vector<File> files() const;

 private:
  mutable std::mutex mutex_;
  std::vector<File> files_;
};

/// Blocks; of one lane.  Remembers what it has read, and how far it came with what is large.
class FileHasher {
 public:
  /// Begins with small files, and stops after `slice`: what has no answer then is to be asked for
  /// again.  Large ones are read where they stand in `read` alone.
  void hash(const std::vector<std::string>& paths, const std::set<std::string>& read,
            std::chrono::milliseconds slice, HashProgress& progress);
  /// What another has read.  Any thread.
  void remember(const std::string& path, const HashedFile& file);

 private:
  struct Begun {
    FileState state;
    wire::ContentHash hash;
    std::uint64_t done{0};
    bool was_changed{false};  // once: a second time is not forgiven
  };
  std::optional<std::string> known(const std::string& path, const FileState& state);
  std::optional<HashAnswer> read_on(const std::string& path, bool reads_large,
                                    std::chrono::steady_clock::time_point until);

  std::mutex mutex_;
  // Two generations, so that what is asked for stays and all is bounded.
  std::unordered_map<std::string, HashedFile> young_;
  std::unordered_map<std::string, HashedFile> old_;
  std::unordered_map<std::string, Begun> begun_;
  bool large_first_{false};
};

}  // namespace hpcbatch
