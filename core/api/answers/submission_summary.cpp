#include "api/answers/submission_summary.hpp"

#include "api/answers/to_json.hpp"
#include "failure/failure.hpp"
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

namespace {

std::string begin_and_end(const TimeSpent& spent) {
  const Duration waited = std::max(Duration{}, *spent.started - spent.submitted);
  // What was retried is told by its last attempt.
  std::string text = fmt::format("{}the first started {} after the submit",
                                 spent.tasks.earlier_attempts > 0 ? "of their last attempts " : "",
                                 show_duration(waited));
  if (spent.tasks.tasks > 1)
    text += fmt::format(", half of those that ran had started after {}",
                        show_duration(spent.tasks.half_waited));
  if (!spent.ended) return text;
  const Duration whole = std::max(Duration{}, *spent.ended - *spent.started);
  text += fmt::format("; the last ended {} later", show_duration(whole));
  const Duration busy = std::min(whole, spent.tasks.busy);
  if (spent.tasks.tasks < 2 || busy <= Duration{}) return text;
  // Between a run and a retry of a part of it nothing ran.
  if (busy < whole / 10 * 9)
    text += fmt::format(", and {} of it something ran", show_duration(busy));
  return text + fmt::format(": {:.1f} at a time", seconds(spent.tasks.ran) / seconds(busy));
}

std::string running(const TimeSpent& spent) {
  const store::TaskTimes& tasks = spent.tasks;
  if (tasks.tasks == 1) return "it ran " + show_duration(tasks.ran);
  std::string text =
      fmt::format("{} ran {}{} together: half of them within {}, nine of ten within {}",
                  tasks.tasks, tasks.is_estimate ? "about " : "", show_duration(tasks.ran),
                  show_duration(tasks.half_within), show_duration(tasks.most_within));
  if (!tasks.longest) return text;
  text += fmt::format(", the longest {}: {}", show_duration(tasks.longest_ran),
                      to_string(*tasks.longest));
  if (!spent.longest_item.empty()) text += fmt::format(" (item {})", spent.longest_item);
  return text;
}

std::string cpu_time(const TimeSpent& spent) {
  const double used = seconds(spent.tasks.cpu) / seconds(spent.tasks.ran);
  return fmt::format("cpu time {}: each kept {:.2f} cpus busy and asked for {}",
                     show_duration(spent.tasks.cpu), used, spent.cpus);
}

}  // namespace

std::vector<std::string> in_words(const TimeSpent& spent) {
  std::vector<std::string> lines;
  if (!spent.started) return lines;
  lines.push_back(begin_and_end(spent));
  if (spent.tasks.tasks > 0) lines.push_back(running(spent));
  if (spent.tasks.ran > Duration{}) lines.push_back(cpu_time(spent));
  if (spent.tasks.earlier_attempts > 0)
    lines.push_back(fmt::format("{} ran {} more",
                                show_count(spent.tasks.earlier_attempts, "earlier attempt"),
                                show_duration(spent.tasks.earlier_ran)));
  return lines;
}

boost::json::object to_json(const TimeSpent& spent) {
  const store::TaskTimes& tasks = spent.tasks;
  boost::json::object json{{"tasks", tasks.tasks},
                           {"run_s", seconds(tasks.ran)},
                           {"busy_s", seconds(tasks.busy)},
                           {"run_median_s", seconds(tasks.half_within)},
                           {"run_90_s", seconds(tasks.most_within)},
                           {"wait_median_s", seconds(tasks.half_waited)},
                           {"cpu_s", seconds(tasks.cpu)},
                           {"cpus_asked", spent.cpus},
                           {"earlier_attempts", tasks.earlier_attempts},
                           {"earlier_run_s", seconds(tasks.earlier_ran)},
                           {"estimate", tasks.is_estimate}};
  if (tasks.longest) {
    json["longest"] = to_string(*tasks.longest);
    json["longest_s"] = seconds(tasks.longest_ran);
    if (!spent.longest_item.empty()) json["longest_item"] = spent.longest_item;
  }
  return json;
}

}  // namespace hpcbatch
