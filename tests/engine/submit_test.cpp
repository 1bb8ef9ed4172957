// What happens to a submission: accepted, refused, named by a key; and the way of one task to its
// result.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class SubmitTest : public EngineTest {
 protected:
  void submit_with_key(const std::string& client, const std::string& key, std::uint64_t content,
                       std::vector<NewArray> arrays) {
    happens(TasksSubmitted{RequestId{9}, client, key, content, std::move(arrays), {}});
  }
};

TEST_F(SubmitTest, OneTaskGoesItsWholeWay) {
  submit(New());
  expect({"accept 1", "open A: cpu of here"});
  expect_state("1", TaskState::Waiting);
  accepts("A");
  expect_nothing();
  registers("A0");
  expect({"welcome A0", "lease 1 to A0"});
  starts("1");
  expect_state("1", TaskState::Running);
  ends("1");
  expect({"tell 1", "acknowledge 1 to A0"});
  expect_ended("1", Failure::Ok);
  EXPECT_EQ(engine_->state_of(task("1")), std::nullopt) << "it has left memory";
  leaves("A0");
  expect({"end A0"});
  disconnects("A0");
  batch_ended("A", EndCause::Completed);
  after(1s);
  expect({"forget A"});
  EXPECT_TRUE(engine_->is_idle());
  EXPECT_EQ(engine_->next_wake(), std::nullopt);
}

TEST_F(SubmitTest, SeveralArraysAreAcceptedTogether) {
  given_pilot();
  submit_with_key("me", "", 0, {New().array(1, 2), New().array(5, 6)});
  expect({"accept 2 3", "lease 2.1-2 to A0", "lease 3.5-6 to A0"});
}

TEST_F(SubmitTest, ANumberedArrayTakesAsManyIdsAsItHasTasks) {
  given_pilot();
  New many = New().array(3, 5).on_hold();
  many.numbered = true;
  submit_with_key("me", "", 0, {many});
  expect({"accept 2"});
  submit_with_key("me", "", 0, {New().on_hold()});
  expect({"accept 5"});
}

TEST_F(SubmitTest, ANumberedTaskForWhichThereIsNoNumberIsRefused) {
  given_pilot();
  New many = New().array(1, 2'294'967'293).on_hold();
  many.numbered = true;
  submit_with_key("me", "", 0, {New().on_hold(), many});
  expect({"refuse: *there are no more numbers*"});
  EXPECT_EQ(saved_.submitted(), 1U);
}

TEST_F(SubmitTest, TheSameKeyGivesTheSameIds) {
  submit_with_key("me", "monday", 42, {New(), New()});
  expect({"accept 1 2", "open A: *"});
  submit_with_key("me", "monday", 42, {New(), New()});
  expect({"accept 1 2"});
  submit_with_key("me", "monday", 43, {New()});
  expect({"conflict: *'monday'*"});
  submit_with_key("you", "monday", 43, {New()});
  expect({"accept 3"});
  restarts();
  submit_with_key("me", "monday", 42, {New(), New()});
  expect({"accept 1 2"});
  submit_with_key("me", "monday", 44, {New()});
  expect({"conflict: *"});
}

TEST_F(SubmitTest, ARefusedSubmissionUsesUpNoKey) {
  submit_with_key("me", "monday", 1, {New(), New().cpus(99)});
  expect({"refuse: never_fits*"});
  EXPECT_EQ(saved_.submitted(), 0U) << "all of it or nothing";
  submit_with_key("me", "monday", 2, {New()});
  expect({"accept 1", "open A: *"});
}

TEST_F(SubmitTest, AnArrayWithoutIndicesIsRefused) {
  New empty;
  empty.indices = {};
  submit(empty);
  expect({"refuse: *no index*"});
  submit_with_key("me", "monday", 1, {});
  expect({"refuse: *"});
}

TEST_F(SubmitTest, WhatNeverFitsIsRefusedWithTheClosestShape) {
  Shape gpu = cpu_shape("gpu");
  gpu.capacity.set("gpus/a100", Amount::of(2));
  gpu.walltime = 10min;
  given({site_of("here", {cpu_shape(), gpu})});
  submit(New().gpus("gpus/a100", 4));
  expect({"refuse: never_fits: *the closest shape is gpu of here*4 a100 where it has 2 a100"});
  submit(New().gpus("gpus/v100", 1));
  expect({"refuse: never_fits: no shape has a GPU of kind 'v100'; there are a100"});
  submit(New().gpus("gpus", 3));
  expect({"refuse: *gpu of here*3 gpus of any kind where it has*2 a100*"});
  submit(New().cpus(5));
  expect({"refuse: *5 cpus where it has 4 cpus"});
  submit(New().memory(std::int64_t{16} << 30));
  expect({"refuse: *16G memory where it has 15.7G memory"});
  submit(New().time(2h));
  expect(
      {"refuse: *shape is cpu of here*2h of time where a task can have 1h (3600 s; the rest of "
       "1h2m is for the pilot's start and end)"});
  submit(New().tag("ssd"));
  expect({"refuse: *the tag ssd"});
  submit(New().on("there"));
  expect({"refuse: never_fits: there is no site 'there'; the configuration has here"});
  submit(New().not_on("there"));
  expect({"refuse: never_fits: there is no site 'there'; the configuration has here"});
  submit(New().not_on("here"));
  expect({"refuse: never_fits: no site is left that may run it: the configuration has here"});
  submit(New().on("here").not_on("here"));
  expect({"refuse: never_fits: it may run on the site here only, and not there; leave one out"});
  submit(New().gpus("gpus", 1).time(1h));
  expect({"refuse: *"});
  submit(New().gpus("gpus", 1).time(5min));
  expect({"accept 1", "open A: gpu of here"});
}

TEST_F(SubmitTest, WithoutAnySiteNothingFits) {
  given({});
  submit(New());
  expect({"refuse: never_fits: *there is no site*"});
}

TEST_F(SubmitTest, LimitsAreExactThoughClassesAreRounded) {
  given_pilot();
  const Actions actions = engine_->on(
      TasksSubmitted{RequestId{1}, "me", "", 0, {New().memory(1'000'000'001).time(1001s)}, {}},
      now_);
  for (const Action& action : actions) {
    const auto* send = std::get_if<SendLeases>(&action);
    if (!send) continue;
    const SendLeases::Lease& lease = send->leases.at(0);
    EXPECT_EQ(lease.granted.get(kMemory).whole(), 1'000'000'001);
    EXPECT_TRUE(lease.memory_is_limit);
    EXPECT_EQ(lease.time_limit, 1001s);
    return;
  }
  FAIL() << "no lease";
}

TEST_F(SubmitTest, AStartNeedsWhatIsRequestedAndTheLimitMayBeLonger) {
  given_pilot(20min);
  submit(New().time(40min));
  expect({"accept 2", "open B: cpu of here"});
  New may_be_short = New().time(40min);
  may_be_short.needs.time_request = 10min;
  const Actions actions =
      engine_->on(TasksSubmitted{RequestId{2}, "me", "", 0, {may_be_short}, {}}, now_);
  const auto* send = std::get_if<SendLeases>(&actions.back());
  ASSERT_TRUE(send);
  EXPECT_EQ(send->leases.at(0).time_limit, 40min);
}

TEST_F(SubmitTest, NoShapeNeedsToLastForTheLimitOfWhatRequestsLess) {
  New request = New().time(1000h);
  submit(request);
  expect({"refuse: *of time where a task can have*"});
  request.needs.time_request = 10min;
  submit(request);
  expect({"accept 1", "open A: *"});
}

TEST_F(SubmitTest, WithoutMemoryATaskCountsForItsCpusShare) {
  given_pilot();
  const Actions actions =
      engine_->on(TasksSubmitted{RequestId{1}, "me", "", 0, {New().cpus(2)}, {}}, now_);
  const auto* send = std::get_if<SendLeases>(&actions.back());
  ASSERT_TRUE(send);
  EXPECT_EQ(send->leases.at(0).granted.get(kMemory).whole(), std::int64_t{8} << 30);
  EXPECT_FALSE(send->leases.at(0).memory_is_limit);
  EXPECT_EQ(send->leases.at(0).time_limit, std::nullopt);
}

}  // namespace
}  // namespace hpcbatch
