// The directory of a drop box: looks, reads, writes and renames in it, always through one open
// descriptor.
#pragma once

#include "dropbox/job_rights.hpp"
#include "dropbox/job_watch.hpp"
#include "hpcbatch/result.hpp"
#include "model/ids.hpp"
#include "posix/files.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace hpcbatch {

FileStamp stamp_of(const struct stat& status);
/// Of an open file; no value where it cannot be looked at.
std::optional<FileStamp> stamp_of(const Fd& file);

inline constexpr std::string_view kJobEnding = ".job";
inline constexpr std::string_view kSubmittedEnding = ".job.submitted";
inline constexpr std::string_view kFinishedEnding = ".job.finished";

/// Who may read what is written for a job: nobody who could not read the job.
struct Readers {
  std::uint32_t mode{0600};  ///< of the job
  std::uint32_t group{UINT32_MAX};
};
Readers readers_of(const FileStamp& job);

/// All calls block on the file system.  Links are never followed.
class DropboxFolder {
 public:
  /// Refused where `why_no_dropbox` says so.
  static Result<DropboxFolder> open(const std::string& path);

  struct Entry {
    std::string name;
    FileStamp stamp;
  };
  /// All names that end as above; sorted.
  Result<std::vector<Entry>> list() const;
  /// No value where there is no such file (or nothing can be said of it).
  std::optional<FileStamp> look(const std::string& name) const;

  struct Content {
    std::string text;
    FileStamp stamp;
    bool is_steady{false};  ///< it did not change while it was read
    Fd file;
  };
  /// Only regular files of at most `most` bytes.
  Result<Content> read(const std::string& name, std::size_t most) const;
  /// Writes it aside and renames it to `name`; it is on disk when this returns.  The file.
  Result<Fd> put(const std::string& name, std::string_view text, const Readers& readers) const;
  /// May be undone by a power failure; no step of a job rests on it being on disk.
  Result<void> rename(const std::string& from, const std::string& to) const;
  /// Renames it to `to`, or where that is taken to `to` and a number.  The new name.
  Result<std::string> rename_to_free(const std::string& from, const std::string& to) const;
  Result<void> remove(const std::string& name) const;
  /// Whether the path still leads to this directory.
  bool is_still(const std::string& path) const;
  /// As things are now.
  FolderFacts facts() const;

 private:
  explicit DropboxFolder(Fd directory) : directory_(std::move(directory)) {}
  Fd directory_;
};

// What the kernel tells of changes in a directory (inotify), and a bell that other threads can
// ring.

/// Hints only: network file systems tell nothing, and a full queue loses events (`look_at_all`).
class FolderEvents {
 public:
  FolderEvents();

  /// Watches this directory from now on, instead of any other.  False: it cannot be watched.
  bool watch(const std::string& directory);

  struct Change {
    std::string name;
    bool closed{false};  ///< written and closed, or renamed to this name
  };
  struct Changes {
    std::vector<Change> changes;
    bool look_at_all{false};  ///< events were lost, or the directory itself went away
  };
  /// Waits for a change, the bell, or the time.
  Changes wait(Duration at_most);
  /// From any thread: makes the present or the next `wait` return.
  void ring();

 private:
  Fd inotify_;
  Fd bell_;
  int watch_{-1};
};

}  // namespace hpcbatch
