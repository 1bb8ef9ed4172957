// Programs that wait for what becomes of tasks, and how long those are kept for one that has gone.
// Pure.
#pragma once

#include "model/ids.hpp"
#include "model/task.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

class Readers {
 public:
  /// Arrays whose ids follow each other are for it from now on, and for no other.
  void reads(const ReadBy& by, ArrayId first, std::uint64_t arrays, Time now);
  /// Of the arrays from `first` to `last`: they have ended, or go on without a reader.  Returns
  /// whether any had one.
  bool forget(ArrayId first, ArrayId last);
  /// It is there once more than before, or once less.
  void heard(const std::string& reader, bool is_there, Time now);
  /// When the next one has been away for too long.
  std::optional<Time> next_wake() const;

  struct Unread {
    ArrayId first;
    ArrayId last;
    Duration lease{};
  };
  /// The arrays of those that have been away for too long; both are forgotten.
  std::vector<Unread> take_unread(Time now);
  /// Of all arrays that have a reader: first and last of those that follow each other.
  std::vector<std::pair<ArrayId, ArrayId>> arrays() const;

 private:
  struct Reader {
    std::uint64_t there{0};   ///< how often: it may have several connections
    std::uint64_t arrays{0};  ///< that are for it
    Duration lease{};
    std::optional<Time> ends;  ///< while it is not there
  };
  using All = std::map<std::string, Reader>;
  struct Range {
    ArrayId last;
    All::iterator reader;
  };
  void drop_if_unused(All::iterator at);
  void set_end(All::iterator at, std::optional<Time> end);

  All readers_;
  std::map<ArrayId, Range> ranges_;  ///< by the first of each
  std::set<std::pair<Time, std::string>> ends_;
};

/// What is said of a task that was cancelled for that.
std::string why_unread(Duration lease);

}  // namespace hpcbatch
