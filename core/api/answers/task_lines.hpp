// The lines of `GET /v1/tasks`: one for a task, or for neighbours of one array in one state.
#pragma once

#include "model/ids.hpp"
#include "model/index_set.hpp"
#include "model/task.hpp"
#include "store/store.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// A line's place is that of its first task.
using Lines = std::vector<std::pair<TaskId, boost::json::object>>;

struct ListAsked {
  store::Filter filter;
  bool apart{false};  ///< each task of an array on a line of its own
  bool open{false};   ///< what has ended only as `ended_since` says
  bool full{false};   ///< with what `GET /v1/tasks/ID` says but for command and paths
  bool files{false};  ///< with these as well
};

void put_outcome(boost::json::object& object, const Outcome& outcome);
boost::json::object line_of(const std::string& id, TaskState state, std::uint64_t tasks);

/// A line for the range, or for each of its tasks, the highest first, until there are enough.
template <class Make>
void add_range(Lines& lines, const ListAsked& asked, ArrayId id, IndexRange range,
               const Make& make) {
  if (!asked.apart) {
    lines.emplace_back(TaskId{id, range.first}, make(range));
    return;
  }
  const auto& before = asked.filter.before;
  std::uint64_t end = std::uint64_t{range.last} + 1;
  if (before && before->array == id) end = std::min<std::uint64_t>(end, before->index);
  for (std::uint32_t added = 0; end > range.first && added < asked.filter.limit; ++added) {
    const auto index = static_cast<std::uint32_t>(--end);
    lines.emplace_back(TaskId{id, index}, make(IndexRange{index, index}));
  }
}

/// Of what has ended, the highest first: as many as are asked for at most.
void add_ended(store::Store& store, ListAsked asked, Lines& lines);

}  // namespace hpcbatch
