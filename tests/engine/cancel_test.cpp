// Cancelling: what waits ends at once, what a pilot has ends when the pilot, or the batch system,
// says so.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class CancelTest : public EngineTest {};

TEST_F(CancelTest, AWaitingTaskEndsAtOnce) {
  submit(New());
  expect({"accept 1", "open A: *"});
  cancel("1");
  expect({"tell 1", "count 1"});
  expect_ended("1", Failure::Cancelled, "*before it started");
  cancel("1");
  expect({"count 0"});
}

TEST_F(CancelTest, ARunningTaskIsKilledAndEndsCancelled) {
  given_pilot();
  submit(New());
  starts("2");
  forget_what_was_asked();
  cancel("2");
  expect({"kill 2 at A0", "count 1"});
  expect_explained("2", "runs at pilot *being cancelled*");
  cancel("2");
  expect({"count 1"});
  ends("2", Failure::ToolSignal);
  expect({"tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::Cancelled);
}

TEST_F(CancelTest, ATaskThatEndedFirstKeepsItsResult) {
  given_pilot();
  submit(New());
  forget_what_was_asked();
  cancel("2");
  ends("2");
  expect({"kill 2 at A0", "count 1", "tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::Ok);
}

TEST_F(CancelTest, AnUnstartedLeaseThatComesBackEndsCancelled) {
  given_pilot();
  submit(New());
  forget_what_was_asked();
  cancel("2");
  gives_back("2");
  expect({"kill 2 at A0", "count 1", "tell 2"});
  expect_ended("2", Failure::Cancelled);
  EXPECT_EQ(saved_.outcome(task("2"))->ended, now_);
}

TEST_F(CancelTest, WhatIsNamedWithWhatItWaitsForIsCancelledToo) {
  submit(New().on_hold());
  submit(New().wait_for("1"));
  submit(New().wait_for("2"));
  forget_what_was_asked();
  happens(CancelAsked{RequestId{77},
                      {{task("1").array, {}}, {task("2").array, {}}, {task("3").array, {}}}});
  expect({"tell 3", "tell 2", "tell 1", "count 3"});
  for (const char* one : {"1", "2", "3"}) expect_ended(one, Failure::Cancelled);
}

TEST_F(CancelTest, ARangeOfAnArray) {
  given_pilot();
  submit(New().array(1, 10).cpus(2));
  expect({"accept 2", "lease 2.1-2 to A0"});
  cancel("2.2-5");
  expect({"tell 2", "kill 2.2 at A0", "count 4"});
  ends("2.2", Failure::ToolSignal);
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 2.6 to A0"});
  for (const char* name : {"2.2", "2.3", "2.4", "2.5"}) expect_ended(name, Failure::Cancelled);
  cancel("2.90-95");
  expect({"count 0"});
}

TEST_F(CancelTest, AWholeArrayHeldParkedAndRunning) {
  given_pilot();
  submit(New().array(1, 6).at_once(2));
  hold("2.6");
  forget_what_was_asked();
  cancel("2");
  expect({"tell 2", "kill 2.1 at A0", "kill 2.2 at A0", "count 6"});
  ends("2.1-2", Failure::ToolSignal);
  expect({"tell 2", "acknowledge 2.1 to A0", "tell 2", "acknowledge 2.2 to A0"});
  EXPECT_TRUE(engine_->tasks().arrays().empty());
}

TEST_F(CancelTest, OutputsOfACancelledTaskAreNotPublished) {
  given_pilot();
  submit(New());
  forget_what_was_asked();
  cancel("2");
  stages("2");
  expect({"kill 2 at A0", "count 1", "kill 2 at A0"});
  ends("2", Failure::Cancelled);
  expect({"tell 2", "acknowledge 2 to A0"});
}

TEST_F(CancelTest, OnASilentPilotItIsToldWhenThePilotIsBack) {
  given_pilot();
  submit(New().array(1, 2));
  starts("2.1-2");
  disconnects("A0");
  forget_what_was_asked();
  cancel("2.1");
  expect({"count 1"});
  registers("A0", 1h, {held("2.1"), held("2.2")});
  expect({"welcome A0", "kill 2.1 at A0"});
}

TEST_F(CancelTest, OnASilentPilotThatNeverComesBackItEndsWithItsBatchJob) {
  given_pilot();
  submit(New());
  starts("2");
  disconnects("A0");
  forget_what_was_asked();
  cancel("2");
  expect({"count 1"});
  batch_ended("A", EndCause::NodeFailed);
  after(1s);
  expect({"read the outbox of A"});
  reads_outbox("A");
  expect({"tell 2", "forget A"});
  expect_ended("2", Failure::Cancelled);
}

TEST_F(CancelTest, ItIsNotForgottenByARestart) {
  given_pilot();
  submit(New().array(1, 3).may_fail(5));
  starts("2.1-2");
  cancel("2.1-3");
  forget_what_was_asked();
  restarts();
  registers("A0", 1h, {held("2.1"), held("2.2")});
  expect({"welcome A0", "kill 2.1 at A0", "kill 2.2 at A0", "tell 2"});  // 2.3 never got there
  expect_ended("2.3", Failure::Cancelled);
  ends("2.1", Failure::ToolSignal);
  expect({"tell 2", "acknowledge 2.1 to A0"});
  expect_ended("2.1", Failure::Cancelled);
  batch_ended("A", EndCause::NodeFailed);
  restarts();
  expect({"read the outbox of A"});
  reads_outbox("A");
  expect({"tell 2", "forget A"});
  expect_ended("2.2", Failure::Cancelled);
}

TEST_F(CancelTest, ATaskIsNeverTriedAgain) {
  given_pilot();
  submit(New().may_fail(5));
  forget_what_was_asked();
  cancel("2");
  ends("2", Failure::ToolFailed);
  expect({"kill 2 at A0", "count 1", "tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::Cancelled);
}

}  // namespace
}  // namespace hpcbatch
