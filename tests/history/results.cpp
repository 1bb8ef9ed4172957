// G2: one terminal result per task; it is that of the attempt which ran; outputs are published once
// and before it.
#include "history/promise.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace hpcbatch::history {
namespace {

class Results : public Promise {
 public:
  Results(const Options& options, std::vector<Breach>& breaches)
      : Promise("G2", options, breaches) {}

  void see(std::size_t at, const Record& record) override {
    if (const std::string process = pilot_process(record); !process.empty()) {
      of_pilot(at, record, process);
    } else if (is_by_engine(record)) {
      of_engine(at, record);
    } else if (record.what == "lease-lost") {
      Task& task = tasks_[task_of(record)];
      const std::uint64_t epoch = number_of(record, "epoch");
      task.failed.insert(epoch);
      task.leases.erase(epoch);
    } else if (record.what == "pilot-killed") {
      gone_.insert(std::string(fact_of(record, "process")));
    }
  }

 private:
  struct Task {
    /// A result may be recorded later than what revived the task after it: both are counted.
    std::size_t results{0}, revivals{0};
    std::size_t result{0};  ///< the last
    bool has_result() const { return results > revivals; }
    std::map<std::uint64_t, std::size_t> leases;  ///< by epoch
    std::optional<std::size_t> published;
    std::uint64_t published_epoch{0};
    std::string published_by;
    std::map<std::uint64_t, std::pair<std::string, std::size_t>>
        ended;                                          ///< by epoch: what its pilot saw
    std::set<std::uint64_t> permitted, failed, staged;  ///< epochs
  };

  void of_pilot(std::size_t at, const Record& record, const std::string& process) {
    heard_.insert(pilot_of(process));
    if (record.what == "attempt-ended") {
      tasks_[task_of(record)].ended[number_of(record, "epoch")] = {
          std::string(fact_of(record, "failure")), at};
      if (fact_of(record, "staged") == "1")
        tasks_[task_of(record)].staged.insert(number_of(record, "epoch"));
    } else if (record.what == "published") {
      const TaskId id = task_of(record);
      Task& task = tasks_[id];
      const std::uint64_t epoch = number_of(record, "epoch");
      const bool took_over =
          task.failed.contains(task.published_epoch) || gone_.contains(task.published_by);
      if (task.published && task.published_epoch != epoch && !took_over) {
        broken(fmt::format("two attempts of {} published their outputs", to_string(id)),
               {*task.published, at});
      }
      if (task.has_result())
        broken(fmt::format("{} published after its result", to_string(id)), {task.result, at});
      task.published = at;
      task.published_epoch = epoch;
      task.published_by = process;
    }
  }

  void of_engine(std::size_t at, const Record& record) {
    if (record.what == "leased") {
      Task& task = tasks_[task_of(record)];
      task.leases[number_of(record, "epoch")] = at;
      if (task.has_result())
        broken(fmt::format("{} is leased though it has a result", to_string(task_of(record))),
               {task.result, at});
    } else if (record.what == "restored-lease") {
      tasks_[task_of(record)].leases.try_emplace(number_of(record, "epoch"), at);
    } else if (record.what == "attempt-failed") {
      // What it published nobody was told of: the next attempt puts its own in that place.
      tasks_[task_of(record)].failed.insert(number_of(record, "epoch"));
    } else if (record.what == "publish-permitted") {
      tasks_[task_of(record)].permitted.insert(number_of(record, "epoch"));
    } else if (record.what == "revived" || record.what == "restored-open") {
      for (const TaskId id : tasks_of(record)) {
        Task& task = tasks_[id];
        // What its store has not ended was revived; whether that may be, `submissions` says.
        if (record.what == "restored-open" && !task.has_result()) continue;
        ++task.revivals;
        task.published.reset();
      }
    } else if (record.what == "never-ran") {
      for (const TaskId id : tasks_of(record)) conclude(at, id);
    } else if (record.what == "result") {
      result(at, record);
    }
  }

  Task& conclude(std::size_t at, TaskId id) {
    Task& task = tasks_[id];
    if (task.has_result())
      broken(fmt::format("{} has two results", to_string(id)), {task.result, at});
    ++task.results;
    task.result = at;
    return task;
  }

  void result(std::size_t at, const Record& record) {
    const TaskId id = task_of(record);
    const std::uint64_t epoch = number_of(record, "epoch");
    Task& task = conclude(at, id);
    const auto newest = task.leases.rbegin();
    if ((newest == task.leases.rend() ? 0 : newest->first) != epoch) {
      broken(fmt::format("the result of {} is that of another attempt than the one leased last",
                         to_string(id)),
             {newest == task.leases.rend() ? at : newest->second, at});
    }
    if (fact_of(record, "failure") != "ok" ||
        !heard_.contains(std::string(fact_of(record, "pilot"))))
      return;
    const auto seen = task.ended.find(epoch);
    if (seen == task.ended.end()) {
      broken(fmt::format("{} has a good result, but its pilot never saw that attempt end",
                         to_string(id)),
             {at});
    } else if (seen->second.first != "ok") {
      broken(fmt::format("{} has a good result, but its attempt ended otherwise", to_string(id)),
             {seen->second.second, at});
    }
    const bool has_outputs = task.permitted.contains(epoch) || task.staged.contains(epoch);
    if (has_outputs && (!task.published || task.published_epoch != epoch)) {
      broken(fmt::format("{} has a good result before its outputs are there", to_string(id)), {at});
    }
  }

  std::unordered_map<TaskId, Task> tasks_;
  std::set<std::string> gone_;   ///< processes of pilots that were killed
  std::set<std::string> heard_;  ///< pilots whose own records are in this history
};

}  // namespace

std::unique_ptr<Promise> results(const Options& options, std::vector<Breach>& breaches) {
  return std::make_unique<Results>(options, breaches);
}

}  // namespace hpcbatch::history
