// The table of how many pilots are asked for.
#include "provision/plan.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace hpcbatch::provision {
namespace {

using namespace std::chrono_literals;

Resources of(std::int64_t cpus, std::int64_t a100s = 0) {
  Resources amounts;
  amounts.set(kCpus, Amount::of(cpus));
  amounts.set("gpus/a100", Amount::of(a100s));
  return amounts;
}

/// Tasks of one cpu and, where `time` is given, of just that length.
Demand demand(std::uint64_t tasks, std::optional<Duration> time = {}, std::int64_t cpus = 1) {
  Demand wanted;
  wanted.needs.amounts = of(cpus);
  wanted.needs.time = time;
  wanted.tasks = tasks;
  return wanted;
}

/// A shape of four cpus and an hour for tasks, that its batch system has accepted before.
Outlet outlet(const std::string& name = "cpu", const std::string& site = "here") {
  Outlet open{.site = site,
              .shape = {.name = name, .capacity = of(4), .walltime = 1h + 2min},
              .proven = true};
  return open;
}

Supply pilot(std::optional<Duration> left, double busy = 0) {
  return {"here", {}, {}, of(4), left, busy};
}
SiteLimits limits(std::uint32_t max_queued = 8, std::uint32_t max_running = 16,
                  const std::string& site = "here") {
  return {site, 0, 0, max_queued, max_running};
}
Ask ask(std::uint32_t count, const std::string& shape = "cpu", const std::string& site = "here") {
  return {site, shape, count};
}
using Asks = std::vector<Ask>;

TEST(Plan, NothingWaitingAsksForNothing) {
  EXPECT_EQ(plan({}, {}, {outlet()}, {limits()}), Asks{});
  EXPECT_EQ(plan({demand(0)}, {}, {outlet()}, {limits()}), Asks{});
}

TEST(Plan, WorkAndNoPilotAsksForOne) {
  EXPECT_EQ(plan({demand(1)}, {}, {outlet()}, {limits()}), Asks{ask(1)});
  EXPECT_EQ(plan({demand(240)}, {}, {outlet()}, {limits()}), Asks{ask(1)})
      << "60 s a task: what one pilot can do";
  EXPECT_EQ(plan({demand(241)}, {}, {outlet()}, {limits()}), Asks{ask(2)});
}

TEST(Plan, WorkJoinsAQueuedPilot) {
  Outlet queued = outlet();
  queued.queued = 1;
  EXPECT_EQ(plan({demand(100)}, {pilot(1h)}, {queued}, {limits()}), Asks{});
}

TEST(Plan, WorkJoinsARunningPilotWithRoomOrTimeLeft) {
  EXPECT_EQ(plan({demand(10)}, {pilot(20min, 0.5)}, {outlet()}, {limits()}), Asks{});
  EXPECT_EQ(plan({demand(8, 10min)}, {pilot(20min)}, {outlet()}, {limits()}), Asks{});
}

TEST(Plan, WorkBesideARunningPilotWithNoneLeftAsksForOne) {
  EXPECT_EQ(plan({demand(10)}, {pilot(1h, 1)}, {outlet()}, {limits()}), Asks{ask(1)}) << "no room";
  EXPECT_EQ(plan({demand(1, 30min)}, {pilot(20min)}, {outlet()}, {limits()}), Asks{ask(1)})
      << "too little time";
  EXPECT_EQ(plan({demand(1)}, {pilot(0s)}, {outlet()}, {limits()}), Asks{ask(1)}) << "no time";
}

TEST(Plan, WorkThatArrivesWhileAPilotRunsFillsItFirst) {
  // Four cpus for half an hour hold 12 tasks of ten minutes; the thirteenth needs a pilot of its
  // own.
  EXPECT_EQ(plan({demand(12, 10min)}, {pilot(30min)}, {outlet()}, {limits()}), Asks{});
  EXPECT_EQ(plan({demand(13, 10min)}, {pilot(30min)}, {outlet()}, {limits()}), Asks{ask(1)});
}

/// Tasks of which many have ended, each after so long.
Demand known(std::uint64_t tasks, Duration run) {
  Demand wanted = demand(tasks);
  wanted.mean_run = run;
  wanted.runs = 1000;
  return wanted;
}

SiteLimits in_a_hurry(std::uint32_t most = 8) {
  SiteLimits site = limits(most, 16);
  site.waiting_cost = 19;
  site.idle_after = 1min;
  return site;
}

TEST(PlanForSpeed, MorePilotsWhileTheTimeSavedIsWorthTheirIdleTime) {
  // 1,250 s of work: one pilot takes 312 s, two 156, three 104, four 78, five 62, six 52, seven 45;
  // six seconds are worth two minutes of a pilot.
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h)}, {outlet()}, {in_a_hurry()}), Asks{ask(6)});
  EXPECT_EQ(plan({known(5000, 250ms)}, {}, {outlet()}, {in_a_hurry()}), Asks{ask(7)});
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h)}, {outlet()}, {in_a_hurry(3)}), Asks{ask(3)});
}

TEST(PlanForSpeed, NoneForALittleWork) {
  EXPECT_EQ(plan({known(100, 250ms)}, {pilot(1h)}, {outlet()}, {in_a_hurry()}), Asks{});
}

TEST(PlanForSpeed, NoneThatWouldComeTooLate) {
  Outlet slow = outlet();
  slow.wait = 10min;
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h)}, {slow}, {in_a_hurry()}), Asks{});
  slow.wait = 2min;
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h)}, {slow}, {in_a_hurry()}), Asks{ask(5)});
}

TEST(PlanForSpeed, NoMoreThanThereAreTasks) {
  // Eight tasks of an hour on a pilot of four cpus: a second one, and a third has nothing to do.
  EXPECT_EQ(plan({known(8, 30min)}, {pilot(2h)}, {outlet()}, {in_a_hurry()}), Asks{ask(1)});
  EXPECT_EQ(plan({known(4, 30min)}, {pilot(2h)}, {outlet()}, {in_a_hurry()}), Asks{});
}

TEST(PlanForSpeed, OnlyWhereRunTimesAreKnown) {
  Demand few = known(5000, 250ms);
  few.runs = 9;
  EXPECT_EQ(plan({few}, {pilot(1h)}, {outlet()}, {in_a_hurry()}), Asks{});
}

TEST(PlanForSpeed, FewThatTookLongAreKnownToo) {
  Demand few = known(24, 40s);
  few.runs = 1;
  EXPECT_EQ(plan({few}, {pilot(10h)}, {outlet()}, {in_a_hurry()}), Asks{}) << "40 s say little";
  few.runs = 2;
  EXPECT_EQ(plan({few}, {pilot(10h)}, {outlet()}, {in_a_hurry()}), Asks{ask(5)});
  Demand running = demand(24);
  count_running(running, 50s);
  EXPECT_EQ(plan({running}, {pilot(10h)}, {outlet()}, {in_a_hurry()}), Asks{});
  count_running(running, 20s);
  EXPECT_EQ(plan({running}, {pilot(10h)}, {outlet()}, {in_a_hurry()}), Asks{ask(5)});
}

TEST(PlanForSpeed, WhatDiffersInItsNeedsAloneCountsTogether) {
  // Each input's own memory and time: eight classes of two tasks, of which only one is known.
  std::vector<Demand> classes;
  for (int i = 0; i < 8; ++i) {
    classes.push_back(demand(2, 10min + i * 1min, 4));
    classes.back().of_all = {2, 2, 90s};
  }
  // 720 s of one pilot: eleven save 6.5 s against ten, which are worth two minutes of a pilot.
  Asks asks = plan(classes, {pilot(20h)}, {outlet()}, {in_a_hurry(20)});
  std::uint32_t count = 0;
  for (const Ask& one : asks) count += one.count;
  EXPECT_EQ(count, 10U);
  classes.resize(1);
  EXPECT_EQ(plan(classes, {pilot(20h)}, {outlet()}, {in_a_hurry()}), Asks{ask(1)});
  classes.front().of_all = {1, 0, 30s};
  EXPECT_EQ(plan(classes, {pilot(20h)}, {outlet()}, {in_a_hurry()}), Asks{}) << "unknown";
}

TEST(PlanForSpeed, NotForASiteThatDoesNotPayForWaiting) {
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h)}, {outlet()}, {limits()}), Asks{});
}

TEST(PlanForSpeed, OneOfAShapeThatWasNeverTried) {
  Outlet untried = outlet();
  untried.proven = false;
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h)}, {untried}, {in_a_hurry()}), Asks{ask(1)});
  untried.queued = 1;
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h), pilot(1h)}, {untried}, {in_a_hurry()}), Asks{});
}

TEST(PlanForSpeed, NotOfAShapeThatHasNoEnd) {
  Outlet endless = outlet();
  endless.shape.walltime = {};
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h)}, {endless}, {in_a_hurry()}), Asks{});
}

TEST(PlanForSpeed, NotWhereOnlySoManyMayRunAtOnce) {
  Demand few_at_once = known(5000, 250ms);
  few_at_once.bounded = true;
  EXPECT_EQ(plan({few_at_once}, {pilot(1h)}, {outlet()}, {in_a_hurry()}), Asks{});
}

TEST(PlanForSpeed, AllNodesOfAnAllocationAreIdle) {
  Outlet wide = outlet();
  wide.shape.nodes = 16;
  // Sixteen pilots of four cpus would be idle for two minutes each.
  EXPECT_EQ(plan({known(5000, 250ms)}, {pilot(1h)}, {wide}, {in_a_hurry()}), Asks{ask(1)});
  EXPECT_EQ(plan({known(2000, 250ms)}, {pilot(1h)}, {wide}, {in_a_hurry()}), Asks{ask(1)});
  EXPECT_EQ(plan({known(1000, 250ms)}, {pilot(1h)}, {wide}, {in_a_hurry()}), Asks{});
}

TEST(PlanForSpeed, WhatHasBeenAskedForIsNotAskedForAgain) {
  Outlet queued = outlet();
  queued.queued = 6;
  const std::vector<Supply> all(7, pilot(1h));
  EXPECT_EQ(plan({known(5000, 250ms)}, all, {queued}, {in_a_hurry(20)}), Asks{});
}

TEST(Plan, TenThousandLongTasksAndALimitOfEightAskForEight) {
  EXPECT_EQ(plan({demand(10'000, 1h)}, {}, {outlet()}, {limits(8, 8)}), Asks{ask(8)});
  Outlet bound = outlet();
  bound.shape.max_running = 8;
  EXPECT_EQ(plan({demand(10'000, 1h)}, {}, {bound}, {limits(100, 100)}), Asks{ask(8)})
      << "the shape's own limit";
  bound.running = 5;
  bound.queued = 2;
  EXPECT_EQ(plan({demand(10'000, 1h)}, {}, {bound}, {limits(100, 100)}), Asks{ask(1)});
}

TEST(Plan, TheFirstOfAShapeGoesAlone) {
  Outlet untried = outlet();
  untried.proven = false;
  EXPECT_EQ(plan({demand(10'000, 1h)}, {}, {untried}, {limits()}), Asks{ask(1)});
  untried.queued = 1;
  untried.submitting = 1;
  EXPECT_EQ(plan({demand(10'000, 1h)}, {pilot(1h)}, {untried}, {limits()}), Asks{})
      << "until it is accepted";
  EXPECT_EQ(plan({demand(10'000, 1h)}, {pilot(1h)}, {untried, outlet("cpu", "there")},
                 {limits(), limits(8, 8, "there")}),
            Asks{})
      << "nor somewhere else meanwhile";
  untried.submitting = 0;
  EXPECT_EQ(plan({demand(8, 1h)}, {}, {untried, outlet("cpu", "there")},
                 {limits(), limits(8, 8, "there")}),
            Asks{ask(2, "cpu", "there")})
      << "an answer that was lost is not waited for";
}

TEST(Plan, AClosedShapeIsNotAskedFor) {
  Outlet closed = outlet();
  closed.open = false;
  EXPECT_EQ(plan({demand(10)}, {}, {closed}, {limits()}), Asks{});
  EXPECT_EQ(plan({demand(10)}, {}, {closed, outlet("other")}, {limits()}), Asks{ask(1, "other")});
}

TEST(Plan, ReckonsWithTheTimeAskedElseTheMeanElseAMinute) {
  Demand unknown = demand(480);
  EXPECT_EQ(expected_run(unknown), 60s);
  EXPECT_EQ(plan({unknown}, {}, {outlet()}, {limits()}), Asks{ask(2)});
  unknown.mean_run = 10s;
  EXPECT_EQ(expected_run(unknown), 10s);
  EXPECT_EQ(plan({unknown}, {}, {outlet()}, {limits()}), Asks{ask(1)});
  unknown.needs.time = 30min;
  EXPECT_EQ(expected_run(unknown), 30min);
  EXPECT_EQ(plan({unknown}, {}, {outlet()}, {limits(100, 100)}), Asks{ask(60)});
}

TEST(Plan, WhatRunsLongLetsExpectLongRuns) {
  Demand unknown = demand(40);
  count_running(unknown, 30s);
  EXPECT_EQ(expected_run(unknown), 60s);
  count_running(unknown, 45min);
  EXPECT_EQ(expected_run(unknown), 90min) << "it is in the middle of its run";
  EXPECT_EQ(plan({unknown}, {}, {outlet()}, {limits(100, 100)}), Asks{ask(15)});
  Demand asked = demand(1, 10min);
  count_running(asked, 9min);
  EXPECT_EQ(expected_run(asked), 10min) << "a time that was asked for is a bound";
}

TEST(Plan, ATaskThatHangsDoesNotSpeakForThousands) {
  Demand known = demand(1000);
  known.mean_run = 10s;
  known.runs = 7190;
  for (int i = 0; i < 9; ++i) count_running(known, 4s);
  count_running(known, 2h);
  EXPECT_LT(expected_run(known), 13s);
  known.runs = 10;
  EXPECT_GT(expected_run(known), 10min) << "the few that ended may be the short ones";
}

TEST(Plan, ARunningTaskKeepsItsOwnPlaceAndNoMore) {
  const Demand unknown = demand(0);
  EXPECT_DOUBLE_EQ(busy_with(unknown, 0s, of(4), 1h), 1.0 / 240);
  EXPECT_DOUBLE_EQ(busy_with(unknown, 30s, of(4), 1h), 0.5 / 240);
  EXPECT_DOUBLE_EQ(busy_with(unknown, 10min, of(4), 1h), 10.0 / 240)
      << "as long again as it has run";
  EXPECT_DOUBLE_EQ(busy_with(unknown, 2h, of(4), 1h), 0.25);
  EXPECT_DOUBLE_EQ(busy_with(demand(0, 40min), 10min, of(4), 20min), 0.25);
  EXPECT_DOUBLE_EQ(busy_with(demand(0, 40min, 5), 0s, of(4), 1h), 1)
      << "a pilot that came back smaller";
}

TEST(Plan, AnAskedTimeIsNotCutInTwo) {
  // 40 minutes fit once into an hour: the last 20 are of no use.
  EXPECT_EQ(tasks_in_room(demand(1, 40min), of(4), 1h), 4);
  EXPECT_EQ(tasks_in_room(demand(1), of(4), 90s), 6) << "an expected one may be shorter";
  EXPECT_TRUE(std::isinf(tasks_in_room(demand(1), of(4), std::nullopt)));
  EXPECT_EQ(tasks_in_room(demand(1, 40min, 5), of(4), std::nullopt), 0);
  EXPECT_EQ(plan({demand(8, 40min)}, {}, {outlet()}, {limits()}), Asks{ask(2)});
}

TEST(Plan, APilotWithoutAnEndServesAll) {
  Outlet endless = outlet();
  endless.shape.walltime = {};
  EXPECT_EQ(plan({demand(1'000'000)}, {}, {endless}, {limits()}), Asks{ask(1)});
}

TEST(Plan, APilotWithoutAnEndKeepsNoWorkFromIdleClusters) {
  const auto endless = pilot(std::nullopt);
  const std::vector<SiteLimits> sites{limits(8, 16, "here"), limits(4, 4, "cluster")};
  // A minute's work is done where a pilot is.
  EXPECT_TRUE(plan({demand(4, 30s)}, {endless}, {outlet("cpu", "cluster")}, sites).empty());
  EXPECT_EQ(plan({demand(2'000, 10min)}, {endless}, {outlet("cpu", "cluster")}, sites),
            Asks{ask(4, "cpu", "cluster")});
  // What a queue would take longer for stays.
  Outlet slow = outlet("cpu", "cluster");
  slow.wait = 2h;
  EXPECT_TRUE(plan({demand(16, 20min)}, {endless}, {slow}, sites).empty());
  EXPECT_FALSE(plan({demand(200, 20min)}, {endless}, {slow}, sites).empty());
  // Nor is it in vain to wait where nothing else can be had.
  Outlet closed = outlet("cpu", "cluster");
  closed.open = false;
  EXPECT_TRUE(plan({demand(2'000, 10min)}, {endless}, {closed}, sites).empty());
}

TEST(Plan, AFullPilotWithoutAnEndIsNoRoom) {
  const std::vector<SiteLimits> sites{limits(8, 16, "here"), limits(4, 4, "cluster")};
  EXPECT_EQ(plan({demand(1)}, {pilot(std::nullopt, 1)}, {outlet("cpu", "cluster")}, sites),
            Asks{ask(1, "cpu", "cluster")});
}

TEST(Plan, SeveralClassesShareAPilot) {
  // Half of a pilot's room each, though neither knows of the other.
  EXPECT_EQ(plan({demand(2, 1h), demand(120)}, {}, {outlet()}, {limits()}), Asks{ask(1)});
  EXPECT_EQ(plan({demand(2, 1h), demand(121)}, {}, {outlet()}, {limits()}), (Asks{ask(1), ask(1)}));
  EXPECT_EQ(plan({demand(2, 1h), demand(1, 1h, 2)}, {pilot(1h)}, {outlet()}, {limits()}), Asks{});
}

TEST(Plan, GpuTasksGoWhereGpusAre) {
  Outlet gpu = outlet("gpu");
  gpu.shape.capacity = of(4, 2);
  Demand training = demand(4, 1h);
  training.needs.amounts.set(kAnyGpu, Amount::of(1));
  EXPECT_EQ(plan({training}, {}, {outlet(), gpu}, {limits()}), Asks{ask(2, "gpu")});
  training.needs.amounts = of(1, 1);
  EXPECT_EQ(plan({training}, {pilot(1h)}, {outlet(), gpu}, {limits()}), Asks{ask(2, "gpu")})
      << "a cpu pilot is no help";
  Demand other_kind = training;
  other_kind.needs.amounts = of(1);
  other_kind.needs.amounts.set("gpus/v100", Amount::of(1));
  EXPECT_EQ(plan({other_kind}, {}, {outlet(), gpu}, {limits()}), Asks{}) << "nobody has such";
}

TEST(Plan, NoGpuLiesIdleUnderCpuTasks) {
  Outlet gpu = outlet("gpu");
  gpu.shape.capacity = of(16, 2);
  EXPECT_EQ(plan({demand(1)}, {}, {gpu, outlet()}, {limits()}), Asks{ask(1)});
  Outlet full = outlet();
  full.open = false;
  EXPECT_EQ(plan({demand(1)}, {}, {gpu, full}, {limits()}), Asks{})
      << "it waits rather than waste one";
  EXPECT_EQ(plan({demand(1)}, {}, {gpu}, {limits()}), Asks{ask(1, "gpu")})
      << "unless there is nothing else";
}

TEST(Plan, TwoSitesShareTheWork) {
  const std::vector<Outlet> both{outlet(), outlet("cpu", "there")};
  EXPECT_EQ(plan({demand(40, 1h)}, {}, both, {limits(4, 4), limits(8, 8, "there")}),
            (Asks{ask(4), ask(6, "cpu", "there")}));
  Demand bound = demand(40, 1h);
  bound.needs.site = "there";
  EXPECT_EQ(plan({bound}, {}, both, {limits(4, 4), limits(8, 8, "there")}),
            Asks{ask(8, "cpu", "there")});
  EXPECT_EQ(plan({bound}, {pilot(1h)}, both, {limits(4, 4), limits(0, 8, "there")}), Asks{})
      << "a pilot elsewhere is no help, and the site takes none";
}

TEST(Plan, TheShapeThatIsExpectedToStartFirstIsAskedFirst) {
  std::vector<Outlet> both{outlet(), outlet("cpu", "there")};
  const std::vector<SiteLimits> few{limits(4, 4), limits(8, 8, "there")};
  both[0].wait = 1h;
  EXPECT_EQ(plan({demand(1)}, {}, both, few), Asks{ask(1, "cpu", "there")});
  EXPECT_EQ(plan({demand(40, 1h)}, {}, both, few), (Asks{ask(8, "cpu", "there"), ask(2)}))
      << "what finds no room there goes on";
  both[1].wait = 50min;
  EXPECT_EQ(plan({demand(1)}, {}, both, few), Asks{ask(1)})
      << "about the same: the configuration's order";
  both[1].open = false;
  both[1].wait = {};
  EXPECT_EQ(plan({demand(1)}, {}, both, few), Asks{ask(1)}) << "one that is closed keeps nothing";
}

TEST(Plan, AnEarlyStartIsNotWorthAGpu) {
  Outlet gpu = outlet("gpu");
  gpu.shape.capacity = of(4, 2);
  Outlet slow = outlet();
  slow.wait = 2h;
  EXPECT_EQ(plan({demand(1)}, {}, {gpu, slow}, {limits()}), Asks{ask(1)});
}

TEST(Plan, ASiteThatMayNotRunItIsLeftOut) {
  const std::vector<Outlet> both{outlet(), outlet("cpu", "there")};
  Demand elsewhere = demand(1);
  elsewhere.needs.not_on = {"here"};
  EXPECT_EQ(plan({elsewhere}, {}, both, {limits(), limits(8, 8, "there")}),
            Asks{ask(1, "cpu", "there")});
  EXPECT_EQ(plan({elsewhere}, {pilot(1h)}, both, {limits(), limits(8, 8, "there")}),
            Asks{ask(1, "cpu", "there")})
      << "a pilot there is no help";
}

TEST(Plan, TagsMustBeTheShapes) {
  Outlet tagged = outlet("ssd");
  tagged.shape.tags = {"ssd"};
  Demand fussy = demand(1);
  fussy.needs.tags = {"ssd"};
  EXPECT_EQ(plan({fussy}, {pilot(1h)}, {outlet(), tagged}, {limits()}), Asks{ask(1, "ssd")});
}

TEST(Plan, ShapesOfSeveralNodesBringAPilotOnEach) {
  Outlet wide = outlet();
  wide.shape.nodes = 2;
  EXPECT_EQ(plan({demand(16, 1h)}, {}, {wide}, {limits()}), Asks{ask(2)});
}

TEST(Plan, LimitsCountWhatIsThere) {
  SiteLimits busy = limits(4, 6);
  busy.queued = 3;
  busy.running = 2;
  EXPECT_EQ(plan({demand(100, 1h)}, {}, {outlet()}, {busy}), Asks{ask(1)});
  busy.running = 3;
  EXPECT_EQ(plan({demand(100, 1h)}, {}, {outlet()}, {busy}), Asks{});
  busy = limits(4, 6);
  busy.running = 9;
  EXPECT_EQ(plan({demand(100, 1h)}, {}, {outlet()}, {busy}), Asks{})
      << "over the limit after a change of it";
}

TEST(Plan, LimitsOfAShapeAreOfAllThatIsMadeFromIt) {
  Outlet plain = outlet();
  plain.shape.max_queued = 2;
  plain.queued = 1;
  Outlet chosen = outlet("cpu+account=lab");
  chosen.shape.max_queued = 2;
  chosen.shape.tags = chosen.shape.made_for = {"account=lab"};
  Demand wanted = demand(10'000);
  wanted.needs.tags = {"account=lab"};
  EXPECT_EQ(plan({wanted}, {}, {plain, chosen}, {limits()}), Asks{ask(1, "cpu+account=lab")});
  plain.queued = 2;
  EXPECT_EQ(plan({wanted}, {}, {plain, chosen}, {limits()}), Asks{});
}

TEST(Plan, NobodyElsesPilotIsCountedOn) {
  Supply of_lab = pilot(1h);
  of_lab.tags = of_lab.made_for = {"account=lab"};
  EXPECT_EQ(plan({demand(1)}, {of_lab}, {outlet()}, {limits()}), Asks{ask(1)});
  Demand wanted = demand(1);
  wanted.needs.tags = {"account=lab"};
  EXPECT_EQ(plan({wanted}, {of_lab}, {outlet()}, {limits()}), Asks{});
}

}  // namespace
}  // namespace hpcbatch::provision
