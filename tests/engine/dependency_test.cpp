// Tasks that wait for others: for success, for any end, index by index; and what can never start.
#include "engine_test.hpp"

#include <chrono>

namespace hpcbatch {
namespace {

class DependencyTest : public EngineTest {
 protected:
  // One task runs at a time, so that the order is plain.
  DependencyTest() { given_pilot(); }
  static constexpr auto kAny = Dependency::Kind::AnyEnd;
  static constexpr auto kEach = Dependency::Kind::EachSuccess;
};

TEST_F(DependencyTest, StartsOnItsPredecessorsSuccess) {
  submit(New());
  submit(New().wait_for("2"));
  expect({"accept 2", "lease 2 to A0", "accept 3"});
  expect_explained("3", "waits for other tasks; for the success of 2");
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0", "lease 3 to A0"});
}

TEST_F(DependencyTest, NeverStartsAfterAFailureAndNamesTheFirstCause) {
  submit(New());
  submit(New().wait_for("2"));
  submit(New().wait_for("3"));
  submit(New().wait_for("4").array(1, 3));
  forget_what_was_asked();
  ends("2", Failure::ToolFailed);
  expect({"tell 2", "tell 3", "tell 4", "tell 5", "acknowledge 2 to A0"});
  for (const char* name : {"3", "4", "5.1", "5.3"}) {
    expect_ended(name, Failure::DependencyFailed, "can never start, because of 2 (tool_failed)");
  }
  EXPECT_TRUE(engine_->tasks().arrays().empty());
}

TEST_F(DependencyTest, OneTaskOfAnArrayIsNamedAsTheCause) {
  submit(New().array(1, 4));
  submit(New().wait_for("2"));
  forget_what_was_asked();
  ends("2.1");
  expect({"tell 2", "acknowledge 2.1 to A0"});
  ends("2.3", Failure::OomTask);
  expect({"tell 2", "tell 3", "acknowledge 2.3 to A0"});
  expect_ended("3", Failure::DependencyFailed, "*because of 2.3 (oom_task)");
}

TEST_F(DependencyTest, WaitsForTheWholeArray) {
  submit(New().array(1, 3));
  submit(New().wait_for("2"));
  forget_what_was_asked();
  ends("2.1-2");
  EXPECT_EQ(engine_->pilots().leases().size(), 1U);
  ends("2.3");
  expect({"*", "*", "*", "*", "tell 2", "acknowledge 2.3 to A0", "lease 3 to A0"});
}

TEST_F(DependencyTest, WaitsForOneTaskOfAnArray) {
  submit(New().array(1, 3));
  submit(New().wait_for("2.2"));
  forget_what_was_asked();
  ends("2.1", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2.1 to A0"});
  ends("2.2");
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 3 to A0"});
}

TEST_F(DependencyTest, AnyEndWillDoWhereItIsAskedFor) {
  submit(New().array(1, 2));
  submit(New().wait_for("2", kAny));
  submit(New().wait_for("2.2", kAny));
  forget_what_was_asked();
  ends("2.1");
  expect({"tell 2", "acknowledge 2.1 to A0"});
  ends("2.2", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 3 to A0", "lease 4 to A0"});
}

TEST_F(DependencyTest, PairsEqualIndices) {
  submit(New().array(1, 4));
  submit(New().array(2, 4).wait_for("2", kEach));
  forget_what_was_asked();
  ends("2.1");
  expect({"tell 2", "acknowledge 2.1 to A0"});
  ends("2.3");
  expect({"tell 2", "acknowledge 2.3 to A0", "lease 3.3 to A0"});
  ends("2.4", Failure::ToolFailed);
  expect({"tell 2", "tell 3", "acknowledge 2.4 to A0"});
  expect_ended("3.4", Failure::DependencyFailed, "*because of 2.4 (tool_failed)");
  ends("2.2");
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 3.2 to A0"});
}

TEST_F(DependencyTest, AnArrayThatFallsInTwoPartsTakesAllItsPairsAlong) {
  submit(New().array(1, 3));
  submit(New().wait_for("2.2"));
  submit(New().array(1, 3).wait_for("2", kEach).wait_for("3"));
  submit(New().array(1, 3).wait_for("4", kEach));
  ends("2.2", Failure::ToolFailed);
  forget_what_was_asked();
  for (const char* task : {"4.1", "4.2", "4.3", "5.1", "5.2", "5.3"}) {
    expect_ended(task, Failure::DependencyFailed, "*because of 2.2 (tool_failed)");
  }
}

TEST_F(DependencyTest, UnpairedIndicesAreRefused) {
  submit(New().array(1, 2));
  submit(New().array(1, 3).wait_for("2", kEach));
  submit(New().wait_for("2.7"));
  expect({"accept 2", "lease 2.1-2 to A0", "refuse: *2: it has no index 3*",
          "refuse: *2.7: that array has no such index"});
  happens(TasksSubmitted{RequestId{1}, "me", "", 0, {New().wait_for("99")}, {}});
  expect({"refuse: *after 99: there is no such task"});
}

TEST_F(DependencyTest, TasksOfOneSubmissionNameEachOther) {
  const auto after = [](std::uint32_t sibling, std::optional<std::uint32_t> index = {}) {
    New task;
    task.after.push_back({.index = index, .sibling = sibling});
    return task;
  };
  happens(TasksSubmitted{
      RequestId{1}, "me", "", 0, {New().array(1, 2), after(1, 2), after(2), after(1)}, {}});
  expect({"accept 2 3 4 5", "lease 2.1-2 to A0"});
  expect_explained("3", "waits for other tasks; for the success of 2.2");
  restarts();
  registers("A0", 1h, {held("2.1"), held("2.2")});
  ends("2.2");
  forget_what_was_asked();
  EXPECT_TRUE(engine_->pilots().lease(task("3")));
  expect_explained("4", "waits for other tasks; for the success of 3");
  expect_explained("5", "waits for other tasks; for the success of 2");
  ends("2.1");
  ends("3");
  forget_what_was_asked();
  EXPECT_TRUE(engine_->pilots().lease(task("4")));
  EXPECT_TRUE(engine_->pilots().lease(task("5")));
}

TEST_F(DependencyTest, ATaskOfOneSubmissionNamesOnlyThoseBeforeIt) {
  for (const std::uint32_t sibling : {1U, 2U, 7U}) {
    New task;
    task.after.push_back({.sibling = sibling});
    happens(TasksSubmitted{RequestId{1}, "me", "", 0, {task, New()}, {}});
    expect(
        {"refuse: *task 1 of the submission after its task *: only those that stand before it*"});
  }
}

TEST_F(DependencyTest, WhatEndedLongAgoCountsToo) {
  submit(New());
  submit(New());
  ends("2");
  ends("3", Failure::ToolFailed);
  forget_what_was_asked();
  submit(New().wait_for("2"));
  expect({"accept 4", "lease 4 to A0"});
  submit(New().wait_for("3"));
  expect({"tell 5", "accept 5"});
  expect_ended("5", Failure::DependencyFailed, "*because of 3, *");
  submit(New().wait_for("3", kAny));
  expect({"accept 6", "lease 6 to A0"});
}

TEST_F(DependencyTest, EveryOneOfSeveralMustBeMet) {
  submit(New().array(1, 2));
  submit(New());
  ends("2.1");
  forget_what_was_asked();
  submit(New().wait_for("2.1").wait_for("3"));
  expect({"accept 4"});
  ends("3");
  expect({"tell 3", "acknowledge 3 to A0", "lease 4 to A0"});
}

TEST_F(DependencyTest, SeveralThatAreAllMetLetItStartAtOnce) {
  submit(New().array(1, 3));
  ends("2.1-2");
  forget_what_was_asked();
  submit(New().wait_for("2.1").wait_for("2.2").wait_for("1"));
  expect({"accept 3", "lease 3 to A0"});
}

TEST_F(DependencyTest, HeldTasksKeepWaitingForBoth) {
  submit(New());
  submit(New().wait_for("2").on_hold());
  submit(New().wait_for("2").on_hold());
  forget_what_was_asked();
  hold("3", false);
  expect({"count 1"});
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0", "lease 3 to A0"});
  hold("4", false);
  expect({"count 1", "lease 4 to A0"});
}

TEST_F(DependencyTest, ACancelledPredecessorIsACause) {
  submit(New());
  submit(New().array(1, 2).on_hold());
  submit(New().wait_for("3"));
  forget_what_was_asked();
  cancel("3.2");
  expect({"tell 3", "tell 4", "count 1"});
  expect_ended("4", Failure::DependencyFailed, "*because of 3.2 (cancelled)");
}

TEST_F(DependencyTest, AChainOfAHundredThousandFallsInOneGo) {
  walks_invariants = false;  // what it costs is the matter here
  submit(New().on_hold());
  for (std::uint64_t i = 3; i <= 100'002; ++i) {
    NewArray link = New().wait_for(std::to_string(i - 1));
    engine_->on(TasksSubmitted{RequestId{1}, "me", "", 0, {link}, {}}, now_);
  }
  const Actions fallen = engine_->on(CancelAsked{RequestId{1}, {{ArrayId{2}, std::nullopt}}}, now_);
  EXPECT_TRUE(engine_->tasks().arrays().empty());
  std::uint64_t ended = 0;
  for (const Action& action : fallen) {
    const auto* results = std::get_if<SaveResults>(&action);
    if (!results || results->array == ArrayId{2}) continue;
    ++ended;
    ASSERT_EQ(results->outcome.message, "can never start, because of 2 (cancelled)");
  }
  EXPECT_EQ(ended, 100'000U);
  forget_what_was_asked();
}

TEST_F(DependencyTest, RetryOfTheCauseRevivesWhatFellWithIt) {
  submit(New());
  submit(New().wait_for("2"));
  submit(New().wait_for("3"));
  ends("2", Failure::ToolFailed);
  forget_what_was_asked();
  retry({"2", "3", "4"});
  expect({"count 3", "lease 2 again (2) to A0"});
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0", "lease 3 to A0"});
  ends("3");
  expect({"tell 3", "acknowledge 3 to A0", "lease 4 to A0"});
  ends("4");
  expect({"tell 4", "acknowledge 4 to A0"});
  expect_ended("4", Failure::Ok);
}

TEST_F(DependencyTest, RetryRunsOnlyWhatIsNamed) {
  submit(New().array(1, 3));
  submit(New().array(1, 3).wait_for("2", kEach));
  ends("2.1");
  ends("2.2-3", Failure::ToolFailed);
  ends("3.1");
  forget_what_was_asked();
  retry({"2.2", "3.2"});
  expect({"count 2", "lease 2.2 again (2) to A0"});
  ends("2.2");
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 3.2 to A0"});
  ends("3.2");
  expect({"tell 3", "acknowledge 3.2 to A0"});
  expect_ended("3.3", Failure::DependencyFailed);
}

TEST_F(DependencyTest, RetryOfWhatStillCannotStartFallsAgain) {
  submit(New());
  submit(New().wait_for("2"));
  ends("2", Failure::ToolFailed);
  forget_what_was_asked();
  retry({"3"});
  expect({"tell 3", "count 1"});
  expect_ended("3", Failure::DependencyFailed, "*because of 2, *");
}

TEST_F(DependencyTest, WhatWaitsSurvivesARestart) {
  submit(New().array(1, 3));
  submit(New().array(1, 3).wait_for("2", kEach));
  submit(New().wait_for("2"));
  submit(New().wait_for("1").wait_for("2.1"));
  ends("2.1");
  forget_what_was_asked();
  restarts();
  registers("A0", 1h, {held("2.2"), held("2.3"), held("3.1"), held("5")});
  expect({"welcome A0"});
  ends("2.2");
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 3.2 to A0"});
  ends("2.3", Failure::ToolFailed);
  expect({"tell 2", "tell 3", "tell 4", "acknowledge 2.3 to A0"});
  expect_ended("3.3", Failure::DependencyFailed);
  expect_ended("4", Failure::DependencyFailed);
  restarts();
  registers("A0", 1h, {held("3.1"), held("3.2"), held("5")});
  ends("3.1-2");
  ends("5");
  forget_what_was_asked();
  EXPECT_TRUE(engine_->tasks().arrays().empty());
}

}  // namespace
}  // namespace hpcbatch
