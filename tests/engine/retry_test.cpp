// Who pays for another try: the user's retries, a budget of the class, or nobody; and when it is
// over.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class RetryTest : public EngineTest {
 protected:
  /// The pilot of `allocation` runs task 1 and its batch job ends.
  void pilot_dies_with_task(const std::string& letter, EndCause cause, Duration left = 1h) {
    accepts(letter);
    registers(letter + "0", left);
    starts("1");
    disconnects(letter + "0");
    batch_ended(letter, cause);
    after(1s);
    reads_outbox(letter);
    after(2h);  // back-offs
  }
};

TEST_F(RetryTest, AFailureIsFinalUnlessTheUserAskedForRetries) {
  given_pilot();
  submit(New());
  forget_what_was_asked();
  ends("2", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::ToolFailed);
}

TEST_F(RetryTest, EachRetryOfTheUsersIsChargedOnce) {
  given_pilot();
  submit(New().may_fail(2));
  forget_what_was_asked();
  ends("2", Failure::ToolFailed);
  expect({"acknowledge 2 to A0", "lease 2 again (2) to A0"});
  restarts();
  registers("A0", 1h, {held("2")});
  expect({"welcome A0"});
  ends("2", Failure::OomTask);
  expect({"acknowledge 2 to A0", "lease 2 again (3) to A0"});
  expect_explained("2", "waits at pilot*2 earlier attempts*");
  ends("2", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2 to A0"});
  EXPECT_TRUE(engine_->tasks().arrays().empty());
}

TEST_F(RetryTest, WhatTheUserRetriesAfterARestartBeginsWithAllItsRetries) {
  given_pilot();
  submit(New().array(1, 2).may_fail(1));
  ends("2.1", Failure::ToolFailed);
  ends("2.1", Failure::ToolFailed);
  forget_what_was_asked();
  expect_ended("2.1", Failure::ToolFailed);
  restarts();
  registers("A0", 1h, {held("2.2")});
  retry({"2.1"});
  forget_what_was_asked();
  ends("2.1", Failure::ToolFailed);
  expect({"acknowledge 2.1 to A0", "lease 2.1 again (*) to A0"});
}

TEST_F(RetryTest, WhatIsRetriedMayNeedMoreThanBefore) {
  constexpr std::int64_t kGigabyte = 1'000'000'000;
  given_pilot();
  submit(New().memory(kGigabyte));
  ends("2", Failure::OomTask);
  forget_what_was_asked();
  NeedsChange change;
  change.amounts.set(kMemory, Amount::of(8 * kGigabyte));
  change.time = 30min;
  retry({"2"}, change);
  expect({"count 1", "lease 2 again (2) to A0"});
  EXPECT_EQ(engine_->pilots().lease(task("2"))->granted.get(kMemory), Amount::of(8 * kGigabyte));
  EXPECT_EQ(saved_.facts(ArrayId{2}).needs.time, 30min);
  restarts();
  registers("A0", 1h, {held("2")});
  EXPECT_EQ(engine_->tasks().find(ArrayId{2})->terms->needs.time, 30min);
  ends("2");
  forget_what_was_asked();
}

TEST_F(RetryTest, WhatStillWaitsOfItNeedsAsMuch) {
  given_pilot();
  submit(New().array(1, 7).time(1h - 5min));
  for (const char* one : {"2.1", "2.2"}) starts(one);
  ends("2.1", Failure::ToolFailed, 10min);
  forget_what_was_asked();
  NeedsChange change;
  change.amounts.set(kCpus, Amount::of(4));
  retry({"2.1"}, change);
  for (const char* one : {"2.2", "2.3", "2.4", "2.5"}) ends(one, Failure::Ok, 10min);
  forget_what_was_asked();
  EXPECT_EQ(engine_->pilots().leases().size(), 1U) << "one that takes the whole pilot";
  EXPECT_TRUE(saved_.has_lease(task("2.1")));
  restarts();
  registers("A0", 1h, {held("2.1")});
  ends("2.1", Failure::Ok, 10min);
  EXPECT_TRUE(saved_.has_lease(task("2.6")));
  EXPECT_FALSE(saved_.has_lease(task("2.7")));
  forget_what_was_asked();
}

TEST_F(RetryTest, MoreThanThereCanBeIsRefusedAndNothingChanges) {
  given_pilot();
  submit(New());
  ends("2", Failure::OomTask);
  forget_what_was_asked();
  NeedsChange change;
  change.amounts.set(kCpus, Amount::of(64));
  retry({"2"}, change);
  expect({"refuse: never_fits: *64 cpus where it has 4*"});
  expect_ended("2", Failure::OomTask);
}

TEST_F(RetryTest, WhatIsNotTheTasksFaultIsFree) {
  given_pilot();
  submit(New().may_fail(1));
  forget_what_was_asked();
  for (int i = 2; i <= 4; ++i) {
    ends("2", Failure::GpuError);
    expect({"acknowledge 2 to A0", "lease 2 again (" + std::to_string(i) + ") to A0"});
  }
  ends("2", Failure::ToolFailed);
  expect({"acknowledge 2 to A0", "lease 2 again (5) to A0"});
  ends("2", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2 to A0"});
}

TEST_F(RetryTest, EachClassHasABudgetOfItsOwn) {
  given_pilot();
  submit(New());
  for (int i = 0; i < 20; ++i) ends("2", Failure::GpuError);
  ends("2", Failure::ServiceLost);
  forget_what_was_asked();
  EXPECT_FALSE(saved_.outcome(task("2")));
  ends("2", Failure::GpuError);
  expect({"tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::GpuError);
}

TEST_F(RetryTest, InputThatIsGoneCannotBeReadAgain) {
  given_pilot();
  submit(New().reads_stream().may_fail(3));
  happens(InputGiven{task("2")});
  forget_what_was_asked();
  ends("2", Failure::ToolFailed);
  expect({"tell 2", "acknowledge 2 to A0"});
}

TEST_F(RetryTest, InputThatNobodyAskedForIsStillThereForTheNextAttempt) {
  given_pilot();
  submit(New().reads_stream().may_fail(1));
  ends("2", Failure::ToolFailed);
  EXPECT_FALSE(saved_.outcome(task("2")));
  happens(InputGiven{task("2")});
  ends("2", Failure::NodeLost);
  EXPECT_TRUE(saved_.outcome(task("2")));
  forget_what_was_asked();
}

TEST_F(RetryTest, AReturnedLeaseIsNoAttempt) {
  given_pilot();
  submit(New());
  expect({"accept 2", "lease 2 to A0"});
  gives_back("2");
  expect({"lease 2 to A0"});
  EXPECT_TRUE(saved_.failed_attempts().empty());
}

TEST_F(RetryTest, ThreeUnexplainedDeathsSetATaskAsideWithTheEvidence) {
  submit(New().may_fail(9));
  pilot_dies_with_task("A", EndCause::Failed);
  EXPECT_TRUE(saved_.failed_attempts().back().unexplained);
  restarts();
  pilot_dies_with_task("B", EndCause::OutOfMemory);
  forget_what_was_asked();
  EXPECT_FALSE(saved_.outcome(task("1")));
  pilot_dies_with_task("C", EndCause::None);
  forget_what_was_asked();
  expect_ended("1", Failure::SetAside,
               "set aside: it was running in 3 pilots*attempt 1*it failed*attempt 2*for its "
               "memory*attempt 3*does not "
               "say how*'hpcbatch retry 1'*");
}

TEST_F(RetryTest, DeathsWithAKnownCauseNeverSetAside) {
  submit(New());
  const std::string letters = "ABCDEFGHIJ";
  const EndCause known[] = {EndCause::Preempted, EndCause::NodeFailed, EndCause::Cancelled};
  for (std::size_t i = 0; i < 8; ++i) pilot_dies_with_task(letters.substr(i, 1), known[i % 3]);
  EXPECT_FALSE(saved_.outcome(task("1")));
  EXPECT_EQ(saved_.failed_attempts().size(), 8U);
  for (const SaveFailedAttempt& failed : saved_.failed_attempts()) {
    EXPECT_FALSE(failed.charged || failed.unexplained) << failed.outcome.message;
  }
  forget_what_was_asked();
}

TEST_F(RetryTest, AfterAPilotsEndCutItATaskStartsOnlyWhereMoreTimeIsLeft) {
  given_pilot(10min);
  submit(New());
  expect({"accept 2", "lease 2 to A0"});
  starts("2");
  after(10min);
  ends("2", Failure::PilotWalltime, 10min);
  expect({"acknowledge 2 to A0", "open B: cpu of here"});
  EXPECT_FALSE(saved_.failed_attempts().back().charged);
  accepts("B");
  registers("B0", 10min);
  after(31s);
  expect({"welcome B0", "open C: *"});
  submit(New());
  expect({"accept 3", "lease 3 to B0"});
  expect_explained("2",
                   "ready*a pilot's end cut it after 10m: it waits for one with more time left*has "
                   "too little time*");
  accepts("C");
  registers("C0", 11min);
  expect({"welcome C0", "lease 2 again (2) to C0"});
}

TEST_F(RetryTest, WhatAPilotsEndHasTaughtSurvivesARestart) {
  given_pilot(10min);
  submit(New());
  starts("2");
  after(10min);
  ends("2", Failure::PilotWalltime, 10min);
  forget_what_was_asked();
  restarts();
  accepts("B");
  registers("B0", 9min);
  expect({"welcome B0"});
}

TEST_F(RetryTest, TheLongestShapeWasTooShort) {
  given_pilot(1h - 5s);  // a pilot needs a moment to start
  submit(New());
  starts("2");
  forget_what_was_asked();
  after(1h - 5s);
  ends("2", Failure::PilotWalltime, 1h - 5s);
  expect({"tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::PilotWalltime);
}

TEST_F(RetryTest, ATaskThatSavesItselfGoesOnInAnotherPilotAsOftenAsItMayFail) {
  given_pilot(1h - 5s);
  submit(New().may_fail(1));
  starts("2");
  forget_what_was_asked();
  after(1h - 5s);
  ends("2", Failure::PilotWalltime, 1h - 5s);
  EXPECT_FALSE(saved_.outcome(task("2")));
  EXPECT_TRUE(saved_.failed_attempts().back().charged);
  forget_what_was_asked();
  accepts("B");
  registers("B0", 1h - 5s);
  expect({"welcome B0", "lease 2 again (2) to B0"});
  starts("2");
  forget_what_was_asked();
  after(1h - 5s);
  ends("2", Failure::PilotWalltime, 1h - 5s);
  expect({"tell 2", "acknowledge 2 to B0"});
  expect_ended("2", Failure::PilotWalltime);
}

TEST_F(RetryTest, WhatAPilotHadBeyondWhatAnyShapePromisesIsNotAskedFor) {
  given_pilot(1h + 90s);  // it ended late, or had started at once
  submit(New().may_fail(1));
  starts("2");
  after(1h + 90s);
  ends("2", Failure::PilotWalltime, 1h + 90s);
  forget_what_was_asked();
  accepts("B");
  registers("B0", 1h - 20s);
  expect({"welcome B0", "lease 2 again (2) to B0"});
}

TEST_F(RetryTest, SeveralCutTasksEachWaitForTheTimeTheyNeed) {
  given_pilot(30min);
  submit(New().array(1, 2));
  starts("2.1");
  after(20min);
  gives_back("2.2");
  starts("2.2");
  after(10min);
  ends("2.1", Failure::PilotWalltime, 30min);
  ends("2.2", Failure::PilotWalltime, 10min);
  forget_what_was_asked();
  accepts("B");
  registers("B0", 15min);
  expect({"welcome B0", "lease 2.2 again (2) to B0", "*"});
}

}  // namespace
}  // namespace hpcbatch
