// A submit whose answer was lost is settled by the name of the allocation, never by asking again.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class UnclearSubmitTest : public EngineTest {};

TEST_F(UnclearSubmitTest, AnUnclearSubmitThatIsFoundByNameIsKept) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  expect({"accept 1", "open A: *"});
  expect_explained("1", "*allocation * is unclear*timed out*");
  batch("A", BatchState::Queued);
  after(10min);
  expect_nothing();
  EXPECT_EQ(saved_.allocations().at(allocation("A")).state, AllocationState::Queued);
  EXPECT_EQ(saved_.allocations().at(allocation("A")).number, "100A");
}

TEST_F(UnclearSubmitTest, AnUnclearSubmitThatIsAbsentIsAskedForAgainUnderTheSameName) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  expect({"accept 1", "open A: *"});
  after(19s);
  expect_nothing();
  EXPECT_GE(polls(), 2U) << "it is looked for, but absence is believed only after a while";
  after(7s);
  expect({"open A: *"});
  accepts("A");
  after(1min);
  expect_nothing();
}

TEST_F(UnclearSubmitTest, ACommandThatMayRunOnBehindALostLineIsWaitedFor) {
  submit(New());
  happens(AllocationRefused{allocation("A"), Refusal::Unclear, "the line was cut", true});
  expect({"accept 1", "open A: *"});
  after(79s);  // it is killed there when its own minute is over
  expect_nothing();
  after(7s);
  expect({"open A: *"});
}

TEST_F(UnclearSubmitTest, SubmissionsThatVanishAgainAndAgainAreAPause) {
  submit(New());
  expect({"accept 1", "open A: *"});
  for (int round = 0; round < 2; ++round) {
    refuses("A", Refusal::Unclear, "timed out");
    after(27s);
    expect({"open A: *"});
  }
  refuses("A", Refusal::Unclear, "timed out");
  after(27s);
  expect({"forget A"});
  expect_explained(
      "1", "*not asked for during the next *3 submissions in a row were not answered*timed out*");
  after(20s);
  expect_nothing();
  after(11s);
  expect({"open B: *"});
}

TEST_F(UnclearSubmitTest, AnUnclearAnswerThatCameLateIsNotSettledSooner) {
  submit(New());
  after(10min);  // the submit command hung
  refuses("A", Refusal::Unclear, "killed at its deadline");
  expect({"accept 1", "open A: *"});
  after(19s);
  expect_nothing();
  after(7s);
  expect({"open A: *"});
}

TEST_F(UnclearSubmitTest, AnUnclearSubmitIsNeverSettledByAListThatFailed) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  expect({"accept 1", "open A: *"});
  polls_succeed_ = false;
  after(1h);
  expect_nothing();
  expect_explained("1", "*site here has not answered for *no contact*");
}

TEST_F(UnclearSubmitTest, APilotThatRegistersSettlesWhatIsUnclear) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  registers("A0");
  expect({"accept 1", "open A: *", "welcome A0", "lease 1 to A0"});
  after(1h);
  expect_nothing();
}

TEST_F(UnclearSubmitTest, AnEngineThatDiedInTheMiddleOfASubmitLooksTheNameUp) {
  submit(New());
  restarts();
  expect({"accept 1", "open A: *"});
  after(79s);  // the command that the dead engine began may still be under way
  expect_nothing();
  after(7s);
  expect({"open A: *"});
  restarts();
  batch("A", BatchState::Queued);
  after(1h);
  expect_nothing();
}

TEST_F(UnclearSubmitTest, AnUnclearSubmitThatIsAbsentRespectsThePauseOfItsShape) {
  submit_much();
  accepts("A");
  forget_what_was_asked();
  refuses("B", Refusal::Limit, "MaxJobCount");
  expect({"forget B"});
  refuses("C", Refusal::Unclear, "timed out");
  after(27s);
  expect({"forget C"});
}

TEST_F(UnclearSubmitTest, AnAnswerThatComesAfterTheEndIsNoSecondEnd) {
  submit(New());
  registers("A0");
  starts("1");
  disconnects("A0");
  batch_ended("A", EndCause::Completed);
  forget_what_was_asked();
  after(1s);
  expect({"read the outbox of A"});
  refuses("A", Refusal::Unclear, "timed out");
  expect_nothing();
  reads_outbox("A");
  expect({"forget A", "open B: *"});
}

TEST_F(UnclearSubmitTest, ListsFromBeforeAPilotCameOrWentProveNothing) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  after(15s);  // lists that lack it, and absence is not believed yet
  EXPECT_GE(polls(), 3U);
  registers("A0");
  starts("1");
  disconnects("A0");
  forget_what_was_asked();
  for (int list = 0; list < 3; ++list) happens(SitePolled{"here", {}, now_});
  expect_nothing();
}

TEST_F(UnclearSubmitTest, ASlowSubmitIsNotTakenForAbsent) {
  submit(New());
  submit(New().cpus(4));
  after(5min);  // several lists do not show what is still being submitted
  accepts("A");
  batch_forgot("A");  // and the next one is a little old
  happens(SitePolled{"here", {}, now_ - 1s});
  happens(SitePolled{"here", {}, now_ + 1ms});
  expect({"accept 1", "open A: *", "accept 2"});
  EXPECT_EQ(saved_.allocations().at(allocation("A")).state, AllocationState::Queued);
}

}  // namespace
}  // namespace hpcbatch
