// What became of a submission as a whole: how its tasks failed and what helps, and where its
// time went.
#pragma once

#include "model/needs.hpp"
#include "store/history.hpp"
#include "store/overview.hpp"

#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// The ways in which tasks of a submission failed, in words and in JSON, and what helps.

struct WayOfFailing {
  store::FailureGroup group;
  std::optional<store::ResultRow> first;  ///< of the task with the lowest index
  std::string item;                       ///< of that task; may be empty
  Needs needs{};                          ///< that it had
};

std::string in_words(ArrayId id, const WayOfFailing& way);
boost::json::object to_json(ArrayId id, const WayOfFailing& way);

struct TriedWith {
  Failure failure{};
  Needs needs;
};
/// The command that names all tasks of the first of these ways, where they are several.
std::optional<std::string> how_to_list(ArrayId id, const std::vector<WayOfFailing>& ways);

/// One command that gives twice of all that was too little (memory, disk, time), and no less than
/// `now`, what the array needs meanwhile, to those that failed for it.  `what` is the task, or
/// the submission of many.  Nothing where more would not help.
std::optional<std::string> retry_with_more(const std::vector<TriedWith>& tried, const Needs& now,
                                           std::string_view what, bool is_many);

// Where the time of a submission went, in words and in JSON.  Pure.

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
