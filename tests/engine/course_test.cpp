// When tasks may begin, by when they must have ended, starts and failures they wait for, names they
// share, and what never begins a second time.
#include "engine_test.hpp"

#include <chrono>

namespace hpcbatch {
namespace {

class CourseTest : public EngineTest {
 protected:
  CourseTest() { given_pilot(); }
  /// What was asked for is looked at by leases and ends here.
  void TearDown() override {
    forget_what_was_asked();
    EngineTest::TearDown();
  }
  static constexpr auto kStart = Dependency::Kind::Start;
  static constexpr auto kNotSuccess = Dependency::Kind::NotSuccess;
  New begins_in(Duration time) const {
    New task;
    task.course.edit().begin = now_ + time;
    return task;
  }
  New ends_within(Duration time) const {
    New task;
    task.course.edit().deadline = now_ + time;
    return task;
  }
  static New once() {
    New task;
    task.course.edit().no_requeue = true;
    return task;
  }
  static New named(const std::string& name) {
    New task;
    task.course.edit().singleton = name;
    return task;
  }
  static New one_of(const New& waits) {
    New task = waits;
    task.course.edit().any_of_after = true;
    return task;
  }
  void update(const std::string& name, const TermsChange& change) {
    happens(UpdateAsked{RequestId{8}, {task(name).array}, change, {}});
  }
  bool is_leased(const std::string& name) const {
    return engine_->pilots().lease(task(name)) != nullptr;
  }
};

TEST_F(CourseTest, BeginsWhenItsTimeHasComeAndAsksForNothingBefore) {
  submit(begins_in(10min));
  expect({"accept 2"});
  expect_explained("2", "begins in 10m*");
  after(9min);
  expect_nothing();
  restarts();
  registers("A0");
  forget_what_was_asked();
  after(59s);
  EXPECT_FALSE(is_leased("2"));
  after(2s);
  EXPECT_TRUE(is_leased("2"));
}

TEST_F(CourseTest, AReleasedTaskStillWaitsForItsTime) {
  New task = begins_in(10min);
  submit(task.on_hold());
  hold("2", false);
  forget_what_was_asked();
  EXPECT_FALSE(is_leased("2"));
  after(10min);
  EXPECT_TRUE(is_leased("2"));
}

TEST_F(CourseTest, StartsWhenAllOfAnArrayHaveStarted) {
  submit(New().array(1, 2));
  submit(New().wait_for("2", kStart));
  starts("2.1");
  EXPECT_FALSE(is_leased("3"));
  expect_explained("3", "waits for other tasks; for the start of 2");
  starts("2.2");
  EXPECT_TRUE(is_leased("3"));
}

TEST_F(CourseTest, WhatHasStartedBeforeCounts) {
  submit(New());
  starts("2");
  after(4min);
  New task = New().wait_for("2", kStart);
  task.after.back().delay = 5min;
  submit(task);
  EXPECT_FALSE(is_leased("3"));
  after(59s);
  EXPECT_FALSE(is_leased("3"));
  after(2s);
  EXPECT_TRUE(is_leased("3"));
}

TEST_F(CourseTest, ADelayFromAStartOutlivesARestart) {
  submit(New());
  New task = New().wait_for("2", kStart);
  task.after.back().delay = 10min;
  submit(task);
  starts("2");
  after(8min);
  restarts();
  registers("A0", 50min, {held("2")});
  forget_what_was_asked();
  after(1min);
  EXPECT_FALSE(is_leased("3"));
  after(61s);
  EXPECT_TRUE(is_leased("3"));
}

TEST_F(CourseTest, ACancelledTaskCountsAsStarted) {
  submit(New().on_hold());
  submit(New().wait_for("2", kStart));
  cancel("2");
  EXPECT_TRUE(is_leased("3"));
}

TEST_F(CourseTest, StartsWhenSomethingHasFailed) {
  submit(New().array(1, 2));
  submit(New().wait_for("2", kNotSuccess));
  ends("2.1", Failure::ToolFailed);
  EXPECT_FALSE(is_leased("3"));
  ends("2.2");
  EXPECT_TRUE(is_leased("3"));
}

TEST_F(CourseTest, NeverStartsWhereNothingFailed) {
  submit(New());
  submit(New().wait_for("2", kNotSuccess));
  submit(New().wait_for("3"));
  ends("2");
  expect_ended("3", Failure::DependencyFailed,
               "can never start, because of 2, which was to fail and succeeded");
  expect_ended("4", Failure::DependencyFailed, "*because of 2, which was to fail and succeeded");
}

TEST_F(CourseTest, OneOfSeveralIsEnough) {
  submit(New());
  submit(New().array(1, 2));
  submit(one_of(New().wait_for("2").wait_for("3.2")));
  ends("2", Failure::ToolFailed);
  EXPECT_FALSE(is_leased("4"));
  ends("3.2");
  EXPECT_TRUE(is_leased("4"));
}

TEST_F(CourseTest, WhatItWaitsForAnewIsAllOfIt) {
  submit(New().on_hold());
  submit(New());
  submit(one_of(New().wait_for("2").wait_for("3")));
  TermsChange both;
  both.after = New().wait_for("2").wait_for("3").after;
  update("4", both);
  ends("3");
  EXPECT_FALSE(is_leased("4"));
  hold("2", false);
  ends("2");
  EXPECT_TRUE(is_leased("4"));
}

TEST_F(CourseTest, WhereNoneOfSeveralCanBeMetItNeverStarts) {
  submit(New());
  submit(New());
  submit(one_of(New().wait_for("2").wait_for("3")));
  ends("2", Failure::ToolFailed);
  ends("3", Failure::OomTask);
  expect_ended("4", Failure::DependencyFailed, "*because of 3 (oom_task)");
  // All that is named has ended before.
  happens(TasksSubmitted{RequestId{7},
                         "me",
                         "",
                         0,
                         {one_of(New().wait_for("2").wait_for("1"))},
                         {{ArrayId{2}, {}, IndexRange{0, 0}}, {ArrayId{1}, IndexRange{0, 0}, {}}}});
  EXPECT_TRUE(is_leased("5"));
}

TEST_F(CourseTest, TasksOfOneNameRunOneAfterTheOther) {
  submit(named("fit"));
  submit(named("fit").array(1, 3));
  submit(named("other"));
  submit(named("fit"));
  EXPECT_TRUE(is_leased("2"));
  EXPECT_TRUE(is_leased("4"));
  EXPECT_FALSE(is_leased("5"));
  ends("2", Failure::ToolFailed);
  EXPECT_TRUE(is_leased("3.1"));
  EXPECT_FALSE(is_leased("3.2"));
  restarts();
  registers("A0", 1h, {held("3.1"), held("4")});
  for (const char* one : {"3.1", "3.2", "3.3"}) {
    EXPECT_FALSE(is_leased("5"));
    ends(one);
  }
  EXPECT_TRUE(is_leased("5"));
}

TEST_F(CourseTest, EndsWhatCannotEndBeforeItsDeadline) {
  submit(New().array(1, 4));  // all of the pilot
  New task = ends_within(30min);
  submit(task.time(20min));
  after(9min);
  expect_state("3", TaskState::Waiting);
  after(2min);
  expect_ended("3", Failure::DeadlineMissed, "could not end before its deadline: it may take 20m*");
}

TEST_F(CourseTest, EndsWhatRunsAtItsDeadline) {
  submit(ends_within(30min));
  starts("2");
  forget_what_was_asked();
  after(29min);
  forget_what_was_asked();
  after(2min);
  expect({"*kill 2 at A0*"});
  // As an older pilot says it.
  ends("2", Failure::Cancelled);
  expect_ended("2", Failure::DeadlineMissed, "its deadline has come");
}

TEST_F(CourseTest, ALaterDeadlineOrLessTimeTakesThePlaceOfWhatWasSaidBefore) {
  for (int i = 0; i < 2; ++i) {
    New task = ends_within(30min);
    submit(task.time(20min).on_hold());
  }
  TermsChange later, shorter;
  later.deadline = now_ + 90min;
  shorter.needs.time = 5min;
  update("2", later);
  update("3", shorter);
  after(11min);
  expect_state("2", TaskState::Held);
  expect_state("3", TaskState::Held);
  after(15min);
  expect_state("2", TaskState::Held);
  expect_ended("3", Failure::DeadlineMissed, "could not end before its deadline: it may take 5m*");
  forget_what_was_asked();
}

TEST_F(CourseTest, ADeadlineThatComesWhileNobodyHearsItHoldsAfterwards) {
  submit(ends_within(30min));
  starts("2");
  after(29min);
  restarts();
  after(2min);
  forget_what_was_asked();
  registers("A0", 50min, {held("2")});
  expect({"welcome A0", "kill 2 at A0"});
}

TEST_F(CourseTest, ADeadlineHoldsForWhatIsHeldAndBlocked) {
  New held = ends_within(5min);
  submit(held.on_hold());
  submit(ends_within(5min).wait_for("2"));
  after(6min);
  expect_ended("2", Failure::DeadlineMissed, "did not start before its deadline");
  EXPECT_TRUE(engine_->tasks().arrays().empty());
}

TEST_F(CourseTest, WhatRunsOnceIsNotRunAgainWhenItsPilotDies) {
  submit(once());
  submit(New());
  starts("2");
  starts("3");
  batch_ended("A", EndCause::NodeFailed);
  disconnects("A0");
  after(1min);
  reads_outbox("A");
  expect_ended("2", Failure::NodeLost);
  expect_state("3", TaskState::Waiting);
}

TEST_F(CourseTest, OnceItRunsItIsToldOnlyWhatMattersLater) {
  submit(New());
  starts("2");
  forget_what_was_asked();
  TermsChange change;
  change.name = "other";
  change.priority = 5;
  change.requeue = false;
  update("2", change);
  expect({"count 1"});
  change.needs.time = 5min;
  update("2", change);
  expect({"refuse: nothing of 2 waits: what a pilot has keeps what it was given*"});
  batch_ended("A", EndCause::NodeFailed);
  disconnects("A0");
  after(1min);
  reads_outbox("A");
  expect_ended("2", Failure::NodeLost);
}

TEST_F(CourseTest, WhatMayHaveBegunIsNotRunAgainEither) {
  submit(once());
  batch_ended("A", EndCause::NodeFailed);
  disconnects("A0");
  after(1min);
  reads_outbox("A");
  expect_ended("2", Failure::NodeLost);
}

TEST_F(CourseTest, WhatAnEngineBeforeHadLeasedMayHaveBegun) {
  submit(once());
  submit(New());
  restarts();
  registers("A0");
  expect_ended("2", Failure::NodeLost, "the engine was started anew*");
  expect_state("3", TaskState::Waiting);
}

TEST_F(CourseTest, WhatNeverCameToTheProcessThatWasGivenItHasNotBegun) {
  submit(once());
  const std::uint64_t leased_by = attempt("2").engine_start();
  restarts();
  registers("A0", 1h, {}, {}, leased_by);
  EXPECT_TRUE(is_leased("2"));
  EXPECT_GT(attempt("2").engine_start(), leased_by);
  ends("2");
  expect_ended("2", Failure::Ok);
}

TEST_F(CourseTest, WhatWasLeasedBeforeAnEngineConfirmedTheProcessMayHaveBegun) {
  submit(once());
  const std::uint64_t leased_by = attempt("2").engine_start();
  restarts();
  registers("A0", 1h, {}, {}, leased_by + 1);
  expect_ended("2", Failure::NodeLost, "the engine was started anew*");
}

TEST_F(CourseTest, WhatAPilotGivesBackHasNotBegun) {
  submit(once());
  gives_back("2");
  EXPECT_TRUE(is_leased("2"));
  ends("2");
  expect_ended("2", Failure::Ok);
}

TEST_F(CourseTest, ItsUsersRetriesAreWhatRunsItOnceMore) {
  New task = once();
  submit(task.may_fail(1));
  ends("2", Failure::ToolFailed);
  EXPECT_TRUE(is_leased("2"));
  ends("2", Failure::ToolFailed);
  expect_ended("2", Failure::ToolFailed);
}

}  // namespace
}  // namespace hpcbatch
