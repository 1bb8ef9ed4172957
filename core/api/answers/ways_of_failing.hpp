// The ways in which tasks of a submission failed, in words and in JSON, and what helps.
#pragma once

#include "model/needs.hpp"
#include "store/history.hpp"

#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

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

}  // namespace hpcbatch
