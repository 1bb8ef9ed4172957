// The engine dies and starts again: nothing is lost, nothing is started twice, pilots are used on.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class RestartTest : public EngineTest {};

TEST_F(RestartTest, WhatWaitedWaitsAndWhatHadEndedStaysEnded) {
  given_pilot();
  submit(New().array(1, 10).cpus(2));
  ends("2.1");
  ends("2.2", Failure::ToolFailed);
  restarts();
  forget_what_was_asked();
  registers("A0", 1h, {held("2.3"), held("2.4")});
  expect({"welcome A0"});
  EXPECT_EQ(engine_->counts().running, 2U);
  EXPECT_EQ(engine_->counts().waiting, 6U);
  submit(New());
  expect({"accept 3"});  // ids go on
}

TEST_F(RestartTest, NothingLeasedIsLeasedAgainBeforeItsPilotHasSpoken) {
  given_pilot();
  submit(New().array(1, 2));
  starts("2.1");
  forget_what_was_asked();
  restarts();
  after(14min);
  expect_nothing();
  expect_state("2.1", TaskState::Unknown);
  registers("A0", 30min, {held("2.1")});
  expect({"welcome A0", "lease 2.2 to A0"});  // which it never got
  ends("2.1");
  expect({"tell 2", "acknowledge 2.1 to A0"});
}

TEST_F(RestartTest, AnAttemptsEpochHoldsTheStart) {
  given_pilot();
  submit(New());
  const AttemptId before = attempt("2");
  restarts();
  registers("A0");
  forget_what_was_asked();
  EXPECT_EQ(before.engine_start(), 1U);
  EXPECT_EQ(attempt("2").engine_start(), 2U);
  EXPECT_EQ(attempt("2").number, before.number) << "it never ran";
}

TEST_F(RestartTest, AResultWhoseAcknowledgementWasLostIsAcknowledgedAgain) {
  given_pilot();
  submit(New());
  const EndAtPilot done = result("2");
  ends("2");
  forget_what_was_asked();
  restarts();
  registers("A0", 1h, {held("2", HeldAttempt::State::Ended)});
  expect({"welcome A0"});
  happens(done);
  expect({"acknowledge 2 to A0"});
}

TEST_F(RestartTest, AllocationsAreFollowedOn) {
  given({patient(site_of("here", {cpu_shape()}))});
  submit(New().array(1, 500).time(1min));
  accepts("A");
  expect({"accept 1", "open A: *", "open B: *", "open C: *"});
  accepts("B");
  registers("B0");
  forget_what_was_asked();
  restarts();
  refuses("C", Refusal::Unclear);  // what the engine of before had asked is nobody's answer now
  batch("A", BatchState::Running);
  after(25s);
  registers("A0");
  registers("B0", 1h, {held("1.1"), held("1.2"), held("1.3"), held("1.4")});
  expect({"welcome A0", "lease 1.5-8 to A0", "welcome B0"});
  after(65s);
  expect({"open C: *"});  // unclear, and not there
}

TEST_F(RestartTest, APilotThatDiedMeanwhileIsFoundByItsBatchJob) {
  given_pilot();
  submit(New().array(1, 2));
  starts("2.1");
  forget_what_was_asked();
  batch_ended("A", EndCause::NodeFailed);
  restarts();
  expect({"read the outbox of A"});
  const EndAtPilot done = result("2.2");
  // NOLINTNEXTLINE(cppcoreguidelines-slicing)
  reads_outbox("A", {done});
  expect({"tell 2", "forget A", "open B: *"});
  expect_ended("2.2", Failure::Ok);
  EXPECT_EQ(saved_.failed_attempts().at(0).outcome.failure, Failure::NodeLost);
}

TEST_F(RestartTest, WhatEndedWhileTheEngineWasAwayIsNoEvidenceAgainstItsTasks) {
  given_pilot();
  submit(New());
  for (const char* letter : {"A", "B", "C", "D"}) {
    if (*letter != 'A') {
      accepts(letter);
      registers(std::string(letter) + "0");
    }
    batch_ended(letter, EndCause::Failed);
    restarts();
    reads_outbox(letter);
    after(2min);
    EXPECT_FALSE(saved_.failed_attempts().back().unexplained);
  }
  expect_state("2", TaskState::Waiting);
  forget_what_was_asked();
}

TEST_F(RestartTest, NewWorkDoesNotWaitForAPilotThatDoesNotComeBack) {
  given_pilot();
  restarts();
  submit(New());
  expect({"accept 2"});
  after(62s);
  expect({"open B: *"});
}

TEST_F(RestartTest, TheSilenceOfAPilotIsCountedFromTheStart) {
  given_pilot();
  submit(New());
  starts("2");
  forget_what_was_asked();
  after(10min);
  restarts();
  after(14min);
  expect_nothing();
  after(61s);
  expect({"cancel A", "read the outbox of A"});
}

TEST_F(RestartTest, RetriesThatWereUsedStayUsed) {
  given_pilot();
  submit(New().may_fail(1));
  ends("2", Failure::ToolFailed);
  forget_what_was_asked();
  restarts();
  registers("A0", 1h, {held("2")});
  expect({"welcome A0"});
  ends("2", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2 to A0"});
}

TEST_F(RestartTest, RoomForALargeTaskIsKeptOverARestart) {
  given_pilot();
  submit(New().array(1, 4));  // array 2
  submit(New().cpus(4));      // array 3, which has to wait for all of them
  submit(New().array(1, 40));
  after(1s);
  ends("2.1", Failure::Ok, 1min);
  ends("2.2", Failure::Ok, 1min);
  restarts();
  registers("A0", 1h, {held("2.3"), held("2.4"), held("4.1"), held("4.2")});
  after(1s);
  forget_what_was_asked();
  ends("2.3", Failure::Ok, 1min);
  ends("4.1", Failure::Ok, 1min);
  expect({"tell 2", "acknowledge *", "tell 4", "acknowledge *"});
  expect_explained("3", "*room is being kept for it on pilot *");
  ends("2.4", Failure::Ok, 1min);
  ends("4.2", Failure::Ok, 1min);
  expect({"tell 2", "acknowledge *", "tell 4", "acknowledge *", "lease 3 to A0"});
}

TEST_F(RestartTest, AnArrayRunsNoMoreAtOnceThanItMayOverARestart) {
  given_pilot();
  submit(New().array(1, 5).at_once(2));
  forget_what_was_asked();
  restarts();
  registers("A0", 1h, {held("2.1"), held("2.2")});
  expect({"welcome A0"});
  ends("2.1");
  expect({"tell 2", "acknowledge 2.1 to A0", "lease 2.3 to A0"});
}

}  // namespace
}  // namespace hpcbatch
