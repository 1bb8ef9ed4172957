// How a task is told that its time ends: its own grace, a signal before, and its pilot's end.
#include "decide_fixture.hpp"

#include <csignal>

namespace hpcbatch::pilot {
namespace {

class FarewellTest : public DecideTest {
 protected:
  void lease_with(Farewell farewell, Duration limit = {}) {
    d().leased(
        {.id = id_of(1), .granted = {{"cpus", 10000}}, .time_limit = limit, .farewell = farewell});
  }
  /// An end in an hour, and a minute behind it.
  void with_an_end() { pilot({{"cpus", 10000}}, {.usable_until = now_ + 1h, .margin = 65s}); }
};

TEST_F(FarewellTest, BehindItsLimitItHasHalfAMinute) {
  two_cpus();
  lease_with({}, 10min);
  expect("run 1");
  after(10min);
  expect("term 1 time_task");
  wakes_after(30s);
  expect("kill 1");
}

TEST_F(FarewellTest, ItsOwnGraceHoldsForEachEnd) {
  two_cpus();
  lease_with({.grace = 2min}, 10min);
  expect("run 1");
  d().kill_asked(id_of(1), Failure::Cancelled, false, now_);
  expect("term 1 cancelled");
  wakes_after(2min);
  expect("kill 1");
}

TEST_F(FarewellTest, ASignalComesBeforeItsLimit) {
  two_cpus();
  lease_with({.early_signal = SIGUSR1, .early = 2min}, 10min);
  expect("run 1");
  wakes_after(8min);
  expect("signal 1 10");
  wakes_after(2min);
  expect("term 1 time_task");
}

TEST_F(FarewellTest, ASignalThatIsAskedForGoesToWhatRuns) {
  two_cpus();
  lease_with({}, 10min);
  d().signal_asked({id_of(2), SIGUSR1});
  expect("run 1");
  d().signal_asked({id_of(1), SIGUSR1, SignalTo::Steps});
  expect("signal 1 10 steps");
  d().kill_asked(id_of(1), Failure::Cancelled, false, now_);
  d().signal_asked({id_of(1), SIGUSR1});
  expect("term 1 cancelled");
}

TEST_F(FarewellTest, OrBeforeItsPilotsEnd) {
  with_an_end();
  lease_with({.early_signal = SIGTERM, .early = 2min});
  expect("run 1");
  wakes_after(58min);
  expect("signal 1 15");
  wakes_after(2min);
  expect("leaving walltime; term 1 pilot_walltime");
}

TEST_F(FarewellTest, NoSignalComesOnceItHasEnded) {
  two_cpus();
  lease_with({.early_signal = SIGUSR1, .early = 2min}, 10min);
  expect("run 1");
  ended(1);
  after(9min);
  expect("");
}

TEST_F(FarewellTest, WhoWantsLongerThanThereIsBehindThePilotsEndIsToldSooner) {
  with_an_end();
  lease_with({.grace = 5min});
  expect("run 1");
  wakes_after(56min);  // a minute is behind the end, and four before it
  expect("term 1 pilot_walltime");
}

TEST_F(FarewellTest, ItKnowsWhenItsTimeEnds) {
  with_an_end();
  lease_with({}, 10min);
  EXPECT_EQ(std::get<Launch>(d().decide(now_).at(0)).left, 10min);
  ended(1);
  lease(2);
  EXPECT_EQ(std::get<Launch>(d().decide(now_).at(0)).left, 1h);
}

TEST_F(FarewellTest, WithoutAnyEndThereIsNone) {
  two_cpus();
  lease(1);
  EXPECT_FALSE(std::get<Launch>(d().decide(now_).at(0)).left);
}

}  // namespace
}  // namespace hpcbatch::pilot
