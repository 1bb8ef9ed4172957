// How a pilot ends, and what it leaves for the engine.
#include "decide_fixture.hpp"

#include <csignal>

namespace hpcbatch::pilot {
namespace {

class DecideEndTest : public DecideTest {};

TEST_F(DecideEndTest, WithNothingToDoItEnds) {
  pilot({{"cpus", 10000}}, {.usable_until = {}, .margin = {}, .idle = 60s});
  after(59s);
  expect("");
  lease(1);
  expect("run 1");
  after(300s);
  ended(1);
  expect("");
  d().acknowledged(id_of(1), now_);
  expect("forget 1");
  wakes_after(60s);
  expect("leaving idle");
  lease(2);
  expect("return 2");
  wakes_after(5s);
  expect("exit 0");
}

TEST_F(DecideEndTest, AnIdlePilotThatIsToldToEndDoesNotWait) {
  pilot({{"cpus", 10000}}, {.usable_until = {}, .margin = {}, .idle = 60s});
  after(60s);
  expect("leaving idle");
  d().must_leave(LeaveCause::EngineEnds, now_);
  expect("exit 0");
}

TEST_F(DecideEndTest, WhoeverHasNotFoundTheEngineYetIsNotIdle) {
  decide_.emplace(Room({{"cpus", 10000}}, {}),
                  Terms{.usable_until = {}, .margin = {}, .idle = 60s, .until_found = 3min}, now_);
  after(100s);
  expect("");
  d().welcomed(now_);
  wakes_after(60s);
  expect("leaving idle");
}

TEST_F(DecideEndTest, WithoutAnEngineItEndsToo) {
  decide_.emplace(Room({{"cpus", 10000}}, {}), Terms{}, now_);
  wakes_after(10min);
  expect("leaving idle; exit 0");
}

TEST_F(DecideEndTest, WithoutAnEngineItWorksOnAndLeavesItsResults) {
  pilot({{"cpus", 10000}}, {.usable_until = {}, .margin = {}, .idle = 60s});
  lease(1);
  lease(2);
  expect("run 1");
  d().link_lost();
  ended(1);
  expect("run 2");
  ended(2);
  expect("");
  wakes_after(60s);
  expect("leaving idle; outbox");
  expect("exit 0");
}

TEST_F(DecideEndTest, TermEndsTheTasksGivesBackTheRestAndReports) {
  two_cpus();
  for (const unsigned n : {1U, 2U, 3U}) lease(n);
  expect("run 1; run 2");
  ended(2, true);
  expect("run 3");
  lease(4);
  d().must_leave(LeaveCause::Terminated, now_);
  d().must_leave(LeaveCause::Terminated, now_);
  expect_in_any_order(
      {"term 1 pilot_killed", "term 3 pilot_killed", "leaving terminated", "return 4"});
  ended(1);
  ended(3);
  expect("outbox");
  expect("");
  wakes_after(5s);
  expect("discard 2; fail 2 pilot_killed; outbox");
  for (const unsigned n : {1U, 2U, 3U}) d().acknowledged(id_of(n), now_);
  expect("forget 1; forget 2; forget 3; outbox; exit 0");
}

TEST_F(DecideEndTest, TermWithoutALinkLeavesTheOutbox) {
  writes_down_what_it_ran();
  expect("exit 0");
}

TEST_F(DecideEndTest, ToldToEndItWritesDownAtOnceWhatNobodyHasAcknowledged) {
  two_cpus();
  lease(1);
  lease(2);
  expect("run 1; run 2");
  ended(1);
  expect("");
  d().must_leave(LeaveCause::Terminated, now_);
  expect("leaving terminated; term 2 pilot_killed; outbox");
  expect("");
  ended(2);
  expect("outbox");
  expect("");
}

TEST_F(DecideEndTest, AnOutboxThatCannotBeWrittenIsTriedAgainWhileThereIsTime) {
  writes_down_what_it_ran();
  d().outbox_failed(now_);
  expect("");
  wakes_after(1s);
  expect("outbox");
  d().outbox_failed(now_);
  for (int second = 2; second < 20; ++second) {
    wakes_after(1s);
    expect("outbox");
    d().outbox_failed(now_);
  }
  wakes_after(1s);
  expect("outbox");
  d().outbox_failed(now_);
  expect("exit 0");
}

TEST_F(DecideEndTest, BeforeItLeavesWithoutItsOutboxItTriesOnceMore) {
  writes_down_what_it_ran();
  d().outbox_failed(now_);
  // It looks in between as well: the last try was a while ago when its time is up.
  for (int second = 1; second < 20; ++second) {
    after(1s);
    expect("outbox");
    d().outbox_failed(now_);
  }
  after(999ms);
  expect("");
  after(1ms + 500us);
  expect("outbox");
  expect("exit 0");
}

TEST_F(DecideEndTest, TermWithinTheMarginIsTheWalltime) {
  pilot({{"cpus", 10000}}, {.usable_until = now_ + 100s, .margin = 30s, .idle = {}});
  lease(1);
  expect("run 1");
  after(80s);
  d().must_leave(LeaveCause::Terminated, now_);
  expect("leaving walltime; term 1 pilot_walltime");
}

TEST_F(DecideEndTest, FencedOffItLeavesTheOutboxOfAnEarlierProcessToTheEngine) {
  two_cpus();
  d().found_result(id_of(7), 100);
  d().must_leave(LeaveCause::Fenced, now_);
  expect("leaving fenced; forget 7; exit 0");
}

TEST_F(DecideEndTest, FencedOffItKillsEverythingAndReportsNothing) {
  pilot({{"cpus", 30000}});
  for (const unsigned n : {1U, 2U, 3U, 4U}) lease(n);
  expect("run 1; run 2; run 3");
  ended(2);
  ended(3, true);
  expect("run 4");
  lease(5, {{"cpus", 30000}});
  d().must_leave(LeaveCause::Fenced, now_);
  expect_in_any_order({"discard 3", "forget 3", "forget 2", "kill 1 cancelled", "kill 4 cancelled",
                       "forget 5", "leaving fenced"});
  ended(1);
  ended(4);
  expect("forget 1; forget 4; exit 0");
}

TEST_F(DecideEndTest, GivenUpItFinishesWhatRunsAndLeavesTheOutbox) {
  pilot({{"cpus", 10000}});
  lease(1);
  lease(2);
  expect("run 1");
  d().link_lost();
  d().must_leave(LeaveCause::GivenUp, now_);
  d().must_leave(LeaveCause::GivenUp, now_);
  expect("return 2; leaving given up");
  after(1h);
  ended(1);
  expect("outbox");
  expect("exit 0");
}

TEST_F(DecideEndTest, GivenUpWithNothingToDoItEndsAtOnce) {
  pilot({{"cpus", 10000}}, {.usable_until = now_ + 10h, .margin = 10s, .idle = {}});
  expect("");
  d().link_lost();
  d().must_leave(LeaveCause::GivenUp, now_);
  ASSERT_TRUE(d().next());
  EXPECT_LE(*d().next(), now_) << "it is told between two rounds of the loop, which must not sleep";
  expect("leaving given up; exit 0");
}

TEST_F(DecideEndTest, FailedChecksAreToldBeforeItLeaves) {
  decide_.emplace(Room({{"cpus", 10000}}, {}), Terms{}, now_);
  d().must_leave(LeaveCause::ChecksFailed, now_);
  expect("leaving failed checks");
  after(20s);
  expect("");
  d().welcomed(now_);
  lease(1);
  expect("return 1");
  wakes_after(5s);
  expect("exit 4");
}

TEST_F(DecideEndTest, FailedChecksWithoutAnEngineEndToo) {
  decide_.emplace(Room({{"cpus", 10000}}, {}), Terms{}, now_);
  d().must_leave(LeaveCause::ChecksFailed, now_);
  expect("leaving failed checks");
  wakes_after(30s);
  expect("exit 4");
}

TEST_F(DecideEndTest, ManyUnacknowledgedResultsGoToTheOutbox) {
  two_cpus();
  for (unsigned n = 1; n <= 3; ++n) {
    lease(n);
    expect("run " + std::to_string(n));
    EXPECT_TRUE(d().ended(id_of(n), false, 600'000, now_));
    expect(n == 2 ? "outbox" : "");
  }
  for (unsigned n = 1; n <= 3; ++n) d().acknowledged(id_of(n), now_);
  expect("forget 1; forget 2; forget 3; outbox");
  expect("");
}

TEST_F(DecideEndTest, ResultsFoundInTheOutboxAreDelivered) {
  two_cpus();
  d().found_result(id_of(5), 100);
  expect("");
  EXPECT_EQ(d().state_of(id_of(5)), Decide::State::Delivered);
  d().acknowledged(id_of(5), now_);
  expect("forget 5; outbox");
}

}  // namespace
}  // namespace hpcbatch::pilot
