// The engine is stopped: leaving all alone, waiting for what runs, or ending everything.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class StopTest : public EngineTest {
 protected:
  void stop(StopAsked::Mode mode) { happens(StopAsked{mode}); }
};

TEST_F(StopTest, LeavingTouchesNothing) {
  given_pilot();
  submit(New());
  forget_what_was_asked();
  stop(StopAsked::Mode::Leave);
  expect({"idle"});
}

TEST_F(StopTest, DrainingWaitsForWhatRunsAndStartsNothing) {
  given_pilot();
  submit(New().array(1, 6));
  starts("2.1-4");
  forget_what_was_asked();
  stop(StopAsked::Mode::Drain);
  expect_nothing();
  expect_explained("2.5", "the engine is being stopped*");
  ends("2.1-3");
  expect({"tell 2", "ack*", "tell 2", "ack*", "tell 2", "ack*"});
  ends("2.4");
  expect({"tell 2", "acknowledge 2.4 to A0", "end A0"});
  leaves("A0", "drained");
  disconnects("A0");
  batch_ended("A", EndCause::Completed);
  after(5s);
  expect({"forget A", "idle"});
  submit(New());
  after(1h);
  expect({"accept 3"});
}

TEST_F(StopTest, DrainingCancelsWhatIsQueued) {
  submit(New());
  accepts("A");
  forget_what_was_asked();
  stop(StopAsked::Mode::Drain);
  expect({"cancel A"});
  after(9s);
  expect({"forget A", "idle"});
}

TEST_F(StopTest, ABatchSystemThatDoesNotSayThatAllIsOverIsNotWaitedForLong) {
  submit(New());
  accepts("A");
  forget_what_was_asked();
  polls_succeed_ = false;
  stop(StopAsked::Mode::Drain);
  expect({"cancel A"});
  after(9s);
  expect_nothing();
  after(2s);
  expect({"idle"});
}

TEST_F(StopTest, DrainingCancelsWhatIsAcceptedLater) {
  submit(New());
  forget_what_was_asked();
  stop(StopAsked::Mode::Drain);
  accepts("A");
  expect({"cancel A"});
}

TEST_F(StopTest, DrainingAsksForNothingUnclearAgain) {
  submit(New());
  forget_what_was_asked();
  stop(StopAsked::Mode::Drain);
  refuses("A", Refusal::Unclear);
  after(5min);
  expect({"cancel A", "idle", "forget A"});
}

TEST_F(StopTest, APilotThatComesWhileDrainingMayGo) {
  submit(New());
  accepts("A");
  batch("A", BatchState::Running);
  after(20s);
  forget_what_was_asked();
  stop(StopAsked::Mode::Drain);
  registers("A0");
  expect({"welcome A0", "end A0"});
}

TEST_F(StopTest, NowEndsEverything) {
  given_pilot();
  submit(New().array(1, 100).time(50min));
  accepts("B");
  starts("2.1-4");
  forget_what_was_asked();
  stop(StopAsked::Mode::Now);
  expect({"tell 2", "kill 2.1 at A0", "kill 2.2 at A0", "kill 2.3 at A0", "kill 2.4 at A0",
          "cancel *", "cancel *", "cancel *", "cancel *", "cancel *", "cancel *", "cancel *",
          "cancel *"});
  ends("2.1-4", Failure::ToolSignal);
  expect({"tell 2", "ack*", "tell 2", "ack*", "tell 2", "ack*", "tell 2", "ack*", "end A0"});
  EXPECT_TRUE(engine_->tasks().arrays().empty());
}

TEST_F(StopTest, NowDoesNotWaitForASilentPilotsWord) {
  given_pilot();
  submit(New());
  starts("2");
  disconnects("A0");
  forget_what_was_asked();
  stop(StopAsked::Mode::Now);
  expect({"cancel A"});
  after(20s);
  expect({"read the outbox of A"});
  reads_outbox("A");
  expect({"tell 2", "forget A", "idle"});
  expect_ended("2", Failure::Cancelled);
}

}  // namespace
}  // namespace hpcbatch
