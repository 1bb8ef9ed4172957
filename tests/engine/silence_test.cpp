// Pilots that fall silent, come back, are started twice; fences, epochs and permission to publish.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class SilenceTest : public EngineTest {
 protected:
  SilenceTest() { given_pilot(); }
  void registers_anew(const std::string& name, std::uint64_t incarnation,
                      std::vector<HeldAttempt> held_there = {}) {
    Resources capacity;
    capacity.set(kCpus, Amount::of(4));
    happens(PilotRegistered{
        pilot(name), incarnation, "node2", capacity, 1h, std::move(held_there), "", {}});
  }
};

TEST_F(SilenceTest, SilenceAloneNeverLeasesAgain) {
  submit(New().array(1, 4));
  starts("2.1-3");
  forget_what_was_asked();
  disconnects("A0");
  after(14min);
  expect_state("2.1", TaskState::Unknown);
  expect_explained("2.1", "unknown: pilot * on node1 has been silent for 14m*");
  EXPECT_EQ(engine_->counts().unknown, 3U);
  expect_nothing();
  registers("A0", 30min,
            {held("2.1"), held("2.2"), held("2.3"), held("2.4", HeldAttempt::State::Waiting)});
  expect({"welcome A0"});
  expect_state("2.1", TaskState::Running);
  after(2h);
  expect_nothing();
}

TEST_F(SilenceTest, AfterALongSilenceTheBatchJobIsCancelledAndOnlyItsEndLeasesAgain) {
  submit(New());
  starts("2");
  disconnects("A0");
  cancels_work_ = false;
  forget_what_was_asked();
  after(15min + 1s);
  expect({"cancel A"});
  after(29s);
  expect_state("2", TaskState::Unknown);
  expect_nothing();
  batch_ended("A", EndCause::Cancelled);
  after(16s);
  expect({"read the outbox of A"});
  reads_outbox("A");
  expect({"forget A", "open B: *"});
  EXPECT_FALSE(saved_.failed_attempts().back().unexplained) << "we know who killed it";
  accepts("B");
  registers("B0");
  expect({"welcome B0", "lease 2 again (2) to B0"});
}

TEST_F(SilenceTest, ASilentPilotWithoutTasksIsLeftToItsTime) {
  disconnects("A0");
  after(1h);
  expect_nothing();
}

TEST_F(SilenceTest, APilotThatIsBackBeforeItsCancelGetsNothingMore) {
  submit(New());
  starts("2");
  disconnects("A0");
  cancels_work_ = false;
  after(15min + 1s);
  forget_what_was_asked();
  registers("A0", 30min, {held("2")});
  expect({"welcome A0"});
  submit(New());
  expect({"accept 3", "open B: *"});
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0", "end A0"});
}

TEST_F(SilenceTest, NewWorkDoesNotWaitForASilentPilot) {
  disconnects("A0");
  forget_what_was_asked();
  submit(New());
  expect({"accept 2"});
  after(30s);
  expect_nothing();  // a short loss of the link is no reason to ask for another
  after(32s);
  expect({"open B: *"});
}

TEST_F(SilenceTest, ALeaseThatNeverReachedItsPilotGoesBack) {
  submit(New().array(1, 2));
  disconnects("A0");
  forget_what_was_asked();
  registers("A0", 1h, {held("2.1", HeldAttempt::State::Waiting)});
  expect({"welcome A0", "lease 2.2 to A0"});
  EXPECT_TRUE(saved_.failed_attempts().empty());
}

TEST_F(SilenceTest, AQuickReconnectIsNoNewPilot) {
  submit(New());
  starts("2");
  forget_what_was_asked();
  registers("A0", 1h, {held("2")});
  expect({"welcome A0"});
  disconnects("A0");
  disconnects("A0");
  expect_nothing();
}

TEST_F(SilenceTest, OfTwoPilotsWithOneNameTheFirstKeepsIt) {
  submit(New());
  starts("2");
  forget_what_was_asked();
  registers_anew("A0", 8);
  expect({"fence A0 (8)"});
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0"});
}

TEST_F(SilenceTest, ARequeuedBatchJobStartsItsTasksAnew) {
  submit(New().array(1, 2));
  starts("2.1");
  disconnects("A0");
  forget_what_was_asked();
  registers_anew("A0", 8);
  expect({"welcome A0", "lease 2.1 again (2) to A0", "lease 2.2 to A0"});
  ASSERT_EQ(saved_.failed_attempts().size(), 1U);
  EXPECT_EQ(saved_.failed_attempts()[0].outcome.failure, Failure::NodeLost);
  EXPECT_FALSE(saved_.failed_attempts()[0].charged);
  registers("A0");  // the first is back: it was given up
  expect({"fence A0 (7)"});
}

TEST_F(SilenceTest, AResultOfAnOldEpochIsRefused) {
  submit(New());
  const EndAtPilot old = result("2");
  starts("2");
  disconnects("A0");
  registers_anew("A0", 8);
  forget_what_was_asked();
  happens(old);
  expect({"acknowledge 2 to A0"});
  expect_state("2", TaskState::Waiting);
  EndAtPilot staged = old;
  staged.outputs_staged = true;
  happens(staged);
  expect({"acknowledge 2 to A0"});  // and no permission
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0"});
}

TEST_F(SilenceTest, WhatAPilotHoldsWithoutALeaseIsKilledSilently) {
  submit(New());
  const HeldAttempt stale = held("2");
  gives_back("2");
  disconnects("A0");
  forget_what_was_asked();
  registers("A0", 1h, {stale, held("2", HeldAttempt::State::Waiting)});
  expect({"welcome A0", "kill 2 at A0 silently"});
}

TEST_F(SilenceTest, OutputsArePublishedWithPermissionOnly) {
  submit(New());
  starts("2");
  forget_what_was_asked();
  stages("2");
  expect({"permit 2 to publish at A0"});
  expect_explained("2", "done at pilot *its outputs are being put in place*");
  disconnects("A0");
  registers("A0", 1h, {held("2", HeldAttempt::State::Publishing)});
  stages("2");  // it did not hear the permission
  expect({"welcome A0", "permit 2 to publish at A0"});
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0"});
}

TEST_F(SilenceTest, OnePilotOfTwoFallsSilent) {
  Shape wide = cpu_shape("wide");
  wide.nodes = 2;
  given({site_of("here", {wide})});
  given_pilot();
  registers("A1");
  submit(New().array(1, 8));
  expect({"welcome A1", "accept 2", "lease 2.1-4 to A0", "lease 2.5-8 to A1"});
  starts("2.1-8");
  disconnects("A1");
  after(10min);
  registers("A1", 40min, {held("2.5"), held("2.6"), held("2.7"), held("2.8")});
  expect({"welcome A1"});
  disconnects("A0");
  batch_ended("A", EndCause::NodeFailed);
  after(1s);
  expect({"fence A1 (7)", "read the outbox of A"});
  reads_outbox("A");
  forget_what_was_asked();
  EXPECT_EQ(saved_.failed_attempts().size(), 8U);
}

TEST_F(SilenceTest, WhatIsSuspendedIsNotCancelledForItsSilence) {
  submit(New());
  starts("2");
  disconnects("A0");
  batch("A", BatchState::Suspended);
  forget_what_was_asked();
  after(1h);
  expect_nothing();
  expect_explained("2", "*of here has suspended allocation *: its pilots go on*");
  batch("A", BatchState::Running);
  expect_explained("2", "*silent*");
  after(14min);
  expect_nothing();
  after(2min);
  expect({"cancel A", "read the outbox of A"});
}

TEST_F(SilenceTest, ABatchJobWhosePilotNeverComesIsCancelled) {
  submit(New().cpus(4).time(1h));
  submit(New().cpus(4).time(1h));
  accepts("B");
  forget_what_was_asked();
  batch("B", BatchState::Running);
  after(14min);
  expect_nothing();
  after(78s);
  expect({"cancel B", "forget B"});
  expect_explained("3", "*never registered; its output lies in the workspace*");
}

}  // namespace
}  // namespace hpcbatch
