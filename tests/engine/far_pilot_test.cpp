// A pilot whose link takes its time has as much waiting as keeps it busy meanwhile, and no more.
#include "engine_test.hpp"

#include <deque>
#include <set>

namespace hpcbatch {
namespace {

class FarPilotTest : public EngineTest {
 protected:
  void link_takes(Duration round_trip, const std::string& name = "A0") {
    happens(LinkMeasured{pilot(name), round_trip});
  }
  /// Teaches the engine that tasks of one cpu take about this long.
  void tasks_take(Duration run, const std::string& id = "2") {
    submit(New());
    ends(id, Failure::Ok, run);
    forget_what_was_asked();
  }
  std::size_t leases() const { return engine_->pilots().leases().size(); }
};

/// Far from the engine A0 works: what each of the two says reaches the other half a round trip
/// later.
class Distance {
 public:
  static constexpr Duration kTick = 1ms;
  static constexpr Duration kCompany = 20ms;  // results wait so long for others
  static constexpr Duration kWritten = 10ms;  // and leases for the disk

  Distance(Duration round_trip, std::size_t slots, Duration run)
      : way_(round_trip / 2), slots_(slots), run_(run) {}

  /// What has come to A0 by now starts, what is over ends; returns the ends that have reached the
  /// engine.
  AttemptsEnded pass(const PilotTable& pilots, const PilotId& pilot, Time now) {
    for (const TaskId task : pilots.find(pilot)->leases) {
      if (seen_.insert(task).second)
        coming_.push_back({now + way_ + kWritten, pilots.lease(task)->attempt});
    }
    while (!running_.empty() && running_.front().at <= now) {
      if (gathered_.empty()) say_at_ = now + kCompany;
      gathered_.push_back(running_.front());
      running_.pop_front();
    }
    while (!coming_.empty() && coming_.front().at <= now) {
      waiting_.push_back(coming_.front().attempt);
      coming_.pop_front();
    }
    while (running_.size() < slots_ && !waiting_.empty()) {
      running_.push_back({now + run_, waiting_.front()});
      waiting_.pop_front();
    }
    idle_ += kTick * (slots_ - running_.size());
    if (!gathered_.empty() && say_at_ <= now) {
      said_.push_back({now + way_, std::exchange(gathered_, {})});
    }
    AttemptsEnded ended{pilot, {}};
    while (!said_.empty() && said_.front().at <= now) {
      for (const Due& due : said_.front().ends) {
        AttemptEnd end{due.attempt, {}, false};
        end.outcome.started = due.at - run_;
        end.outcome.ended = due.at;
        ended.ends.push_back(std::move(end));
      }
      said_.pop_front();
    }
    return ended;
  }
  /// Slots without work since this was asked the last time, in their time together.
  Duration idle() { return std::exchange(idle_, {}); }

 private:
  struct Due {
    Time at;
    AttemptId attempt;
  };
  struct Said {
    Time at;
    std::vector<Due> ends;
  };
  Duration way_;
  std::size_t slots_;
  Duration run_;
  std::set<TaskId> seen_;
  std::deque<Due> coming_, running_;
  std::deque<AttemptId> waiting_;
  std::vector<Due> gathered_;
  Time say_at_{};
  std::deque<Said> said_;
  Duration idle_{0};
};

TEST_F(FarPilotTest, NeverRunsDry) {
  walks_invariants = false;  // an hour of 64 slots: a million events
  constexpr std::size_t kSlots = 64;
  constexpr Duration kTrip = 300ms;
  Shape large = cpu_shape();
  large.capacity.set(kCpus, Amount::of(kSlots));
  given({site_of("here", {large})});
  given_pilot(1h, large.capacity);
  link_takes(kTrip);
  Distance distance(kTrip, kSlots, 50ms);
  submit(New().array(1, 6000));
  const Time first = now_;
  bool is_under_way = false;
  while (engine_->tasks().queue().size() != 0) {
    now_ += Distance::kTick;
    const AttemptsEnded ended = distance.pass(engine_->pilots(), pilot("A0"), now_);
    if (!ended.ends.empty()) happens(ended);
    // How long a task takes, the engine learns by the first: that costs a round trip.
    if (!is_under_way && now_ - first > 2 * kTrip) {
      is_under_way = true;
      distance.idle();
    }
    ASSERT_LT(now_ - first, 1min);
  }
  EXPECT_TRUE(is_under_way);
  EXPECT_EQ(distance.idle(), Duration{});
  cancel("2");
  forget_what_was_asked();
}

TEST_F(FarPilotTest, ANearOneGetsWhatItAlwaysGot) {
  given_pilot();
  link_takes(0ms);
  tasks_take(10ms);
  submit(New().array(1, 20000));
  expect({"accept 3", "lease 3.1-104 to A0"});
}

TEST_F(FarPilotTest, WhenItsLinkGetsSlowerItGetsMoreAtOnce) {
  given_pilot();
  tasks_take(10ms);
  submit(New().array(1, 20000));
  expect({"accept 3", "lease 3.1-104 to A0"});
  link_takes(300ms);
  expect({"lease 3.105-464 to A0"});  // 250 ms and three round trips of work for four cpus
}

TEST_F(FarPilotTest, NoLinkIsSoSlowThatAllIsHoarded) {
  given_pilot();
  tasks_take(10ms);
  link_takes(10min);
  submit(New().array(1, 20000));
  EXPECT_EQ(leases(), 4U + 4000U);
  forget_what_was_asked();
}

TEST_F(FarPilotTest, WhatWasKnownOfALinkEndsWithIt) {
  given_pilot();
  tasks_take(10ms);
  link_takes(300ms);
  disconnects("A0");
  registers("A0");
  forget_what_was_asked();
  submit(New().array(1, 20000));
  expect({"accept 3", "lease 3.1-104 to A0"});
}

TEST_F(FarPilotTest, ItsAnswerToARecallIsWaitedForLonger) {
  given_pilot();
  tasks_take(10ms);
  link_takes(5s);
  submit(New().array(1, 44));
  forget_what_was_asked();
  submit(New().array(1, 10).time(30min).on_hold());
  hold("4", false);
  cancel("4");
  accepts("B");
  forget_what_was_asked();
  registers("B0");
  expect({"welcome B0", "recall 20 from A0"});
  after(6s);
  expect_nothing();
  after(1s);
  expect({"recall 20 from A0"});
}

}  // namespace
}  // namespace hpcbatch
