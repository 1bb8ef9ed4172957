// A site that was taken out of the configuration while it had work.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class ChangedConfigurationTest : public EngineTest {};

class RemovedSiteTest : public EngineTest {
 protected:
  /// A task runs at A0 of a site that the next configuration no longer names.
  RemovedSiteTest() {
    given_pilot();
    submit(New());
    starts("2");
    forget_what_was_asked();
    restarts_with({site_of("there", {cpu_shape()})});
  }
};

TEST_F(RemovedSiteTest, ItsPilotsEndWhatTheyHaveAndGetNothingMore) {
  after(14min);
  expect_explained(
      "2", "unknown*after 15m of silence: its site here is no longer in the configuration*");
  registers("A0", 1h, {held("2")});
  expect({"welcome A0"});
  submit(New());
  expect({"accept 3", "open B: cpu of there"});
  after(10min);
  forget_what_was_asked();
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0", "end A0"});
}

TEST_F(RemovedSiteTest, ItsAllocationsAreGivenUpWhenNoPilotComesBack) {
  after(15min + 1s);
  expect({"open B: cpu of there"});  // and nothing is asked of a site that is not there
  EXPECT_EQ(engine_->sites().allocations().size(), 1U);
  ASSERT_EQ(saved_.failed_attempts().size(), 1U);
  EXPECT_FALSE(saved_.failed_attempts()[0].unexplained);
  EXPECT_EQ(saved_.failed_attempts()[0].outcome.message,
            "allocation " + allocation("A").name +
                ": its site here is no longer in the configuration, and no pilot of it was there "
                "for 15m");
  registers("A0", 1h, {held("2")});
  expect({"fence A0 (7)"});
}

TEST_F(RemovedSiteTest, ItsTasksCanBeCancelledAtOnce) {
  const EndAtPilot late = result("2");
  cancel("2");
  expect({"tell 2", "count 1"});
  expect_ended("2", Failure::Cancelled, "*its site here is no longer in the configuration*");
  registers("A0", 1h, {held("2")});
  expect({"welcome A0", "kill 2 at A0 silently", "end A0"});
  happens(late);
  expect({"acknowledge 2 to A0"});
}

TEST_F(RemovedSiteTest, OneThatMayBePublishingIsNotCalledCancelled) {
  restarts_with({site_of("here", {cpu_shape()})});
  registers("A0", 1h, {held("2")});
  stages("2");
  restarts_with({site_of("there", {cpu_shape()})});
  forget_what_was_asked();
  cancel("2");
  expect({"count 1"});
  registers("A0", 1h, {held("2", HeldAttempt::State::Publishing)});
  ends("2");
  forget_what_was_asked();
  expect_ended("2", Failure::Ok);
}

TEST_F(RemovedSiteTest, StoppingNowDoesNotWaitForIt) {
  happens(StopAsked{StopAsked::Mode::Now});
  expect({"tell 2", "idle"});
  after(15min + 1s);
  EXPECT_TRUE(engine_->is_idle());
}

TEST_F(ChangedConfigurationTest, WhatNoShapeCanRunAnyMoreIsExplained) {
  submit(New().cpus(4).time(50min));
  forget_what_was_asked();
  Snapshot snapshot = saved_.snapshot();
  saved_.count_start();
  snapshot.engine_start = 2;
  snapshot.allocations.clear();
  Shape brief = cpu_shape();
  brief.walltime = 30min;
  engine_ = std::make_unique<Engine>(std::vector{site_of("here", {brief})}, snapshot,
                                     saved_.live_arrays(), 1, now_);
  happens(TimePassed{});
  expect_explained("1",
                   "*no shape of the configuration can run it any more: it needs 4 cpus, 50m*");
}

}  // namespace
}  // namespace hpcbatch
