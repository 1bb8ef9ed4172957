// Programs that wait for what becomes of tasks, and how long those are kept for one that has gone.
// Pure.
#pragma once

#include "model/ids.hpp"
#include "model/task.hpp"
#include "model/time.hpp"

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
  /// Arrays whose ids follow each other were submitted for it.
  void reads(const ReadBy& by, ArrayId first, std::uint64_t arrays, Time now);
  /// It is there once more than before, or once less.
  void heard(const std::string& reader, bool is_there, Time now);
  /// When the next one has been away for too long.
  std::optional<Time> next_wake() const;

  struct Gone {
    Duration lease{};
    std::vector<std::pair<ArrayId, ArrayId>> arrays;  ///< first and last; some may have ended
  };
  /// Those that have been away for too long; they are forgotten.
  std::vector<Gone> take_gone(Time now);

 private:
  struct Reader {
    std::uint64_t there{0};  ///< how often: it may have several connections
    std::optional<Time> ends;
    Gone what;
  };
  using All = std::map<std::string, Reader>;
  void set_end(All::iterator at, std::optional<Time> end);

  All readers_;
  std::set<std::pair<Time, std::string>> ends_;
};

/// What is said of a task that was cancelled for that.
std::string why_unread(Duration lease);

}  // namespace hpcbatch
