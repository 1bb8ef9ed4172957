// AMP's five scheduling cases in virtual time: one GPU, a batch system that runs jobs in the order
// in which they are queued, other people's jobs between AMP's.  Natively the span is up to 7.5 h;
// through pilots it is the tasks' own hour.
#include "engine/engine.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

struct Queued {
  std::string name;
  Duration length{};
  bool is_amps() const { return name[0] == 'A'; }
};

struct Seen {
  Duration starts_after{};
  Duration span{};
};

const std::map<std::string, Duration> kLengths{{"G1", 2h},    {"G2", 4h},    {"G3", 1h},
                                               {"G4", 90min}, {"A1", 15min}, {"A2", 10min},
                                               {"A3", 10min}, {"A4", 10min}, {"A5", 15min}};

struct Case {
  std::vector<std::string> order;
  Duration starts_after;
  Duration native_span;
};

const std::vector<Case> kCases{
    {{"G1", "G2", "G3", "G4", "A1", "A2", "A3", "A4", "A5"}, 8h + 30min, 1h},
    {{"G1", "A1", "G2", "A2", "G3", "A3", "G4", "A4", "A5"}, 2h, 7h + 30min},
    {{"G1", "A1", "G2", "A2", "A3", "A4", "G3", "A5", "G4"}, 2h, 6h},
    {{"G1", "A1", "A2", "A3", "A4", "A5", "G2", "G3", "G4"}, 2h, 1h},
    {{"G1", "A1", "A2", "G2", "A3", "A4", "A5", "G3", "G4"}, 2h, 5h},
};

Seen run_natively(const Case& amp) {
  Duration clock{};
  std::optional<Duration> first;
  Duration last{};
  for (const std::string& name : amp.order) {
    const Duration end = clock + kLengths.at(name);
    if (name[0] == 'A') {
      if (!first) first = clock;
      last = end;
    }
    clock = end;
  }
  return {*first, last - *first};
}

/// The engine, one pilot after another, and the batch system, each at its own pace; nothing takes
/// time but the jobs.
class ThroughPilots {
 public:
  explicit ThroughPilots(const Case& amp) {
    Shape gpu{.name = "gpu", .walltime = 4h};
    gpu.capacity.set(kCpus, Amount::of(4));
    gpu.capacity.set("gpus/a100", Amount::of(1));
    Site site{.name = "cluster", .shapes = {gpu}};
    engine_ = std::make_unique<Engine>(
        std::vector{site}, Snapshot{.engine_name = "abcde"}, [] { return nullptr; }, 1, now_);
    // Who is queued when: AMP's jobs are submitted when their turn to be queued comes, all before
    // the first ends.
    for (const std::string& name : amp.order) {
      if (name[0] == 'A') {
        submit(name);
      } else {
        queue_.push_back({name, kLengths.at(name)});
      }
    }
  }

  Seen run() {
    const Time begin = now_;
    for (int step = 0; step < 100'000 && ended_ < 5; ++step) advance();
    EXPECT_EQ(ended_, 5);
    EXPECT_LE(allocations_, 1) << "one wait in the queue serves them all";
    return {*first_start_ - begin, last_end_ - *first_start_};
  }

 private:
  void submit(const std::string& name) {
    NewArray task{.indices = IndexSet(IndexRange{0, 0})};
    task.needs.amounts.set(kCpus, Amount::of(1));
    task.needs.amounts.set(kAnyGpu, Amount::of(1));
    ++submitted_;
    lengths_[ArrayId{submitted_}] = kLengths.at(name);
    feed(TasksSubmitted{RequestId{1}, "amp", "", 0, {task}, {}});
  }

  void feed(const Event& event) {
    std::deque<Event> events{event};
    while (!events.empty()) {
      const Actions actions = engine_->on(events.front(), now_);
      engine_->check_invariants();
      events.pop_front();
      for (const Action& action : actions) {
        if (const auto* open = std::get_if<OpenAllocation>(&action)) {
          ++allocations_;
          queue_.push_back({"pilot", 0s});
          pilot_ = PilotId{open->allocation, 0};
          events.push_back(AllocationAccepted{open->allocation, "1"});
        } else if (const auto* send = std::get_if<SendLeases>(&action)) {
          for (const SendLeases::Lease& lease : send->leases) leased_.push_back(lease.attempt);
        } else if (const auto* poll = std::get_if<PollSite>(&action)) {
          const BatchState state = pilot_runs_ ? BatchState::Running : BatchState::Queued;
          SitePolled polled{poll->site, {}, now_};
          if (allocations_ != 0)
            polled.jobs.push_back({.name = pilot_.allocation.name, .number = "1", .state = state});
          events.push_back(polled);
        }
      }
    }
  }

  void advance() {
    if (gpu_free_at_ <= now_ && !pilot_runs_) {
      if (queue_.empty()) return;
      const Queued next = queue_.front();
      queue_.pop_front();
      if (next.name == "pilot") {
        pilot_runs_ = true;
        Resources capacity;
        capacity.set(kCpus, Amount::of(4));
        capacity.set("gpus/a100", Amount::of(1));
        feed(PilotRegistered{pilot_, 1, "node", capacity, 4h - 90s, {}, "1", {}});
      } else {
        gpu_free_at_ = now_ + next.length;
      }
    }
    if (pilot_runs_ && !running_ && !leased_.empty()) {
      running_ = leased_.front();
      leased_.pop_front();
      task_ends_ = now_ + lengths_.at(running_->task.array);
      if (!first_start_) first_start_ = now_;
      feed(AttemptsStarted{pilot_, {*running_}});
    }
    // The next thing that happens.
    Time next = now_ + 1h;
    if (gpu_free_at_ > now_) next = std::min(next, gpu_free_at_);
    if (running_) next = std::min(next, task_ends_);
    if (const auto wake = engine_->next_wake()) next = std::min(next, std::max(*wake, now_));
    now_ = next;
    if (running_ && now_ >= task_ends_) {
      AttemptEnd done{*std::exchange(running_, std::nullopt), {}, false};
      done.outcome.started = now_ - lengths_.at(done.attempt.task.array);
      done.outcome.ended = last_end_ = now_;
      ++ended_;
      feed(AttemptsEnded{pilot_, {done}});
    } else {
      feed(TimePassed{});
    }
  }

  Time now_{from_microseconds(1'700'000'000'000'000)};
  std::unique_ptr<Engine> engine_;
  std::deque<Queued> queue_;
  std::map<ArrayId, Duration> lengths_;
  std::uint64_t submitted_{0};
  PilotId pilot_;
  bool pilot_runs_{false};
  std::deque<AttemptId> leased_;
  std::optional<AttemptId> running_;
  Time task_ends_{};
  Time gpu_free_at_{};
  std::optional<Time> first_start_;
  Time last_end_{};
  int ended_{0};
  int allocations_{0};
};

TEST(AmpCases, NativelyAsAmpPublishedThem) {
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    const Seen seen = run_natively(kCases[i]);
    EXPECT_EQ(seen.starts_after, kCases[i].starts_after) << "case " << i + 1;
    EXPECT_EQ(seen.span, kCases[i].native_span) << "case " << i + 1;
  }
}

TEST(AmpCases, ThroughPilotsTheSpanIsTheTasksOwnHour) {
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    const Seen seen = ThroughPilots(kCases[i]).run();
    EXPECT_EQ(seen.span, 1h) << "case " << i + 1;
    EXPECT_LE(seen.starts_after, kCases[i].starts_after) << "case " << i + 1;
  }
}

}  // namespace
}  // namespace hpcbatch
