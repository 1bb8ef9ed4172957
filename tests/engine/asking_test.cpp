// How many allocations are asked for, and at which site.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class AskingTest : public EngineTest {};

TEST_F(AskingTest, TheFirstOfAShapeGoesAloneThenAsManyAsTheLimitAllows) {
  submit(New().array(1, 10'000).time(1h));
  expect({"accept 1", "open A: *"});
  after(1min);
  expect_nothing();
  accepts("A");
  expect(
      {"open B: *", "open C: *", "open D: *", "open E: *", "open F: *", "open G: *", "open H: *"});
  after(1min);
  expect_nothing();
}

TEST_F(AskingTest, WorkThatArrivesWhileAPilotIsQueuedJoinsIt) {
  submit(New());
  accepts("A");
  expect({"accept 1", "open A: *"});
  submit(New().array(1, 100));
  expect({"accept 2"});
  submit(New().array(1, 300).time(1min));
  expect({"accept 3", "open B: *"});
}

TEST_F(AskingTest, ReachedLimitsAndHeldBatchJobsStopTheAsking) {
  submit_much();
  batch("A", BatchState::LimitReached, "QOSMaxJobsPerUserLimit");
  after(1min);
  expect_nothing();
  batch("A", BatchState::Held, "JobHeldAdmin");
  after(1min);
  expect_nothing();
  expect_explained("1.1", "*allocation * is queued*(JobHeldAdmin)*");
  batch("A", BatchState::Queued, "Resources");
  after(15s);
  expect(
      {"open B: *", "open C: *", "open D: *", "open E: *", "open F: *", "open G: *", "open H: *"});
}

TEST_F(AskingTest, LongTasksOfUnknownLengthGetMorePilotsBeforeTheFirstEnds) {
  Shape big = cpu_shape();
  big.capacity.set(kCpus, Amount::of(32));
  big.walltime = 4h;
  given({patient(site_of("here", {big}))});
  given_pilot(4h, big.capacity);
  submit(New().array(1, 320));  // of two hours, which nobody said
  starts("2.1-32");
  expect({"accept 2", "lease 2.1-32 to A0"});
  after(10min);
  expect_nothing();
  after(20min);
  expect({"open B: *"});
  accepts("B");
  expect({"open C: *"});
  accepts("C");
  after(25min);
  expect({"open D: *"});
}

TEST_F(AskingTest, WhatRunsForAWhileIsWorthMorePilotsWhereWaitingCosts) {
  given_pilot(10h);
  submit(New().array(1, 12));
  starts("2.1-4");
  expect({"accept 2", "lease 2.1-4 to A0"});
  after(14s);
  expect_nothing();
  after(10s);
  expect({"open B: *"});
}

TEST_F(AskingTest, ARunThatAPilotsEndCutIsALowerBound) {
  given_pilot(30min);
  submit(New().array(1, 20));
  starts("2.1-4");
  after(30min);
  forget_what_was_asked();
  ends("2.1-4", Failure::PilotWalltime, 30min);
  const ResourceClass& its_class =
      engine_->tasks().queue().get(engine_->tasks().find(ArrayId{2})->terms->in_class);
  EXPECT_EQ(its_class.mean_run, 30min);
  forget_what_was_asked();
}

TEST_F(AskingTest, TheLongestTimeThatIsAcceptedCanRun) {
  submit(New().time(1h));
  accepts("A");
  registers("A0", 1h + 20s);  // its walltime less the end, and it took a moment to come
  expect({"accept 1", "open A: *", "welcome A0", "lease 1 to A0"});
}

TEST_F(AskingTest, TasksOfOneRoundingForDifferentShapesDoNotBlockEachOther) {
  Shape lasting = cpu_shape("long");
  Shape big = cpu_shape("big");
  big.capacity.set(kMemory, Amount::of(std::int64_t{17} << 30));
  big.walltime = 61min;
  given({site_of("here", {lasting, big})});
  const auto megabytes = [](std::int64_t count) { return count << 20; };
  const New one = New().memory(megabytes(15'872)).time(1h);
  const New other = New().memory(megabytes(16'690)).time(59min);
  ASSERT_EQ(class_of(one.needs), class_of(other.needs));
  submit(one);
  submit(other);
  expect({"accept 1", "open A: long of here", "accept 2", "open B: big of here"});
}

class TwoSitesTest : public AskingTest {
 protected:
  /// One task; A is asked for at the first of two sites.
  TwoSitesTest() {
    given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})});
    submit(New());
    expect({"accept 1", "open A: cpu of here"});
  }
};

TEST_F(TwoSitesTest, AnUnclearSubmitKeepsNothingFromTheOtherWhereItsSiteDoesNotAnswer) {
  polls_succeed_ = false;
  refuses("A", Refusal::Unclear, "timed out");
  after(15s);
  expect_nothing();
  after(5s);
  expect({"open B: cpu of there"});
}

TEST_F(TwoSitesTest, ASubmitThatHangsKeepsWorkFromTheOtherForAMinuteAtMost) {
  after(59s);
  expect_nothing();
  after(2s);
  expect({"open B: cpu of there"});
  after(10min);
  expect_nothing();
}

TEST_F(TwoSitesTest, APartitionThatIsDownKeepsNothingFromTheOther) {
  accepts("A");
  batch("A", BatchState::Outage, "PartitionDown");
  after(15s);
  expect({"open B: cpu of there"});
  accepts("B");
  after(10min);
  expect_nothing();
}

TEST_F(TwoSitesTest, AControllerThatDoesNotAnswerKeepsNothingFromTheOther) {
  accepts("A");
  polls_succeed_ = false;
  after(15s);
  expect_nothing();  // once is nothing
  after(5s);
  expect({"open B: cpu of there"});
}

}  // namespace
}  // namespace hpcbatch
