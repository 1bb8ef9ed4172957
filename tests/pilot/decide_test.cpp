// What a pilot starts, stops and gives back.
#include "decide_fixture.hpp"

#include <csignal>

namespace hpcbatch::pilot {
namespace {

TEST_F(DecideTest, StartsWhatFitsAndTheNextWhenOneEnds) {
  two_cpus();
  for (unsigned n : {1U, 2U, 3U, 4U}) lease(n);
  expect("run 1; run 2");
  ended(1);
  expect("run 3");
  ended(3);
  ended(2);
  expect("run 4");
  d().acknowledged(id_of(1), now_);
  d().acknowledged(id_of(1), now_);
  expect("forget 1");
}

TEST_F(DecideTest, ARepeatedLeaseChangesNothing) {
  two_cpus();
  lease(1);
  lease(1);
  expect("run 1");
  lease(1);
  expect("");
  ended(1);
  lease(1);
  expect("");
}

TEST_F(DecideTest, ASmallTaskPassesALargeOneButNotForEver) {
  two_cpus();
  lease(1);
  expect("run 1");
  lease(100, {{"cpus", 20000}});
  lease(2);
  expect("run 2");
  for (unsigned n = 3; n < 200; ++n) lease(n);
  unsigned running = 2;
  unsigned started = 0;
  for (;; ++started) {
    ended(running);
    const auto actions = d().decide(now_);
    if (actions.empty()) break;
    ASSERT_EQ(actions.size(), 1U);
    running = static_cast<unsigned>(std::get<Launch>(actions[0]).id.array);
    ASSERT_NE(running, 100U);
  }
  EXPECT_EQ(started, 63U);
  ended(1);
  expect("run 100");
}

TEST_F(DecideTest, CountsMemoryGpusAndWhatElseTheNodeHas) {
  pilot(
      {{"cpus", 80000}, {"memory", 100}, {"gpus/a100", 20000}, {"gpus/v100", 10000}, {"disk", 50}});
  lease(1, {{"cpus", 10000}, {"memory", 60}});
  lease(2, {{"cpus", 10000}, {"memory", 50}});
  lease(3, {{"cpus", 10000}, {"gpus/v100", 10000}});
  lease(4, {{"cpus", 10000}, {"gpus/a100", 20000}});
  lease(5, {{"cpus", 10000}, {"gpus/a100", 10000}});
  lease(6, {{"cpus", 10000}, {"disk", 40}, {"licence", 70000}});
  lease(7, {{"cpus", 10000}, {"disk", 40}});
  expect("run 1; run 3 gpus 2; run 4 gpus 0,1; run 6");
  ended(4);
  expect("run 5 gpus 0");
  ended(1);
  ended(6);
  expect("run 2; run 7");
}

TEST_F(DecideTest, PartsOfAGpuShareOneDevice) {
  pilot({{"cpus", 80000}, {"gpus/a100", 20000}});
  for (unsigned n : {1U, 2U, 3U}) lease(n, {{"gpus/a100", 5000}});
  lease(4, {{"gpus/a100", 10000}});
  expect("run 1 gpus 0; run 2 gpus 0; run 3 gpus 1");
  ended(3);
  expect("run 4 gpus 1");
}

TEST_F(DecideTest, BindsWholeCpusOnly) {
  pilot({{"cpus", 40000}}, {}, {4, 5, 6, 7});
  lease(1, {{"cpus", 20000}});
  lease(2, {{"cpus", 5000}});
  lease(3, {{"cpus", 10000}});
  expect("run 1 cpus 4,5; run 2; run 3 cpus 6");
  ended(1);
  lease(4, {{"cpus", 20000}});
  expect("run 4 cpus 4,5");
}

TEST_F(DecideTest, GivesBackWhatItCouldNeverRun) {
  two_cpus();
  lease(1, {{"cpus", 30000}});
  lease(2, {{"cpus", 10000}, {"gpus/a100", 10000}});
  expect("return 1; return 2");
  EXPECT_TRUE(d().held().empty());
}

TEST_F(DecideTest, WhatIsHandedBackLeavesItsRoom) {
  two_cpus();
  for (unsigned n : {1U, 2U, 3U}) lease(n);
  expect("run 1; run 2");
  d().handed_back(id_of(1), now_);
  expect("return 1; run 3");
  d().handed_back(id_of(1), now_);
  expect("");
  // Nobody wants to hear of one that the engine has given up.
  d().kill_asked(id_of(2), Failure::Cancelled, true, now_);
  expect("kill 2 cancelled");
  d().handed_back(id_of(2), now_);
  expect("forget 2");
  EXPECT_EQ(d().running(), 1U);
}

TEST_F(DecideTest, WhatPreparesForWorkIsNotIdle) {
  pilot({{"cpus", 10000}}, {.usable_until = {}, .margin = {}, .idle = 60s});
  lease(1);
  expect("run 1");
  d().handed_back(id_of(1), now_);
  d().preparing(true);
  expect("return 1");
  EXPECT_EQ(d().next(), std::nullopt);
  after(600s);
  expect("");
  d().preparing(false);
  wakes_after(60s);
  expect("leaving idle");
}

TEST_F(DecideTest, WhatPreparesForNobodyIsIdle) {
  pilot({{"cpus", 10000}}, {.usable_until = {}, .margin = {}, .idle = 60s});
  d().preparing(true);
  after(600s);
  expect("");
  d().link_lost();
  wakes_after(60s);
  expect("leaving idle; exit 0");
}

TEST_F(DecideTest, RecallTakesTheNewestThatHaveNotStarted) {
  two_cpus();
  for (unsigned n : {1U, 2U, 3U, 4U, 5U}) lease(n);
  expect("run 1; run 2");
  d().recalled(2);
  expect("return 5; return 4");
  d().recalled(10);
  expect("return 3");
}

TEST_F(DecideTest, RecallLeavesRoomThatIsHeldForOthers) {
  two_cpus();
  for (unsigned n : {1U, 2U, 3U}) lease(n);
  pilot::Lease held{.id = id_of(4), .granted = {{"cpus", 10000}}};
  held.holds_room = true;
  d().leased(held);
  lease(5);
  expect("run 1; run 2");
  d().recalled(10);
  expect("return 5; return 3");
  d().kill_asked(id_of(4), Failure::Cancelled, true, now_);
  expect("forget 4");
}

TEST_F(DecideTest, StartsNothingThatCannotEndInItsWalltime) {
  pilot({{"cpus", 10000}}, {.usable_until = now_ + 100s, .margin = 10s, .idle = {}});
  lease(1, {{"cpus", 10000}}, 60s);
  lease(2, {{"cpus", 10000}}, 101s);
  lease(3, {{"cpus", 10000}}, 60s);
  lease(4);
  expect("run 1");
  after(50s);
  ended(1);
  expect("return 2; return 3; run 4");
}

TEST_F(DecideTest, AtTheEndOfItsWalltimeItEndsWhatRuns) {
  pilot({{"cpus", 20000}}, {.usable_until = now_ + 100s, .margin = 10s, .idle = {}});
  for (unsigned n : {1U, 2U, 3U}) lease(n);
  expect("run 1; run 2");
  wakes_after(100s);
  expect_in_any_order(
      {"return 3", "leaving walltime", "term 1 pilot_walltime", "term 2 pilot_walltime"});
  lease(4);
  expect("return 4");
  ended(1);
  expect("outbox");
  wakes_after(5s);
  expect("kill 2");
  ended(2);
  expect("outbox");
  d().acknowledged(id_of(1), now_);
  d().acknowledged(id_of(2), now_);
  expect("forget 1; forget 2; outbox; exit 0");
}

TEST_F(DecideTest, ATimeLimitIsTermAndThenKill) {
  two_cpus();
  lease(1, {{"cpus", 10000}}, 60s);
  expect("run 1");
  wakes_after(60s);
  expect("term 1 time_task");
  wakes_after(30s);
  expect("kill 1");
  EXPECT_FALSE(d().next());
  ended(1);
  expect("");
}

TEST_F(DecideTest, TheTimeOfASuspensionCountsForNothing) {
  pilot({{"cpus", 20000}}, {.usable_until = now_ + 100s, .margin = 10s, .idle = 30s});
  lease(1, {{"cpus", 10000}}, 60s);
  lease(2);
  expect("run 1; run 2");
  after(10s + 20min);
  d().suspended(20min);
  expect("");
  wakes_after(50s);
  expect("term 1 time_task");
  ended(1);
  d().acknowledged(id_of(1), now_);
  expect("forget 1");
  wakes_after(40s);
  expect("leaving walltime; term 2 pilot_walltime");
}

TEST_F(DecideTest, ATaskThatEndsInTimeLeavesNoAlarm) {
  two_cpus();
  lease(1, {{"cpus", 10000}}, 60s);
  expect("run 1");
  ended(1);
  EXPECT_FALSE(d().next());
}

TEST_F(DecideTest, KillEndsWhatRunsAndFailsWhatWaits) {
  pilot({{"cpus", 10000}});
  for (unsigned n : {1U, 2U, 3U}) lease(n);
  expect("run 1");
  d().kill_asked(id_of(1), Failure::Cancelled, false, now_);
  d().kill_asked(id_of(1), Failure::Cancelled, false, now_);
  d().kill_asked(id_of(2), Failure::Cancelled, false, now_);
  d().kill_asked(id_of(3), Failure::Cancelled, true, now_);
  d().kill_asked(id_of(9), Failure::Cancelled, false, now_);
  expect("term 1 cancelled; fail 2 cancelled; forget 3");
  ended(1);
  expect("");
  d().kill_asked(id_of(1), Failure::Cancelled, true, now_);
  expect("forget 1");
}

TEST_F(DecideTest, ASilentKillIsByForceAndLeavesNoResult) {
  two_cpus();
  lease(1);
  lease(2);
  expect("run 1; run 2");
  d().kill_asked(id_of(1), Failure::Cancelled, true, now_);
  d().kill_asked(id_of(2), Failure::Cancelled, false, now_);
  d().kill_asked(id_of(2), Failure::Cancelled, true, now_);
  expect("kill 1 cancelled; term 2 cancelled; kill 2 cancelled");
  EXPECT_FALSE(ended(1, true));
  EXPECT_FALSE(ended(2));
  expect("discard 1; forget 1; forget 2");
}

TEST_F(DecideTest, OutputsArePublishedOnlyWhenAllowed) {
  two_cpus();
  lease(1);
  expect("run 1");
  d().publish_allowed(id_of(1));
  expect("");
  ended(1, true);
  d().acknowledged(id_of(1), now_);
  expect("");
  d().publish_allowed(id_of(1));
  d().publish_allowed(id_of(1));
  expect("publish 1");
  d().kill_asked(id_of(1), Failure::Cancelled, false, now_);
  expect("");
  EXPECT_TRUE(d().published(id_of(1), 100, now_));
  expect("");
  d().acknowledged(id_of(1), now_);
  expect("forget 1");
}

TEST_F(DecideTest, AKillBeforePublishingRemovesTheOutputs) {
  two_cpus();
  lease(1);
  lease(2);
  expect("run 1; run 2");
  ended(1, true);
  ended(2, true);
  d().kill_asked(id_of(1), Failure::Cancelled, false, now_);
  d().kill_asked(id_of(2), Failure::Cancelled, true, now_);
  expect("discard 1; fail 1 cancelled; discard 2; forget 2");
  d().publish_allowed(id_of(1));
  expect("");
}

TEST_F(DecideTest, OverItsMemoryATaskIsKilledAtOnce) {
  two_cpus();
  lease(1, {{"cpus", 10000}}, 60s);
  expect("run 1");
  d().over_memory(id_of(1), "");
  d().over_memory(id_of(1), "");
  expect("kill 1 oom_task");
  EXPECT_FALSE(d().next());
}

}  // namespace
}  // namespace hpcbatch::pilot
