#include "api/answers/ways_of_failing.hpp"

#include "api/answers/to_json.hpp"
#include "failure/failure_choice.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string name_of(const store::FailureGroup& group) {
  std::string failure(to_string(group.failure));
  if (group.signal != 0) return fmt::format("{} (signal {})", failure, group.signal);
  if (group.failure == Failure::ToolFailed) return fmt::format("exit code {}", group.exit_code);
  return failure;
}

/// What is asked for anew.
struct More {
  bool any{false};
  std::uint64_t bytes{0};  ///< 0: nothing was asked for, and nobody knows

  void than(std::string_view name, const Needs& before, const Needs& now) {
    any = true;
    const auto of = [&](const Needs& needs) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(needs.amounts.get(name).whole(), 0));
    };
    bytes = std::max({bytes, 2 * of(before), of(now)});
  }
  std::string words(std::string_view flag) const {
    return any ? fmt::format(" {} {}", flag, bytes == 0 ? "SIZE" : show_size(bytes)) : "";
  }
};

}  // namespace

std::string in_words(ArrayId id, const WayOfFailing& way) {
  std::string text = fmt::format("{} {}: first {}", way.group.tasks, name_of(way.group),
                                 to_string(TaskId{id, way.group.first}));
  if (!way.item.empty()) text += fmt::format(" (item {})", way.item);
  if (!way.first) return text;
  const bool never_ran = way.group.failure == Failure::Cancelled && !way.first->outcome.started;
  if (!way.first->node.empty() && !never_ran) text += " on " + way.first->node;
  if (!way.first->outcome.message.empty()) text += ": " + way.first->outcome.message;
  return text;
}

json::object to_json(ArrayId id, const WayOfFailing& way) {
  const store::FailureGroup& group = way.group;
  json::object one{{"failure", std::string(to_string(group.failure))},
                   {"tasks", group.tasks},
                   {"first", to_string(TaskId{id, group.first})}};
  if (group.failure == Failure::ToolFailed && group.exit_code >= 0)
    one["exit_code"] = group.exit_code;
  if (group.signal != 0) one["signal"] = group.signal;
  if (!way.item.empty()) one["item"] = way.item;
  if (!way.first) return one;
  if (!way.first->node.empty()) one["node"] = way.first->node;
  if (!way.first->outcome.message.empty()) one["message"] = way.first->outcome.message;
  return one;
}

std::optional<std::string> how_to_list(ArrayId id, const std::vector<WayOfFailing>& ways) {
  if (ways.empty()) return std::nullopt;
  const store::FailureGroup& group = ways.front().group;
  std::string choice(to_string(group.failure));
  if (group.failure == Failure::ToolSignal) choice = fmt::format("signal:{}", group.signal);
  if (group.failure == Failure::ToolFailed) choice = fmt::format("exit:{}", group.exit_code);
  const auto chosen = parse_failure_choice(choice);
  if (!chosen) return std::nullopt;
  std::uint64_t tasks = 0;
  for (const WayOfFailing& way : ways) {
    if (chosen->admits({way.group.failure, way.group.exit_code, way.group.signal}))
      tasks += way.group.tasks;
  }
  if (tasks < 2) return std::nullopt;
  return fmt::format("'hpcbatch list {} --failure {} --all' names {} of them", id.value, choice,
                     tasks);
}

std::optional<std::string> retry_with_more(const std::vector<TriedWith>& tried, const Needs& now,
                                           std::string_view what, bool is_many) {
  More memory, disk;
  Duration time{};
  std::set<std::string_view> helped;
  for (const TriedWith& one : tried) {
    const bool is_time = one.failure == Failure::TimeTask && one.needs.time;
    if (one.failure == Failure::OomTask || one.failure == Failure::DiskTask || is_time)
      helped.insert(to_string(one.failure));
    if (one.failure == Failure::OomTask) memory.than(kMemory, as_asked(one.needs), as_asked(now));
    if (one.failure == Failure::DiskTask) disk.than(kDisk, one.needs, now);
    if (is_time) time = std::max({time, 2 * *one.needs.time, now.time.value_or(Duration{})});
  }
  std::string more = memory.words("--mem") + disk.words("--disk");
  if (time > Duration{})
    more += " --time " + show_duration(std::chrono::ceil<std::chrono::seconds>(time));
  if (more.empty()) return std::nullopt;
  std::string only;
  if (is_many) {
    for (const std::string_view failure : helped) only += fmt::format(" --failure {}", failure);
  }
  return fmt::format("'hpcbatch retry {}{}{}' tries again with more", what, only, more);
}

}  // namespace hpcbatch
