#include "api/answers/where_time_went.hpp"

#include "api/answers/to_json.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {
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
