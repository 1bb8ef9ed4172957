// An engine alone, with as much work as is wanted: what one measures of it is its decisions.
#pragma once

#include "engine/engine.hpp"

#include <chrono>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace hpcbatch {

/// One site, one pilot of so many cpus, and time that goes on by a millisecond with each event.
class EngineAtWork {
 public:
  explicit EngineAtWork(std::int64_t cpus)
      : engine_(
            {site(cpus)}, Snapshot{.next_array = 1}, [] { return nullptr; }, 1, now_) {
    // The first task makes the engine ask for the pilot.
    submit(1, std::chrono::hours(1));
    for (const Action& action : actions_) {
      if (const auto* open = std::get_if<OpenAllocation>(&action)) pilot_ = {open->allocation, 0};
    }
    on(AllocationAccepted{pilot_.allocation, "1"});
    PilotRegistered here{.pilot = pilot_, .incarnation = 1, .node = "n"};
    here.capacity.set(kCpus, Amount::of(cpus));
    here.time_left = std::chrono::hours(1);
    on(here);
  }

  void submit(std::uint32_t count, std::optional<Duration> time = std::nullopt) {
    NewArray array;
    array.indices = IndexRange{1, count};
    array.needs.amounts.set(kCpus, Amount::of(1));
    array.needs.time = time;
    on(TasksSubmitted{RequestId{1}, "bench", "", 0, {array}, {}});
  }

  /// Ends everything that is leased, and what is leased for it, until nothing is.
  std::int64_t run() {
    std::int64_t ended = 0;
    while (!leased_.empty()) {
      const std::vector<AttemptId> round = std::exchange(leased_, {});
      on(AttemptsStarted{pilot_, round});
      AttemptsEnded ends{pilot_, {}};
      for (const AttemptId& attempt : round) {
        Outcome outcome;
        outcome.started = now_;
        outcome.ended = now_;
        ends.ends.push_back({attempt, outcome, false});
      }
      ended += static_cast<std::int64_t>(round.size());
      on(ends);
    }
    return ended;
  }

 private:
  static Site site(std::int64_t cpus) {
    Shape shape{.name = "all", .walltime = std::chrono::hours(12)};
    shape.capacity.set(kCpus, Amount::of(cpus));
    return {.name = "here", .scheduler = "local", .transport = "shared_fs", .shapes = {shape}};
  }
  void on(const Event& event) {
    now_ += std::chrono::milliseconds(1);
    actions_ = engine_.on(event, now_);
    for (const Action& action : actions_) {
      if (const auto* sent = std::get_if<SendLeases>(&action)) {
        for (const auto& lease : sent->leases) leased_.push_back(lease.attempt);
      }
    }
  }

  Time now_{from_microseconds(1'700'000'000'000'000)};
  Engine engine_;
  Actions actions_;
  PilotId pilot_;
  std::vector<AttemptId> leased_;
};

}  // namespace hpcbatch
