// G3: one current attempt per task.  Silence alone never leases again; only the current attempt may
// publish; who is fenced off starts nothing.
#include "history/promise.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace hpcbatch::history {
namespace {

class Attempts : public Promise {
 public:
  Attempts(const Options& options, std::vector<Breach>& breaches)
      : Promise("G3", options, breaches) {}

  void see(std::size_t at, const Record& record) override {
    if (const std::string process = pilot_process(record); !process.empty()) {
      of_pilot(at, record, process);
    } else if (is_by_engine(record)) {
      of_engine(at, record);
    } else if (record.what == "job-ended") {
      ended_allocations_.try_emplace(std::string(fact_of(record, "name")), at);
    } else if (record.what == "lease-lost") {
      Task& task = tasks_[task_of(record)];
      const auto lease = task.leases.find(number_of(record, "epoch"));
      if (lease != task.leases.end()) lease->second.lost = true;
    } else if (record.what == "pilot-killed") {
      gone_.try_emplace(std::string(fact_of(record, "process")), at);
    }
  }

 private:
  struct Lease {
    std::string pilot;
    std::size_t at{0};
    bool open{false};
    std::optional<std::size_t> permitted;
    std::optional<std::size_t> started;
    std::string process;
    bool ended{false};
    bool lost{false};  ///< with the power of the engine's machine
  };
  struct Task {
    std::map<std::uint64_t, Lease> leases;  ///< by epoch
  };

  /// The batch system, or a later process of the same pilot, proves that this one runs nothing any
  /// more.
  bool is_gone(const Lease& lease) const {
    if (lease.lost) return true;
    if (ended_allocations_.contains(allocation_of(lease.pilot)) || gone_.contains(lease.process))
      return true;
    const auto newest = newest_.find(lease.pilot);
    return newest != newest_.end() && newest->second != lease.process;
  }

  /// An engine that was killed may have had no time to record how a lease ended; its store knows.
  void restored() {
    for (auto& [id, task] : tasks_) {
      for (auto& [epoch, lease] : task.leases) lease.open = lease.open && restored_.contains(epoch);
    }
    restored_.clear();
  }

  void of_engine(std::size_t at, const Record& record) {
    if (record.what == "restored-lease") {
      const std::uint64_t epoch = number_of(record, "epoch");
      restored_.insert(epoch);
      tasks_[task_of(record)].leases.try_emplace(
          epoch, Lease{.pilot = std::string(fact_of(record, "pilot")), .at = at, .open = true});
    } else if (record.what == "restored") {
      restored();
    } else if (record.what == "leased") {
      leased(at, record);
    } else if (record.what == "attempt-failed" || record.what == "result") {
      Task& task = tasks_[task_of(record)];
      const auto lease = task.leases.find(number_of(record, "epoch"));
      if (lease != task.leases.end()) lease->second.open = false;
    } else if (record.what == "lease-returned") {
      for (auto& [epoch, lease] : tasks_[task_of(record)].leases) lease.open = false;
    } else if (record.what == "publish-permitted") {
      const TaskId id = task_of(record);
      Task& task = tasks_[id];
      const auto lease = task.leases.find(number_of(record, "epoch"));
      if (lease == task.leases.end() || !lease->second.open) {
        broken(fmt::format("an attempt of {} that is not current may publish", to_string(id)),
               {at});
      } else {
        lease->second.permitted = at;
      }
    } else if (record.what == "allocation-ended") {
      ended_allocations_.try_emplace(std::string(fact_of(record, "allocation")), at);
    }
  }

  void leased(std::size_t at, const Record& record) {
    const TaskId id = task_of(record);
    Task& task = tasks_[id];
    const std::uint64_t epoch = number_of(record, "epoch");
    if (!task.leases.empty() && task.leases.rbegin()->first >= epoch) {
      broken(fmt::format("an attempt of {} has an epoch that is not newer than the one before",
                         to_string(id)),
             {task.leases.rbegin()->second.at, at});
    }
    for (const auto& [old, lease] : task.leases) {
      if (lease.open && !lease.lost) {
        broken(fmt::format("{} is leased while it is leased", to_string(id)), {lease.at, at});
      } else if (lease.started && !lease.ended && !is_gone(lease)) {
        broken(fmt::format("{} is leased again while {} still runs it", to_string(id), lease.pilot),
               {lease.at, *lease.started, at});
      }
    }
    task.leases[epoch] = {.pilot = std::string(fact_of(record, "pilot")), .at = at, .open = true};
  }

  void of_pilot(std::size_t at, const Record& record, const std::string& process) {
    if (record.what == "pilot-started") {
      newest_[pilot_of(process)] = process;
    } else if (record.what == "fenced") {
      fenced_.try_emplace(process, at);
    } else if (record.what == "pilot-ended") {
      gone_.try_emplace(process, at);
    } else if (record.what == "attempt-started") {
      started(at, record, process);
    } else if (record.what == "attempt-ended") {
      Task& task = tasks_[task_of(record)];
      const auto lease = task.leases.find(number_of(record, "epoch"));
      if (lease != task.leases.end()) lease->second.ended = true;
    } else if (record.what == "published") {
      published(at, record, process);
    }
  }

  void started(std::size_t at, const Record& record, const std::string& process) {
    const TaskId id = task_of(record);
    Task& task = tasks_[id];
    if (const auto fenced = fenced_.find(process); fenced != fenced_.end()) {
      broken(fmt::format("{} starts {} though it is fenced off", process, to_string(id)),
             {fenced->second, at});
    }
    const auto found = task.leases.find(number_of(record, "epoch"));
    if (found == task.leases.end() || found->second.pilot != pilot_of(process)) {
      broken(fmt::format("{} starts an attempt of {} that was never leased to it", process,
                         to_string(id)),
             {at});
      return;
    }
    Lease& lease = found->second;
    if (lease.started)
      broken(fmt::format("one attempt of {} starts twice", to_string(id)), {*lease.started, at});
    lease.process = process;
    const auto newest = std::prev(task.leases.end());
    if (newest != found && !is_gone(lease)) {
      broken(fmt::format("an attempt of {} starts after a newer one was leased", to_string(id)),
             {newest->second.at, at});
    }
    lease.started = at;
  }

  void published(std::size_t at, const Record& record, const std::string& process) {
    const TaskId id = task_of(record);
    Task& task = tasks_[id];
    const auto lease = task.leases.find(number_of(record, "epoch"));
    if (lease == task.leases.end() || !lease->second.permitted) {
      broken(fmt::format("{} publishes outputs of {} without permission", process, to_string(id)),
             {at});
    } else if (!lease->second.open && !is_gone(lease->second)) {
      broken(fmt::format("an attempt of {} that is no longer current publishes", to_string(id)),
             {lease->second.at, at});
    }
  }

  std::unordered_map<TaskId, Task> tasks_;
  std::set<std::uint64_t>
      restored_;  ///< epochs of the leases that the engine found when it started
  std::map<std::string, std::size_t> ended_allocations_, fenced_, gone_;
  std::map<std::string, std::string> newest_;  ///< by pilot, its newest process
};

}  // namespace

std::unique_ptr<Promise> attempts(const Options& options, std::vector<Breach>& breaches) {
  return std::make_unique<Attempts>(options, breaches);
}

}  // namespace hpcbatch::history
