// More failures of an array than its user wants to see: the rest of it is not even begun.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class GivingUpTest : public EngineTest {};

TEST_F(GivingUpTest, OneFailureTooManyCancelsWhatHasNotStarted) {
  given_pilot();
  submit(New().array(1, 9).cpus(2).give_up_after(1));
  expect({"accept 2", "lease 2.1-2 to A0"});
  starts("2.1-2");
  ends("2.1", Failure::ToolFailed);
  forget_what_was_asked();
  starts("2.3");
  ends("2.2", Failure::OomTask);
  expect({"tell 2", "acknowledge 2.2 to A0", "tell 2"});
  for (const char* name : {"2.4", "2.9"})
    expect_ended(name, Failure::Cancelled,
                 "cancelled, because 2 of submission 2 failed, and at most 1 may");
  expect_state("2.3", TaskState::Running);
  ends("2.3");
  EXPECT_TRUE(engine_->tasks().arrays().empty());
  expect_ended("2.3", Failure::Ok);
  forget_what_was_asked();
}

TEST_F(GivingUpTest, WhatAPilotHasAndHasNotBegunIsTakenBack) {
  given_pilot();
  submit(New().array(1, 4).cpus(2).give_up_after(0));
  starts("2.1");
  forget_what_was_asked();
  ends("2.1", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2.1 to A0", "tell 2", "kill 2.2 at A0"});
}

TEST_F(GivingUpTest, WhatRunsIsEndedWhereThatIsWanted) {
  given_pilot();
  submit(New().array(1, 9).cpus(2).give_up_after(0, true));
  starts("2.1-2");
  forget_what_was_asked();
  ends("2.1", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2.1 to A0", "tell 2", "kill 2.2 at A0"});
  ends("2.2", Failure::ToolSignal);
  expect_ended("2.2", Failure::Cancelled,
               "cancelled, because 1 of submission 2 failed, and at most 0 may");
  EXPECT_TRUE(engine_->tasks().arrays().empty());
  forget_what_was_asked();
}

TEST_F(GivingUpTest, TriesAndCancelledTasksDoNotCount) {
  given_pilot();
  submit(New().array(1, 6).cpus(2).may_fail(1).give_up_after(1));
  cancel("2.5-6");
  ends("2.1", Failure::ToolFailed);
  ends("2.2", Failure::ToolFailed);
  ends("2.1", Failure::ToolFailed);
  expect_state("2.4", TaskState::Waiting);
  ends("2.2", Failure::ToolFailed);
  expect_ended("2.4", Failure::Cancelled);
  forget_what_was_asked();
}

TEST_F(GivingUpTest, WhatFailedBeforeARestartCounts) {
  given_pilot();
  submit(New().array(1, 6).cpus(4).give_up_after(1));
  ends("2.1", Failure::ToolFailed);
  cancel("2.6");
  restarts();
  registers("A0", 1h, {held("2.2")});
  ends("2.2", Failure::ToolFailed);
  expect_ended("2.3", Failure::Cancelled,
               "cancelled, because 2 of submission 2 failed, and at most 1 may");
  EXPECT_TRUE(engine_->tasks().arrays().empty());
  forget_what_was_asked();
}

TEST_F(GivingUpTest, ARetryTakesItsFailuresOffTheCount) {
  given_pilot();
  submit(New().array(1, 6).cpus(4).give_up_after(1));
  ends("2.1-2", Failure::OomTask);
  EXPECT_TRUE(engine_->tasks().arrays().empty());
  retry({"2"});
  ends("2.1", Failure::OomTask);
  expect_state("2.3", TaskState::Waiting);
  ends("2.2", Failure::OomTask);
  expect_ended("2.6", Failure::Cancelled,
               "cancelled, because 2 of submission 2 failed, and at most 1 may");
  forget_what_was_asked();
}

TEST_F(GivingUpTest, ArraysThatDifferInThatAloneAreToldApart) {
  given_pilot();
  submit(New().array(1, 3).cpus(4).give_up_after(0));
  submit(New().array(1, 3).cpus(4));
  ends("2.1", Failure::ToolFailed);
  ends("3.1", Failure::ToolFailed);
  expect_ended("2.2", Failure::Cancelled);
  expect_state("3.3", TaskState::Waiting);
  forget_what_was_asked();
}

}  // namespace
}  // namespace hpcbatch
