// Values of the model in the words of docs/api.md.
#pragma once

#include "engine/engine.hpp"
#include "model/ids.hpp"
#include "model/index_set.hpp"
#include "model/item.hpp"
#include "model/task.hpp"
#include "records/advice.hpp"
#include "store/store.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

/// Seconds since 1970.
double seconds(Time time);
double seconds(Duration duration);
boost::json::object to_json(const Needs& needs);
boost::json::object gpus_json(const Resources& resources);
/// `12` for a task or all of an array, `12.1-99` for a range.
std::string id_of(ArrayId array, IndexRange range);

/// The ids of what is waited for.
boost::json::array to_json(const std::vector<Dependency>& after);
/// What a task waits for, how where that is not success alone, and the rest of its course.
void put_course(boost::json::object& object, const std::vector<Dependency>& after,
                const Course& course);

// Bytes that JSON may not be able to carry: a task's item, what it printed.

/// With padding (RFC 4648, 4).
std::string base64(std::string_view bytes);

/// `item`; where it is no UTF-8 also `item_base64`, so that two that look the same are told apart.
void put_item(boost::json::object& object, const Item& item);

/// The same with `columns`, and `columns_base64` of those that are no UTF-8.
void put_item_and_columns(boost::json::object& object, const Item& item);

// What tasks say of themselves, as JSON.

/// `metrics`, or `metrics_error` where the text is no JSON object; nothing of an empty text.
void put_metrics(boost::json::object& object, const std::string& text);

// What runs used, in the words of docs/api.md.

/// Hours, and GB-hours of memory (GB is 2^30 bytes).
boost::json::object to_json(const records::Usage& usage);
/// What 50 and 95 of 100 runs took; empty where none was seen.
boost::json::object to_json(const records::Profile& profile);
/// With a sentence; `days`: that the usage is of.
boost::json::object to_json(const records::Advice& advice, double days);

// The lines of `GET /v1/tasks`: one for a task, or for neighbours of one array in one state.

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
