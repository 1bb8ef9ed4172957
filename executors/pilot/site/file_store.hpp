// The store of files in a workspace: entries by content and name, each there as a whole or not at
// all.  An entry's modification time is when it was used last.
#pragma once

#include "hpcbatch/result.hpp"
#include "posix/files.hpp"
#include "wire/file_store.hpp"
#include "wire/wire.pb.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

// Paths below a folder that are walked step by step, never through a link and never out of it.

/// Why something could not be done with a file, in a kind that a program and words that people
/// understand.
struct FileRefusal {
  wire::FileTrouble kind{wire::FileTrouble::Other};
  std::string text;
};
using FileOutcome = std::optional<FileRefusal>;

/// `what`: "write a/b"; to be called before errno is lost.
FileRefusal refused(const std::string& what, int error);

/// A folder below `root`, by a plain path (wire::is_plain_path) or an empty one for `root` itself.
std::variant<Fd, FileRefusal> enter(int root, const std::string& path);
/// The same; what is not there is made, mode 0700.
std::variant<Fd, FileRefusal> enter_or_make(int root, const std::string& path);

/// "a/b" and "c" of "a/b/c".
struct Step {
  std::string folder;
  std::string name;
};
Step last_step(const std::string& path);

class FileStore {
 public:
  /// Makes its folders where they are not there.  `workspace` stays open as long as the store.
  static std::variant<FileStore, FileRefusal> open(int workspace);

  /// Keeps out other exchanges until this one ends; false where `still_time` ends first.
  bool lock(const std::function<bool()>& still_time);

  /// Whether it is there as it is to be; then it is marked as used.
  FileOutcome have(const wire::FilesOrder::Known& file) const;
  /// Moves what was received to its place.  May be done twice.
  FileOutcome adopt(const wire::FilesOrder::Known& file) const;
  /// Many at a time, because each waits for the disk.
  std::vector<FileOutcome> put(const google::protobuf::RepeatedPtrField<wire::FilesOrder::Put>& all,
                               int begin, int end) const;
  /// Up to `most` entries behind a key, in the order of keys; true where it was all.
  bool list(const std::string& after, std::size_t most, const std::function<bool()>& still_time,
            google::protobuf::RepeatedPtrField<wire::FilesReport::Entry>& entries) const;
  /// What was received and never adopted.
  void forget_stale() const;

 private:
  FileStore(int workspace, Fd files, Fd incoming)
      : workspace_(workspace), files_(std::move(files)), incoming_(std::move(incoming)) {}

  int workspace_;
  Fd files_;
  Fd incoming_;
  Fd lock_;
};

}  // namespace hpcbatch::pilot
