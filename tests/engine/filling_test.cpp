// Which task goes to which pilot: room, remaining walltime, what may wait there, what is called
// back, room that is kept.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class FillingTest : public EngineTest {
 protected:
  /// Teaches the engine that tasks of one cpu take about this long.
  void tasks_take(Duration run, const std::string& id = "2") {
    submit(New());
    ends(id, Failure::Ok, run);
    forget_what_was_asked();
  }
  static Resources node(double cpus, std::int64_t a100s = 0, std::int64_t v100s = 0) {
    Resources capacity;
    capacity.set(kCpus, Amount::of_fraction(cpus));
    capacity.set(kMemory, Amount::of(std::int64_t{16} << 30));
    capacity.set("gpus/a100", Amount::of(a100s));
    capacity.set("gpus/v100", Amount::of(v100s));
    return capacity;
  }
  /// A second pilot of four cpus.
  void given_second_pilot() {
    submit(New().array(1, 2000).time(30min).on_hold());
    hold("2", false);
    cancel("2");
    accepts("B");
    registers("B0");
    for (const auto& [id, lease] :
         std::map(engine_->pilots().leases().begin(), engine_->pilots().leases().end())) {
      gives_back(to_string(id));
    }
    forget_what_was_asked();
  }
};

TEST_F(FillingTest, AsManyAsFit) {
  given_pilot();
  submit(New().array(1, 10).memory(std::int64_t{5} << 30));
  expect({"accept 2", "lease 2.1-3 to A0"});
  submit(New().array(1, 3).cpus(0.5).memory(1));
  expect({"accept 3", "lease 3.1-2 to A0"});
}

TEST_F(FillingTest, OnlyWhereTimeIsLeft) {
  given_pilot(20min);
  submit(New().array(1, 2).time(15min));
  expect({"accept 2", "lease 2.1-2 to A0"});
  after(6min);
  submit(New().time(15min));
  expect({"accept 3", "open B: *"});
  expect_explained(
      "3", "ready*pilot *.0 has too little time left for it*allocation * on here*is submitting*");
  submit(New().time(14min));
  expect({"accept 4", "lease 4 to A0"});
}

TEST_F(FillingTest, NothingStartsWhenTheTimeIsUp) {
  given_pilot(20min);
  after(20min);
  submit(New());
  expect({"accept 2", "open B: *"});
}

TEST_F(FillingTest, GpusAreCountedByKind) {
  Shape gpu = cpu_shape("gpu");
  gpu.capacity.set("gpus/a100", Amount::of(2));
  gpu.capacity.set("gpus/v100", Amount::of(1));
  given({site_of("here", {gpu})});
  given_pilot(1h, node(4, 2, 1));
  submit(New().gpus("gpus/v100", 1));
  submit(New().array(1, 2).gpus("gpus", 1));
  submit(New().gpus("gpus", 1));
  expect({"accept 2", "lease 2 to A0", "accept 3", "lease 3.1-2 to A0", "accept 4"});
  ends("3.1");
  expect({"tell 3", "acknowledge 3.1 to A0", "lease 4 to A0"});
}

TEST_F(FillingTest, GpusStayTakenOverARestart) {
  Shape gpu = cpu_shape("gpu");
  gpu.capacity.set("gpus/a100", Amount::of(2));
  given({site_of("here", {gpu})});
  given_pilot(1h, node(4, 2));
  submit(New().gpus("gpus", 2));
  starts("2");
  forget_what_was_asked();
  restarts();
  registers("A0", 1h, {held("2")}, node(4, 2));
  submit(New().gpus("gpus", 1));
  expect({"welcome A0", "accept 3"});
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0", "lease 3 to A0"});
}

TEST_F(FillingTest, ShortTasksWaitAtThePilotSoThatItNeverStarves) {
  given_pilot();
  tasks_take(10ms);
  submit(New().array(1, 1000));
  expect({"accept 3", "lease 3.1-104 to A0"});  // four that run, and 250 ms of work for four cpus
  // When a quarter of that is used up there is more, all at once.
  ends("3.1-24", Failure::Ok, 10ms);
  EXPECT_EQ(engine_->pilots().backlogs(), 76U);
  forget_what_was_asked();
  ends("3.25", Failure::Ok, 10ms);
  expect({"tell 3", "acknowledge 3.25 to A0", "lease 3.105-129 to A0"});
}

TEST_F(FillingTest, LongTasksAreNotHoarded) {
  given_pilot();
  tasks_take(10s);
  submit(New().array(1, 1000));
  expect({"accept 3", "lease 3.1-4 to A0"});
  expect_explained("3.5",
                   "ready, * with the same needs ahead; no pilot has room*1 pilot could run it*");
}

TEST_F(FillingTest, UnknownTasksAreNotHoarded) {
  given_pilot();
  submit(New().array(1, 20).cpus(2));
  expect({"accept 2", "lease 2.1-2 to A0"});
}

TEST_F(FillingTest, NothingWaitsBehindATaskThatTakesLong) {
  given_pilot();
  submit(New().cpus(4));
  ends("2", Failure::Ok, 10ms);
  submit(New().array(1, 4).time(50min));
  forget_what_was_asked();
  submit(New().array(1, 10).cpus(4));
  expect({"accept 4", "open B: *"});
}

TEST_F(FillingTest, WhatWaitsIsCalledBackForAPilotWithNothingToDo) {
  given_pilot();
  given_second_pilot();
  disconnects("B0");
  tasks_take(10ms, "3");
  submit(New().array(1, 44));
  expect({"accept 4", "lease 4.1-44 to A0"});
  registers("B0");
  expect({"welcome B0", "recall 20 from A0"});
  after(1s);
  expect_nothing();
  after(1s);
  expect({"recall 20 from A0"});  // one that is not answered was for nothing, or lost
  gives_back("4.25-44");
  expect({"lease 4.25-44 to B0"});
}

TEST_F(FillingTest, WhatWaitsIsCalledBackForAPilotThatHasSomethingToDoAndRoom) {
  given_pilot();
  given_second_pilot();
  disconnects("A0");
  submit(New().time(50min));
  registers("A0");
  disconnects("B0");
  tasks_take(10ms, "4");
  forget_what_was_asked();
  submit(New().array(1, 44));
  expect({"accept 5", "lease 5.1-44 to A0"});
  registers("B0", 1h, {held("3")});
  expect({"welcome B0", "recall 20 from A0"});
}

TEST_F(FillingTest, WhatWaitsIsCalledBackAsSoonAsThatMayBeAskedAgainAndInVainEverLessOften) {
  given_pilot();
  given_second_pilot();
  disconnects("B0");
  tasks_take(10ms, "3");
  submit(New().array(1, 44));
  registers("B0");
  for (Duration pause = 250ms; pause < 20s; pause *= 2) {
    disconnects("B0");
    gives_back("4.44");
    forget_what_was_asked();
    registers("B0");
    expect({"welcome B0"});
    after(std::min<Duration>(pause, 10s) - 1ms);
    expect_nothing();
    after(1ms);
    expect({"recall 20 from A0"});
  }
}

TEST_F(FillingTest, ForWhatWaitsAtAPilotOthersAreAskedFor) {
  given({patient(site_of("here", {cpu_shape()}))});
  given_pilot(10min);
  tasks_take(10ms);
  submit(New().array(1, 104));
  starts("3.1-4");  // and these run for minutes
  expect({"accept 3", "lease 3.1-104 to A0"});
  after(3min);
  expect({"open B: *"});
}

TEST_F(FillingTest, WhatAnIdlePilotCannotRunStaysWhereItIs) {
  given_pilot();
  given_second_pilot();
  disconnects("B0");
  submit(New().time(1min));
  ends("3", Failure::Ok, 10ms);
  forget_what_was_asked();
  submit(New().array(1, 44).time(1min));
  expect({"accept 4", "lease 4.1-44 to A0"});
  registers("B0", 30s);
  expect({"welcome B0"});
}

TEST_F(FillingTest, WhatWaitsIsCalledBackThoughOtherTasksWait) {
  Shape gpu = cpu_shape("gpu");
  gpu.capacity.set("gpus/a100", Amount::of(1));
  given({site_of("here", {cpu_shape(), gpu})});
  given_pilot();
  given_second_pilot();
  disconnects("B0");
  tasks_take(10ms, "3");
  submit(New().gpus("gpus", 1));
  submit(New().array(1, 44));
  forget_what_was_asked();
  registers("B0");
  expect({"welcome B0", "recall 20 from A0"});
}

TEST_F(FillingTest, RoomThatIsKeptNoMoreGoesToOthers) {
  given_pilot();
  submit(New().cpus(2));
  ends("2", Failure::Ok, 100ms);
  submit(New().cpus(2));
  submit(New().time(50min));
  submit(New().time(40min));
  submit(New().cpus(2).array(1, 100));  // five of them wait at the pilot
  submit(New().time(30min).array(1, 3));
  ends("5", Failure::Ok, 1min);  // what takes its room passes the larger ones over
  after(61s);
  expect_explained("6.50", "*room is being kept for it on pilot *0 since*");
  forget_what_was_asked();
  ends("7.1", Failure::Ok, 1min);
  expect({"tell 7", "acknowledge 7.1 to A0"});
  gives_back("6.5");
  expect({"lease 6.5 to A0"});
  after(1s);
  expect({"lease 7.2 to A0"});
}

TEST_F(FillingTest, RoomIsKeptForATaskThatWasPassedOver) {
  given_pilot();
  submit(New().array(1, 4).time(5min));
  submit(New().cpus(4));
  submit(New().array(1, 1000).time(10min));
  forget_what_was_asked();
  ends("2.1", Failure::Ok, 5min);
  expect({"tell 2", "acknowledge 2.1 to A0", "lease 4.1 to A0"});
  after(61s);
  forget_what_was_asked();
  expect_explained("3", "*room is being kept for it on pilot *0 since*");
  ends("4.1", Failure::Ok, 4min);
  ends("2.2-3", Failure::Ok, 5min);
  expect({"tell 4", "ack*", "tell 2", "ack*", "tell 2", "ack*"});
  ends("2.4", Failure::Ok, 5min);
  expect({"tell 2", "acknowledge 2.4 to A0", "lease 3 to A0"});
  ends("3", Failure::Ok, 10s);
  expect({"tell 3", "acknowledge 3 to A0", "lease 4.2-5 to A0"});
}

TEST_F(FillingTest, NoRoomIsKeptForATaskThatWouldNotEndInTime) {
  given_pilot(10min);
  submit(New().array(1, 4).time(5min));
  submit(New().cpus(4).time(8min));
  submit(New().array(1, 1000).time(30s));
  ends("2.1", Failure::Ok, 1min);
  after(61s);
  forget_what_was_asked();
  expect_explained("3", "*room is being kept for it on pilot *0 since*");
  after(2min);
  forget_what_was_asked();
  ends("2.2", Failure::Ok, 3min);
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 4.* to A0"});
}

TEST_F(FillingTest, APilotThatLeavesGetsNothing) {
  given_pilot();
  submit(New().array(1, 5));
  starts("2.1-4");
  forget_what_was_asked();
  leaves("A0");
  expect({"open B: *"});
  ends("2.1-3");
  forget_what_was_asked();
  ends("2.4");
  expect({"tell 2", "acknowledge 2.4 to A0", "end A0"});
}

TEST_F(FillingTest, ALeavingPilotThatGivesAllBackMayGo) {
  given_pilot();
  submit(New());
  expect({"accept 2", "lease 2 to A0"});
  leaves("A0");
  forget_what_was_asked();
  gives_back("2");
  expect({"end A0", "open B: *"});
}

TEST_F(FillingTest, TagsAndSitesAreKept) {
  Shape tagged = cpu_shape("ssd");
  tagged.tags = {"ssd"};
  given({site_of("here", {cpu_shape()}), site_of("there", {tagged})});
  given_pilot();
  submit(New().tag("ssd"));
  expect({"accept 2", "open B: ssd of there"});
  submit(New().on("there"));
  expect({"accept 3"});
  accepts("B");
  registers("B0");
  expect({"welcome B0", "lease 2 to B0", "lease 3 to B0"});
}

TEST_F(FillingTest, ATaskNeverRunsWhereItMayNot) {
  given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})});
  given_pilot();
  submit(New().not_on("here"));
  expect({"accept 2", "open B: cpu of there"});
  submit(New().not_on("there"));
  expect({"accept 3", "lease 3 to A0"});
  accepts("B");
  registers("B0");
  expect({"welcome B0", "lease 2 to B0"});
  disconnects("B0");
  restarts();
  forget_what_was_asked();
  registers("A0", 1h, {held("3")});
  expect({"welcome A0"});
}

}  // namespace
}  // namespace hpcbatch
