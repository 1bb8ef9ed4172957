// Decides which job files are ready to be read, which need more time, and whose turn it is.
#pragma once

#include "model/ids.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// What tells one state of a file from another.
struct FileStamp {
  std::uint64_t inode{0};
  std::int64_t changed_ns{0};  ///< ctime
  std::int64_t modified_ns{0};
  std::int64_t size{0};
  std::uint32_t owner{0};
  std::uint32_t mode{0};
  std::uint32_t group{0};
  std::uint64_t links{1};
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Pure.  For each job file that was seen and not yet taken:
///
///   state      leaves it when                              to
///   new        it was closed, or unchanged for `quiet`     due: whoever reads it says taken or
///   not_yet not yet    it changed                                  new
///              unchanged for `grace`                       due for the last time: not_yet then
///              says Refuse
class JobWatch {
 public:
  struct Patience {
    Duration quiet{std::chrono::seconds{2}};
    Duration grace{std::chrono::seconds{30}};
  };
  enum class Verdict { Wait, Refuse };

  JobWatch() : JobWatch(Patience{}) {}
  explicit JobWatch(Patience patience) : patience_(patience) {}

  /// `closed`: its writer has closed it, or it was renamed to its name: it is whole now.
  /// True where the file is new or differs from what was seen before.
  bool seen(const std::string& name, const FileStamp& stamp, bool closed, Time now);
  /// Taken, refused or removed.
  void forget(const std::string& name);
  /// Forgets all that are not among `names` (sorted).
  void keep_only(const std::vector<std::string>& names);
  /// How many more files of an owner may be taken; none given: as many as he has.
  using RoomOf = std::function<std::size_t(std::uint32_t owner)>;
  /// At most `most` names to be read now, the owners of the files taking turns, each one's oldest
  /// first.
  std::vector<std::string> due(Time now, std::size_t most, const RoomOf& room_of = {}) const;
  /// It was read and is no whole job.  To be told with what was seen last.
  Verdict not_yet(const std::string& name, Time now);
  /// When something becomes due without a further event.
  std::optional<Time> next_due(const RoomOf& room_of = {}) const;
  std::size_t size() const { return files_.size(); }

 private:
  struct File {
    FileStamp stamp;
    Time first_seen{};
    Time changed{};
    bool closed{false};
    bool was_read{false};
  };
  Time due_at(const File& file) const;

  Patience patience_;
  std::map<std::string, File> files_;
};

}  // namespace hpcbatch
