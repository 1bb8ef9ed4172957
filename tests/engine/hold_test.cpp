// Holding what waits at a pilot already.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class HoldTest : public EngineTest {
 protected:
  /// Four run, forty wait at the pilot behind them.
  void given_a_backlog() {
    given_pilot();
    tasks_take(10ms);
    submit(New().array(1, 44));
    starts("3.1-4");
    forget_what_was_asked();
  }
  void tasks_take(Duration time) {
    submit(New());
    starts("2");
    ends("2", Failure::Ok, time);
  }
};

TEST_F(HoldTest, WhatWaitsAtAPilotIsCalledBackAndHeld) {
  given_a_backlog();
  hold("3");
  expect({"recall 40 from A0", "count 0"});
  starts("3.5");  // crossed the recall
  gives_back("3.6-44");
  expect_state("3.6", TaskState::Held);
  expect_state("3.44", TaskState::Held);
  ends("3.1-5");
  expect({"tell 3", "acknowledge 3.1 to A0", "tell 3", "acknowledge 3.2 to A0", "tell 3",
          "acknowledge 3.3 to A0", "tell 3", "acknowledge 3.4 to A0", "tell 3",
          "acknowledge 3.5 to A0"});
  restarts();
  expect_state("3.44", TaskState::Held);
}

TEST_F(HoldTest, OthersThatComeBackWithItWaitOn) {
  given_a_backlog();
  hold("3.10-12");
  expect({"recall 40 from A0", "count 0"});
  gives_back("3.5-44");
  expect_state("3.10", TaskState::Held);
  expect_state("3.12", TaskState::Held);
  expect({"lease 3.5-9,13-44 to A0"});
}

TEST_F(HoldTest, ReleasedBeforeItComesBack) {
  given_a_backlog();
  hold("3");
  hold("3", false);
  forget_what_was_asked();
  gives_back("3.5-44");
  expect({"lease 3.5-44 to A0"});
}

TEST_F(HoldTest, CancelledBeforeItComesBack) {
  given_a_backlog();
  hold("3.5");
  cancel("3.5");
  forget_what_was_asked();
  gives_back("3.5-44");
  expect({"tell 3", "lease 3.6-44 to A0"});
  expect_ended("3.5", Failure::Cancelled);
}

TEST_F(HoldTest, WhatRunsIsHeldWhenItWouldRunAgain) {
  given_pilot();
  submit(New().array(1, 2));
  starts("2.1-2");
  hold("2");
  expect_state("2.1", TaskState::Running);
  hold("2.2", false);
  ends("2.1-2", Failure::Requeued);
  expect_state("2.1", TaskState::Held);
  starts("2.2");
  hold("2.1", false);
  expect({"accept 2", "lease 2.1-2 to A0", "count 0", "count 0", "acknowledge 2.1 to A0",
          "acknowledge 2.2 to A0", "lease 2.2 again (2) to A0", "count 1",
          "lease 2.1 again (2) to A0"});
}

TEST_F(HoldTest, APilotOutOfReachIsAskedWhenItIsBack) {
  given_a_backlog();
  disconnects("A0");
  hold("3");
  expect({"count 0"});
  std::vector<HeldAttempt> there;
  for (int i = 1; i <= 44; ++i) {
    there.push_back({attempt("3." + std::to_string(i)),
                     i <= 4 ? HeldAttempt::State::Running : HeldAttempt::State::Waiting});
  }
  registers("A0", 1h, there);
  expect({"welcome A0", "recall 40 from A0"});
}

}  // namespace
}  // namespace hpcbatch
