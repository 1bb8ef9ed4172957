// Needs that were guessed from runs before: packed by, no limit, and withdrawn where they were too little.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

constexpr std::int64_t kGigabyte = std::int64_t{1} << 30;

class GuessTest : public EngineTest {
 protected:
  /// 12 GB are asked for, and 4 guessed.
  static New guessed() {
    New task;
    task.array(1, 3).memory(4 * kGigabyte);
    task.needs.guess = Guess{.runs = 50, .memory = true};
    task.needs.guess->memory_asked = Amount::of(12 * kGigabyte);
    return task;
  }
};

TEST_F(GuessTest, ItIsPackedByUse) {
  given_pilot();
  submit(guessed());
  starts("2.1-3");
  expect({"accept 2", "lease 2.1-3 to A0*"});
  expect_explained("2.1", "*");
}

TEST_F(GuessTest, AGuessThatWasTooLittleCostsNoRetry) {
  given_pilot();
  submit(guessed());
  starts("2.1-3");
  forget_what_was_asked();
  ends("2.1", Failure::OomTask);
  // Beside two of 4 GB there is no room for one of 12.
  expect({"acknowledge 2.1 to A0"});
  expect_state("2.1", TaskState::Waiting);
  ends("2.2-3");
  expect({"tell 2", "acknowledge 2.2*", "lease 2.1 again*", "tell 2", "acknowledge 2.3*"});
  starts("2.1");
  ends("2.1", Failure::OomTask);
  expect_ended("2.1", Failure::OomTask);
  forget_what_was_asked();
}

TEST_F(GuessTest, ThatIsKnownAfterARestart) {
  given_pilot();
  submit(guessed());
  starts("2.1-3");
  ends("2.1", Failure::OomTask);
  forget_what_was_asked();
  restarts();
  registers("A0", 1h, {held("2.2"), held("2.3")});
  expect({"welcome A0"});
  ends("2.2-3");
  expect({"tell 2", "acknowledge 2.2*", "lease 2.1 again*", "tell 2", "acknowledge 2.3*"});
  starts("2.1");
  ends("2.1", Failure::OomTask);
  expect_ended("2.1", Failure::OomTask);
  forget_what_was_asked();
}

TEST_F(GuessTest, WhatWasAskedForIsALimitAndWhatItIsToldOf) {
  given_pilot();
  const Actions actions =
      engine_->on(TasksSubmitted{RequestId{9}, "me", "", 0, {guessed()}, {}}, now_);
  for (const Action& action : actions) {
    const auto* sent = std::get_if<SendLeases>(&action);
    if (!sent) continue;
    for (const SendLeases::Lease& lease : sent->leases) {
      EXPECT_TRUE(lease.memory_is_limit);
      EXPECT_EQ(lease.memory, Amount::of(12 * kGigabyte));
      EXPECT_LT(lease.granted.get(kMemory), Amount::of(5 * kGigabyte));
    }
    EXPECT_EQ(sent->leases.size(), 3U);
  }
  forget_what_was_asked();
}

TEST_F(GuessTest, WhatWasAskedForIsFinal) {
  given_pilot();
  submit(New().memory(4 * kGigabyte));
  starts("2");
  ends("2", Failure::OomTask);
  expect_ended("2", Failure::OomTask);
  forget_what_was_asked();
}

TEST_F(GuessTest, APartOfAGpuThatWasTooLittleCostsNoRetry) {
  Shape shape = cpu_shape("gpu");
  shape.capacity.set("gpus/v100", Amount::of(1));
  given({site_of("cluster", {shape})});
  given_pilot(1h, shape.capacity);
  New packed = New().array(1, 2);
  packed.needs.amounts.set("gpus", Amount::of_fraction(0.5));
  packed.needs.device.edit().kind = "infer";
  packed.needs.guess = Guess{.runs = 50, .gpus = true, .gpus_asked = Amount::of(1)};
  submit(packed);
  starts("2.1-2");
  EXPECT_EQ(engine_->pilots().lease(task("2.2"))->granted.gpus(), Amount::of_fraction(0.5));
  forget_what_was_asked();
  ends("2.1", Failure::OomGpu);
  expect({"acknowledge 2.1 to A0"});
  expect_state("2.1", TaskState::Waiting);
  ends("2.2");
  ASSERT_NE(engine_->pilots().lease(task("2.1")), nullptr);
  EXPECT_EQ(engine_->pilots().lease(task("2.1"))->granted.gpus(), Amount::of(1));
  starts("2.1");
  ends("2.1", Failure::OomGpu);
  expect_ended("2.1", Failure::OomGpu);
  submit(packed);
  starts("3.1");
  ends("3.1", Failure::TimeTask);
  EXPECT_EQ(engine_->pilots().lease(task("3.2"))->granted.gpus(), Amount::of_fraction(0.5));
  expect_state("3.1", TaskState::Waiting);
  forget_what_was_asked();
}

}  // namespace
}  // namespace hpcbatch
