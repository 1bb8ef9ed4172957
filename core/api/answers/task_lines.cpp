#include "api/answers/task_lines.hpp"

#include "api/answers/to_json.hpp"
#include "failure/failure.hpp"
#include "model/quantities.hpp"

#include <cstddef>
#include <optional>

namespace hpcbatch {

namespace json = boost::json;

void put_outcome(json::object& object, const Outcome& outcome) {
  object["failure"] = std::string(to_string(outcome.failure));
  const bool ran = outcome.started.has_value();
  if (const auto code = shell_exit_code(outcome)) object["exit_code"] = *code;
  if (outcome.signal != 0) object["signal"] = outcome.signal;
  if (!outcome.message.empty()) object["message"] = outcome.message;
  if (ran) {
    object["started_at"] = seconds(*outcome.started);
    object["run_s"] = seconds(outcome.ended - *outcome.started);
  }
  object["ended_at"] = seconds(outcome.ended);
}

json::object line_of(const std::string& id, TaskState state, std::uint64_t tasks) {
  return {{"id", id}, {"state", std::string(to_string(state))}, {"tasks", tasks}};
}

namespace {

/// Where one task ended, and what it took.
void put_place(json::object& line, const store::ResultRow& result) {
  if (result.outcome.peak_memory != 0) line["peak_memory"] = result.outcome.peak_memory;
  if (result.outcome.cpu_time != Duration{}) line["cpu_s"] = seconds(result.outcome.cpu_time);
  if (!result.node.empty()) line["node"] = result.node;
  if (!result.pilot.empty()) line["pilot"] = result.pilot;
  if (result.attempt != 0) line["attempt"] = result.attempt;
}

}  // namespace

void add_ended(store::Store& store, ListAsked asked, Lines& lines) {
  // Each has its own node and times.
  asked.apart = asked.apart || asked.full;
  std::uint32_t& left = asked.filter.limit;
  for (const store::ResultRow& row : store.history().results(asked.filter)) {
    if (left == 0) break;
    const std::size_t before = lines.size();
    add_range(lines, asked, row.array, row.indices, [&](IndexRange part) {
      const bool is_one = part.first == part.last;
      std::optional<store::ResultRow> own;
      if (asked.full && is_one && row.indices.first != row.indices.last)
        own = store.history().result(TaskId{row.array, part.first});
      const store::ResultRow& result = own ? *own : row;
      json::object line = line_of(id_of(row.array, part), state_after(result.outcome.failure),
                                  std::uint64_t{part.last} - part.first + 1);
      put_outcome(line, result.outcome);
      // Of several it would be from the first start to the last end.
      if (!own && row.indices.first != row.indices.last) line.erase("run_s");
      if (asked.full && is_one) put_place(line, result);
      return line;
    });
    left -= static_cast<std::uint32_t>(lines.size() - before);
  }
}

}  // namespace hpcbatch
