// Where the time of a submission went, in words and in JSON.  Pure.
#pragma once

#include "store/history.hpp"
#include "store/times.hpp"

#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

struct TimeSpent {
  Time submitted{};
  std::optional<Time> started;  ///< the first of its tasks
  std::optional<Time> ended;    ///< the last; nothing while some have not ended
  double cpus{1};               ///< that each task asked for
  store::TaskTimes tasks;
  std::string longest_item;  ///< of the task that ran longest; may be empty
};

/// One sentence each; none while nothing has started.
std::vector<std::string> in_words(const TimeSpent& spent);
/// All in seconds, ids as texts.
boost::json::object to_json(const TimeSpent& spent);

}  // namespace hpcbatch
