// Pilots that are to be there whatever there is to do: asked for ahead of the end of those before
// them, and told to stay.
#include "engine/sites/keeps.hpp"
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class KeepTest : public EngineTest {
 protected:
  void keep(std::uint32_t allocations, Duration time, const std::string& shape = "cpu") {
    happens(KeepAsked{RequestId{7}, "", shape, allocations, now_ + time});
  }
  /// Half start within `half`, all within twice that.
  void foreseen(Duration half) {
    std::vector<Duration> waits;
    for (int i = 0; i <= 20; ++i) waits.push_back(half * i / 10);
    happens(QueueForeseen{.site = "here", .looked = now_, .shapes = {{"cpu", {waits}}}});
  }
  const Keep& kept() const { return *engine_->sites().sites().front().shapes.front().keep; }
};

TEST_F(KeepTest, APilotIsThereWithoutWork) {
  keep(1, 8h);
  expect({"count 1", "open A: cpu of here"});
  accepts("A");
  after(5min);
  expect_nothing();
  registers("A0", 1h);
  expect({"welcome A0", "A0 stays 7h5*"});
  after(50min);
  expect_nothing();
  EXPECT_EQ(kept().beyond, Duration{});
  EXPECT_NEAR(std::chrono::duration<double>(kept().missing).count(), 300, 2);
}

TEST_F(KeepTest, WhereNobodyKnowsTheNextIsAskedForWhenOneIsGone) {
  keep(1, 8h);
  accepts("A");
  registers("A0", 1h);
  forget_what_was_asked();
  after(59min);
  expect_nothing();
  leaves("A0", "walltime");
  disconnects("A0");
  batch_ended("A", EndCause::Completed);
  after(5s);
  reads_outbox("A");
  after(5s);
  expect({"end A0", "forget A", "open B: cpu of here"});
}

TEST_F(KeepTest, ItsSuccessorStartsAboutWhenOneEnds) {
  keep(1, 8h);
  accepts("A");
  registers("A0", 1h);
  forget_what_was_asked();
  for (int minute = 0; minute < 39; ++minute) {
    foreseen(10min);
    after(1min);
  }
  expect_nothing();
  for (int minute = 0; minute < 4; ++minute) {
    foreseen(10min);
    after(1min);
  }
  expect({"open B: cpu of here"});
  accepts("B");
  for (int minute = 0; minute < 10; ++minute) {
    foreseen(10min);
    after(1min);
  }
  expect_nothing();
  registers("B0", 1h);
  expect({"welcome B0", "A0 stays 0*", "B0 stays*"});
}

TEST_F(KeepTest, AfterItsTimeNothingIsAskedForAndNobodyStays) {
  keep(1, 30min);
  accepts("A");
  registers("A0", 1h);
  forget_what_was_asked();
  foreseen(10h);
  after(29min);
  expect_nothing();
  after(2min);
  expect({"A0 stays 0*"});
  leaves("A0");
  disconnects("A0");
  batch_ended("A", EndCause::Completed);
  after(1h);
  reads_outbox("A");
  after(1h);
  forget_what_was_asked();
}

TEST_F(KeepTest, WhatStillWaitsWhenNothingIsLeftToDoIsTakenBack) {
  submit(New().array(1, 8));
  accepts("A");
  forget_what_was_asked();
  cancel("1");
  forget_what_was_asked();
  after(4min);
  expect_nothing();
  const ArrayId again = submit(New().on_hold());
  forget_what_was_asked();
  after(1h);
  expect_nothing();
  cancel(std::to_string(again.value));
  forget_what_was_asked();
  after(4min);
  expect_nothing();
  after(2min);
  expect({"cancel A", "forget A"});
}

TEST_F(KeepTest, WhatIsKeptIsNotTakenBack) {
  keep(1, 8h);
  accepts("A");
  forget_what_was_asked();
  after(2h);
  expect_nothing();
}

TEST_F(KeepTest, NeverMoreThanTheLimits) {
  Shape shape = cpu_shape();
  shape.max_running = 1;
  given({site_of("here", {shape})});
  keep(2, 8h);
  expect({"refuse: 2 allocations of here/cpu cannot be kept: max_running of the shape is 1"});
  keep(1, 8h);
  accepts("A");
  registers("A0", 1h);
  forget_what_was_asked();
  after(59min);
  foreseen(10h);
  after(30s);
  expect_nothing();
}

TEST_F(KeepTest, WhatIsWrongIsSaid) {
  keep(1, 8h, "gpu");
  expect({"refuse: there is no shape gpu; the configuration has here/cpu"});
  keep(1, Duration{});
  expect({"refuse: the time until which pilots are to be kept is over already"});
  keep(0, 8h);
  expect({"refuse: no pilots of here/cpu are kept"});
  given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})});
  keep(1, 8h);
  expect({"refuse: the shape cpu is there on 2 sites; name one of them with --site"});
}

TEST_F(KeepTest, ARestartGoesOn) {
  keep(2, 8h);
  accepts("A");
  accepts("B");
  registers("A0", 1h);
  forget_what_was_asked();
  restarts();
  EXPECT_EQ(kept().allocations, 2U);
  registers("A0", 50min);
  expect({"welcome A0", "A0 stays*"});
  keep(0, 1h);
  expect({"count 0", "cancel B", "A0 stays 0*"});
}

TEST_F(KeepTest, WorkRunsInThemLikeInOthers) {
  keep(1, 8h);
  accepts("A");
  registers("A0", 1h);
  forget_what_was_asked();
  submit(New());
  expect({"accept 1", "lease 1 to A0*"});
  ends("1");
  forget_what_was_asked();
  happens(StopAsked{StopAsked::Mode::Now});
  EXPECT_FALSE(keeps_any(engine_->sites()));
  forget_what_was_asked();
}

}  // namespace
}  // namespace hpcbatch
