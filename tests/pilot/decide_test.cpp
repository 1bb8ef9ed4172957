// What a pilot decides, in its own words: events happen, actions are expected, and what is not
// expected fails.
#include "decide.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <sstream>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

AttemptId id_of(unsigned n) {
  return {n, 0, 1, 7};
}

std::string list(const std::vector<unsigned>& numbers) {
  std::string text;
  for (const unsigned n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

std::string to_text(const Action& action) {
  struct {
    std::string operator()(const Launch& a) const {
      std::string text = "run " + std::to_string(a.id.array);
      if (!a.placement.cpus.empty()) text += " cpus " + list(a.placement.cpus);
      if (!a.placement.gpus.empty()) text += " gpus " + list(a.placement.gpus);
      return text;
    }
    std::string operator()(const Return& a) const { return "return " + std::to_string(a.id.array); }
    std::string operator()(const Stop& a) const {
      return std::string(a.by_force ? "kill " : "term ") + std::to_string(a.id.array) +
             (a.failure.empty() ? "" : " " + a.failure);
    }
    std::string operator()(const Publish& a) const {
      return "publish " + std::to_string(a.id.array);
    }
    std::string operator()(const Discard& a) const {
      return "discard " + std::to_string(a.id.array);
    }
    std::string operator()(const Fail& a) const {
      return "fail " + std::to_string(a.id.array) + " " + a.failure;
    }
    std::string operator()(const Forget& a) const { return "forget " + std::to_string(a.id.array); }
    std::string operator()(const SayLeaving& a) const { return "leaving " + a.reason; }
    std::string operator()(const WriteOutbox&) const { return "outbox"; }
    std::string operator()(const Exit& a) const { return "exit " + std::to_string(a.code); }
  } visitor;
  return std::visit(visitor, action);
}

class DecideTest : public testing::Test {
 protected:
  void pilot(Amounts capacity, Terms terms = {}, std::vector<unsigned> cpus = {}) {
    decide_.emplace(Room(capacity, std::move(cpus)), terms, now_);
    decide_->welcomed(now_);
  }
  void two_cpus() { pilot({{"cpus", 20000}}); }
  void lease(unsigned n, Amounts granted = {{"cpus", 10000}}, Duration limit = {}) {
    decide_->leased({id_of(n), std::move(granted), limit});
  }
  bool ended(unsigned n, bool staged = false) {
    return decide_->ended(id_of(n), staged, 100, now_);
  }
  void after(Duration time) { now_ += time; }
  void expect(const std::string& expected) {
    std::string text;
    for (const Action& action : decide_->decide(now_))
      text += (text.empty() ? "" : "; ") + to_text(action);
    EXPECT_EQ(text, expected);
  }
  Decide& d() { return *decide_; }
  /// The same, where the order is nobody's business.
  void expect_in_any_order(const std::multiset<std::string>& expected) {
    std::multiset<std::string> texts;
    for (const Action& action : decide_->decide(now_)) texts.insert(to_text(action));
    EXPECT_EQ(texts, expected);
  }
  /// Nothing happens until the pilot itself wants to be asked, and that is then.
  void wakes_after(Duration time) {
    ASSERT_TRUE(d().next());
    EXPECT_EQ(*d().next() - now_, time);
    now_ = *d().next();
  }

  Time now_{1h};
  std::optional<Decide> decide_;
};

TEST_F(DecideTest, StartsWhatFitsAndTheNextWhenOneEnds) {
  two_cpus();
  for (unsigned n : {1, 2, 3, 4}) lease(n);
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
  for (unsigned n : {1, 2, 3}) lease(n, {{"gpus/a100", 5000}});
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

TEST_F(DecideTest, RecallTakesTheNewestThatHaveNotStarted) {
  two_cpus();
  for (unsigned n : {1, 2, 3, 4, 5}) lease(n);
  expect("run 1; run 2");
  d().recalled(2);
  expect("return 5; return 4");
  d().recalled(10);
  expect("return 3");
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
  for (unsigned n : {1, 2, 3}) lease(n);
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
  wakes_after(5s);
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
  for (unsigned n : {1, 2, 3}) lease(n);
  expect("run 1");
  d().kill_asked(id_of(1), "cancelled", false, now_);
  d().kill_asked(id_of(1), "cancelled", false, now_);
  d().kill_asked(id_of(2), "cancelled", false, now_);
  d().kill_asked(id_of(3), "cancelled", true, now_);
  d().kill_asked(id_of(9), "cancelled", false, now_);
  expect("term 1 cancelled; fail 2 cancelled; forget 3");
  ended(1);
  expect("");
  d().kill_asked(id_of(1), "cancelled", true, now_);
  expect("forget 1");
}

TEST_F(DecideTest, ASilentKillIsByForceAndLeavesNoResult) {
  two_cpus();
  lease(1);
  lease(2);
  expect("run 1; run 2");
  d().kill_asked(id_of(1), "", true, now_);
  d().kill_asked(id_of(2), "cancelled", false, now_);
  d().kill_asked(id_of(2), "", true, now_);
  expect("kill 1; term 2 cancelled; kill 2");
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
  d().kill_asked(id_of(1), "cancelled", false, now_);
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
  d().kill_asked(id_of(1), "cancelled", false, now_);
  d().kill_asked(id_of(2), "", true, now_);
  expect("discard 1; fail 1 cancelled; discard 2; forget 2");
  d().publish_allowed(id_of(1));
  expect("");
}

TEST_F(DecideTest, WithNothingToDoItEnds) {
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

TEST_F(DecideTest, AnIdlePilotThatIsToldToEndDoesNotWait) {
  pilot({{"cpus", 10000}}, {.usable_until = {}, .margin = {}, .idle = 60s});
  after(60s);
  expect("leaving idle");
  d().end_asked(now_);
  expect("exit 0");
}

TEST_F(DecideTest, WithoutAnEngineItEndsToo) {
  decide_.emplace(Room({{"cpus", 10000}}, {}), Terms{}, now_);
  wakes_after(10min);
  expect("leaving idle; exit 0");
}

TEST_F(DecideTest, WithoutAnEngineItWorksOnAndLeavesItsResults) {
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

TEST_F(DecideTest, TermEndsTheTasksGivesBackTheRestAndReports) {
  two_cpus();
  for (unsigned n : {1, 2, 3}) lease(n);
  expect("run 1; run 2");
  ended(2, true);
  expect("run 3");
  lease(4);
  d().terminated(now_);
  d().terminated(now_);
  expect_in_any_order(
      {"term 1 pilot_killed", "term 3 pilot_killed", "leaving terminated", "return 4"});
  ended(1);
  ended(3);
  expect("outbox");
  expect("");
  wakes_after(5s);
  expect("discard 2; fail 2 pilot_killed; outbox");
  for (unsigned n : {1, 2, 3}) d().acknowledged(id_of(n), now_);
  expect("forget 1; forget 2; forget 3; outbox; exit 0");
}

TEST_F(DecideTest, TermWithoutALinkLeavesTheOutbox) {
  two_cpus();
  lease(1);
  expect("run 1");
  d().link_lost();
  d().terminated(now_);
  expect("leaving terminated; term 1 pilot_killed");
  ended(1);
  expect("outbox");
  expect("exit 0");
}

TEST_F(DecideTest, ToldToEndItWritesDownAtOnceWhatNobodyHasAcknowledged) {
  two_cpus();
  lease(1);
  lease(2);
  expect("run 1; run 2");
  ended(1);
  expect("");
  d().terminated(now_);
  expect("leaving terminated; term 2 pilot_killed; outbox");
  expect("");
  ended(2);
  expect("outbox");
  expect("");
}

TEST_F(DecideTest, AnOutboxThatCannotBeWrittenIsTriedAgainWhileThereIsTime) {
  pilot({{"cpus", 10000}});
  lease(1);
  expect("run 1");
  d().link_lost();
  d().terminated(now_);
  expect("leaving terminated; term 1 pilot_killed");
  ended(1);
  expect("outbox");
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

TEST_F(DecideTest, BeforeItLeavesWithoutItsOutboxItTriesOnceMore) {
  pilot({{"cpus", 10000}});
  lease(1);
  expect("run 1");
  d().link_lost();
  d().terminated(now_);
  expect("leaving terminated; term 1 pilot_killed");
  ended(1);
  expect("outbox");
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

TEST_F(DecideTest, TermWithinTheMarginIsTheWalltime) {
  pilot({{"cpus", 10000}}, {.usable_until = now_ + 100s, .margin = 30s, .idle = {}});
  lease(1);
  expect("run 1");
  after(80s);
  d().terminated(now_);
  expect("leaving walltime; term 1 pilot_walltime");
}

TEST_F(DecideTest, DrainingFinishesWhatRuns) {
  pilot({{"cpus", 10000}});
  lease(1);
  lease(2);
  expect("run 1");
  d().drain_asked();
  expect("return 2; leaving drained");
  after(1000s);
  ended(1);
  expect("outbox");
  d().acknowledged(id_of(1), now_);
  d().end_asked(now_);
  expect("forget 1; outbox; exit 0");
}

TEST_F(DecideTest, FencedOffItLeavesTheOutboxOfAnEarlierProcessToTheEngine) {
  two_cpus();
  d().found_result(id_of(7), 100);
  d().fenced(now_);
  expect("leaving fenced; forget 7; exit 0");
}

TEST_F(DecideTest, FencedOffItKillsEverythingAndReportsNothing) {
  pilot({{"cpus", 30000}});
  for (unsigned n : {1, 2, 3, 4}) lease(n);
  expect("run 1; run 2; run 3");
  ended(2);
  ended(3, true);
  expect("run 4");
  lease(5, {{"cpus", 30000}});
  d().fenced(now_);
  expect_in_any_order({"discard 3", "forget 3", "forget 2", "kill 1 cancelled", "kill 4 cancelled",
                       "forget 5", "leaving fenced"});
  ended(1);
  ended(4);
  expect("forget 1; forget 4; exit 0");
}

TEST_F(DecideTest, GivenUpItFinishesWhatRunsAndLeavesTheOutbox) {
  pilot({{"cpus", 10000}});
  lease(1);
  lease(2);
  expect("run 1");
  d().link_lost();
  d().given_up();
  d().given_up();
  expect("return 2; leaving given up");
  after(1h);
  ended(1);
  expect("outbox");
  expect("exit 0");
}

TEST_F(DecideTest, FailedChecksAreToldBeforeItLeaves) {
  decide_.emplace(Room({{"cpus", 10000}}, {}), Terms{}, now_);
  d().checks_failed(now_);
  expect("leaving failed checks");
  after(20s);
  expect("");
  d().welcomed(now_);
  lease(1);
  expect("return 1");
  wakes_after(5s);
  expect("exit 4");
}

TEST_F(DecideTest, FailedChecksWithoutAnEngineEndToo) {
  decide_.emplace(Room({{"cpus", 10000}}, {}), Terms{}, now_);
  d().checks_failed(now_);
  expect("leaving failed checks");
  wakes_after(30s);
  expect("exit 4");
}

TEST_F(DecideTest, ManyUnacknowledgedResultsGoToTheOutbox) {
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

TEST_F(DecideTest, ResultsFoundInTheOutboxAreDelivered) {
  two_cpus();
  d().found_result(id_of(5), 100);
  expect("");
  EXPECT_EQ(d().state_of(id_of(5)), Decide::State::Delivered);
  d().acknowledged(id_of(5), now_);
  expect("forget 5; outbox");
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

// Thousands of random events: nothing is started twice, room is never overdrawn, every lease ends
// once.
TEST_F(DecideTest, RandomEventsKeepItsPromises) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&random](unsigned below) { return static_cast<unsigned>(random() % below); };
    now_ = Time{1h};
    Terms terms{.usable_until = {}, .margin = 5s, .idle = 30s};
    if (pick(2) == 0) terms.usable_until = now_ + 200s;
    pilot({{"cpus", 40000}, {"memory", 1000}, {"gpus/a100", 20000}}, terms, {0, 1, 2, 3});
    std::map<AttemptId, std::string> state;
    std::map<AttemptId, Placement> placed;
    std::set<AttemptId> silent;
    bool exited = false;
    unsigned next_lease = 1;
    const auto any = [&](const std::string& wanted) -> std::optional<AttemptId> {
      std::vector<AttemptId> all;
      for (const auto& [id, s] : state) {
        if (s == wanted) all.push_back(id);
      }
      if (all.empty()) return std::nullopt;
      return all[pick(static_cast<unsigned>(all.size()))];
    };
    for (int step = 0; step < 400 && !exited; ++step) {
      switch (pick(14)) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const unsigned n = next_lease++;
          Amounts granted{{"cpus", 5000 * (1 + pick(5))}, {"memory", 100 * pick(4)}};
          if (pick(4) == 0) granted.emplace_back("gpus/a100", 5000 * (1 + pick(4)));
          state[id_of(n)] = "leased";
          lease(n, granted, std::chrono::seconds{pick(3) == 0 ? 20 + pick(300) : 0});
          break;
        }
        case 4:
        case 5:
        case 6:
          if (const auto id = any("running")) {
            const bool staged = pick(3) == 0;
            ASSERT_EQ(d().ended(*id, staged, 1000, now_), !silent.contains(*id));
            placed.erase(*id);
            state[*id] = staged && !silent.contains(*id) ? "staged" : "ended";
          }
          break;
        case 7:
          if (const auto id = any("staged")) d().publish_allowed(*id);
          break;
        case 8:
          if (const auto id = any("publishing")) {
            ASSERT_EQ(d().published(*id, 1000, now_), !silent.contains(*id));
            state[*id] = "ended";
          }
          break;
        case 9:
        case 10:
          if (const auto id = any("ended")) d().acknowledged(*id, now_);
          break;
        case 11: {
          const bool quiet = pick(2) == 0;
          const AttemptId id = id_of(1 + pick(next_lease));
          if (quiet && d().state_of(id)) silent.insert(id);
          d().kill_asked(id, "cancelled", quiet, now_);
          break;
        }
        case 12:
          after(std::chrono::seconds{pick(5)});
          break;
        case 13:
          switch (pick(40)) {
            case 0:
              d().drain_asked();
              break;
            case 1:
              d().terminated(now_);
              break;
            case 2:
              for (const auto& [id, unused] : d().held()) silent.insert(id);
              d().fenced(now_);
              break;
            case 3:
              d().end_asked(now_);
              break;
            case 4:
              d().given_up();
              break;
            case 5:
              d().link_lost();
              break;
            case 6:
              d().welcomed(now_);
              break;
            default:
              d().recalled(pick(3));
          }
          break;
      }
      std::vector<Action> actions;
      while (!(actions = d().decide(now_)).empty())
        for (const Action& action : actions) {
          ASSERT_FALSE(exited) << "something after the exit: " << to_text(action);
          if (const auto* run = std::get_if<Launch>(&action)) {
            ASSERT_EQ(state[run->id], "leased");
            state[run->id] = "running";
            for (const auto& [other, placement] : placed) {
              ASSERT_NE(placement.slot, run->placement.slot);
              for (const unsigned cpu : run->placement.cpus) {
                ASSERT_EQ(std::count(placement.cpus.begin(), placement.cpus.end(), cpu), 0);
              }
            }
            placed[run->id] = run->placement;
          } else if (const auto* back = std::get_if<Return>(&action)) {
            ASSERT_EQ(state[back->id], "leased");
            state[back->id] = "returned";
          } else if (const auto* fail = std::get_if<Fail>(&action)) {
            ASSERT_TRUE(state[fail->id] == "leased" || state[fail->id] == "discarded")
                << state[fail->id];
            state[fail->id] = "ended";
          } else if (const auto* publish = std::get_if<Publish>(&action)) {
            ASSERT_EQ(state[publish->id], "staged");
            state[publish->id] = "publishing";
          } else if (const auto* discard = std::get_if<Discard>(&action)) {
            ASSERT_TRUE(state[discard->id] == "staged" || silent.contains(discard->id));
            state[discard->id] = "discarded";
          } else if (const auto* stop = std::get_if<Stop>(&action)) {
            ASSERT_EQ(state[stop->id], "running");
          } else if (const auto* forgotten = std::get_if<Forget>(&action)) {
            ASSERT_NE(state[forgotten->id], "running");
            state[forgotten->id] = "forgotten";
          } else if (std::holds_alternative<Exit>(action)) {
            exited = true;
            for (const auto& [id, s] : state) {
              ASSERT_TRUE(s != "running" && s != "leased" && s != "staged" && s != "publishing")
                  << id.array << " was left " << s << ", seed " << seed;
            }
          }
        }
      if (!exited && d().next()) {
        ASSERT_GT(*d().next(), now_) << "it would go round without doing anything, seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace hpcbatch::pilot
