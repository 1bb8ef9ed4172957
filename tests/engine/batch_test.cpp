// Allocations and the batch system: asked for once, unclear answers settled by name, refusals,
// ends, lists that fail.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class BatchTest : public EngineTest {
 protected:
  /// Work for far more pilots than any limit allows.
  void much_work() {
    submit(New().array(1, 10'000).time(1h));
    forget_what_was_asked();
  }
};

// --- how many ----------------------------------------------------------------------------------

TEST_F(BatchTest, TheFirstOfAShapeGoesAloneThenAsManyAsTheLimitAllows) {
  submit(New().array(1, 10'000).time(1h));
  expect({"accept 1", "open A: *"});
  after(1min);
  expect_nothing();
  accepts("A");
  expect(
      {"open B: *", "open C: *", "open D: *", "open E: *", "open F: *", "open G: *", "open H: *"});
  after(1min);
  expect_nothing();
}

TEST_F(BatchTest, WorkThatArrivesWhileAPilotIsQueuedJoinsIt) {
  submit(New());
  accepts("A");
  expect({"accept 1", "open A: *"});
  submit(New().array(1, 100));
  expect({"accept 2"});
  submit(New().array(1, 300).time(1min));
  expect({"accept 3", "open B: *"});
}

TEST_F(BatchTest, ReachedLimitsAndHeldBatchJobsStopTheAsking) {
  much_work();
  batch("A", BatchState::LimitReached, "QOSMaxJobsPerUserLimit");
  after(1min);
  expect_nothing();
  batch("A", BatchState::Held, "JobHeldAdmin");
  after(1min);
  expect_nothing();
  expect_explained("1.1", "*allocation * is queued*(JobHeldAdmin)*");
  batch("A", BatchState::Queued, "Resources");
  after(15s);
  expect(
      {"open B: *", "open C: *", "open D: *", "open E: *", "open F: *", "open G: *", "open H: *"});
}

TEST_F(BatchTest, LongTasksOfUnknownLengthGetMorePilotsBeforeTheFirstEnds) {
  Shape big = cpu_shape();
  big.capacity.set(kCpus, Amount::of(32));
  big.walltime = 4h;
  given({site_of("here", {big})});
  given_pilot(4h, big.capacity);
  submit(New().array(1, 320));  // of two hours, which nobody said
  starts("2.1-32");
  expect({"accept 2", "lease 2.1-32 to A0"});
  after(10min);
  expect_nothing();
  after(20min);
  expect({"open B: *"});
  accepts("B");
  expect({"open C: *"});
  accepts("C");
  after(25min);
  expect({"open D: *"});
}

TEST_F(BatchTest, ARunThatAPilotsEndCutIsALowerBound) {
  given_pilot(30min);
  submit(New().array(1, 20));
  starts("2.1-4");
  after(30min);
  forget_what_was_asked();
  ends("2.1-4", Failure::PilotWalltime, 30min);
  const ResourceClass& its_class =
      engine_->tasks().queue().get(engine_->tasks().find(ArrayId{2})->place.in_class);
  EXPECT_EQ(its_class.mean_run, 30min);
  forget_what_was_asked();
}

TEST_F(BatchTest, TheLongestTimeThatIsAcceptedCanRun) {
  submit(New().time(1h));
  accepts("A");
  registers("A0", 1h + 20s);  // its walltime less the end, and it took a moment to come
  expect({"accept 1", "open A: *", "welcome A0", "lease 1 to A0"});
}

TEST_F(BatchTest, TasksOfOneRoundingForDifferentShapesDoNotBlockEachOther) {
  Shape lasting = cpu_shape("long");
  Shape big = cpu_shape("big");
  big.capacity.set(kMemory, Amount::of(std::int64_t{17} << 30));
  big.walltime = 61min;
  given({site_of("here", {lasting, big})});
  const auto megabytes = [](std::int64_t count) { return count << 20; };
  const New one = New().memory(megabytes(15'872)).time(1h);
  const New other = New().memory(megabytes(16'690)).time(59min);
  ASSERT_EQ(class_of(one.needs), class_of(other.needs));
  submit(one);
  submit(other);
  expect({"accept 1", "open A: long of here", "accept 2", "open B: big of here"});
}

// --- unclear answers ---------------------------------------------------------------------------

TEST_F(BatchTest, AnUnclearSubmitThatIsFoundByNameIsKept) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  expect({"accept 1", "open A: *"});
  expect_explained("1", "*allocation * is unclear*timed out*");
  batch("A", BatchState::Queued);
  after(10min);
  expect_nothing();
  EXPECT_EQ(saved_.allocations().at(allocation("A")).state, AllocationState::Queued);
  EXPECT_EQ(saved_.allocations().at(allocation("A")).number, "100A");
}

TEST_F(BatchTest, AnUnclearSubmitThatIsAbsentIsAskedForAgainUnderTheSameName) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  expect({"accept 1", "open A: *"});
  after(19s);
  expect_nothing();
  EXPECT_GE(polls(), 2U) << "it is looked for, but absence is believed only after a while";
  after(7s);
  expect({"open A: *"});
  accepts("A");
  after(1min);
  expect_nothing();
}

TEST_F(BatchTest, SubmissionsThatVanishAgainAndAgainAreAPause) {
  submit(New());
  expect({"accept 1", "open A: *"});
  for (int round = 0; round < 2; ++round) {
    refuses("A", Refusal::Unclear, "timed out");
    after(27s);
    expect({"open A: *"});
  }
  refuses("A", Refusal::Unclear, "timed out");
  after(27s);
  expect({"forget A"});
  expect_explained(
      "1", "*not asked for during the next *3 submissions in a row were not answered*timed out*");
  after(20s);
  expect_nothing();
  after(11s);
  expect({"open B: *"});
}

TEST_F(BatchTest, AnUnclearAnswerThatCameLateIsNotSettledSooner) {
  submit(New());
  after(10min);  // the submit command hung
  refuses("A", Refusal::Unclear, "killed at its deadline");
  expect({"accept 1", "open A: *"});
  after(19s);
  expect_nothing();
  after(7s);
  expect({"open A: *"});
}

TEST_F(BatchTest, AnUnclearSubmitIsNeverSettledByAListThatFailed) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  expect({"accept 1", "open A: *"});
  polls_succeed_ = false;
  after(1h);
  expect_nothing();
  expect_explained("1", "*site here has not answered for *no contact*");
}

TEST_F(BatchTest, APilotThatRegistersSettlesWhatIsUnclear) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  registers("A0");
  expect({"accept 1", "open A: *", "welcome A0", "lease 1 to A0"});
  after(1h);
  expect_nothing();
}

TEST_F(BatchTest, AnEngineThatDiedInTheMiddleOfASubmitLooksTheNameUp) {
  submit(New());
  restarts();
  expect({"accept 1", "open A: *"});
  after(79s);  // the command that the dead engine began may still be under way
  expect_nothing();
  after(7s);
  expect({"open A: *"});
  restarts();
  batch("A", BatchState::Queued);
  after(1h);
  expect_nothing();
}

TEST_F(BatchTest, AnUnclearSubmitThatIsAbsentRespectsThePauseOfItsShape) {
  much_work();
  accepts("A");
  forget_what_was_asked();
  refuses("B", Refusal::Limit, "MaxJobCount");
  expect({"forget B"});
  refuses("C", Refusal::Unclear, "timed out");
  after(27s);
  expect({"forget C"});
}

TEST_F(BatchTest, AnAnswerThatComesAfterTheEndIsNoSecondEnd) {
  submit(New());
  registers("A0");
  starts("1");
  disconnects("A0");
  batch_ended("A", EndCause::Completed);
  forget_what_was_asked();
  after(1s);
  expect({"read the outbox of A"});
  refuses("A", Refusal::Unclear, "timed out");
  expect_nothing();
  reads_outbox("A");
  expect({"forget A", "open B: *"});
}

TEST_F(BatchTest, ListsFromBeforeAPilotCameOrWentProveNothing) {
  submit(New());
  refuses("A", Refusal::Unclear, "timed out");
  after(15s);  // lists that lack it, and absence is not believed yet
  EXPECT_GE(polls(), 3U);
  registers("A0");
  starts("1");
  disconnects("A0");
  forget_what_was_asked();
  for (int list = 0; list < 3; ++list) happens(SitePolled{"here", {}, now_});
  expect_nothing();
}

TEST_F(BatchTest, ASlowSubmitIsNotTakenForAbsent) {
  submit(New());
  submit(New().cpus(4));
  after(5min);  // several lists do not show what is still being submitted
  accepts("A");
  batch_forgot("A");  // and the next one is a little old
  happens(SitePolled{"here", {}, now_ - 1s});
  happens(SitePolled{"here", {}, now_ + 1ms});
  expect({"accept 1", "open A: *", "accept 2"});
  EXPECT_EQ(saved_.allocations().at(allocation("A")).state, AllocationState::Queued);
}

// --- a site that does not go on ----------------------------------------------------------------

class TwoSitesTest : public BatchTest {
 protected:
  /// One task; A is asked for at the first of two sites.
  TwoSitesTest() {
    given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})});
    submit(New());
    expect({"accept 1", "open A: cpu of here"});
  }
};

TEST_F(TwoSitesTest, AnUnclearSubmitKeepsNothingFromTheOtherWhereItsSiteDoesNotAnswer) {
  polls_succeed_ = false;
  refuses("A", Refusal::Unclear, "timed out");
  after(15s);
  expect_nothing();
  after(5s);
  expect({"open B: cpu of there"});
}

TEST_F(TwoSitesTest, ASubmitThatHangsKeepsWorkFromTheOtherForAMinuteAtMost) {
  after(59s);
  expect_nothing();
  after(2s);
  expect({"open B: cpu of there"});
  after(10min);
  expect_nothing();
}

TEST_F(TwoSitesTest, APartitionThatIsDownKeepsNothingFromTheOther) {
  accepts("A");
  batch("A", BatchState::Outage, "PartitionDown");
  after(15s);
  expect({"open B: cpu of there"});
  accepts("B");
  after(10min);
  expect_nothing();
}

TEST_F(TwoSitesTest, AControllerThatDoesNotAnswerKeepsNothingFromTheOther) {
  accepts("A");
  polls_succeed_ = false;
  after(15s);
  expect_nothing();  // once is nothing
  after(5s);
  expect({"open B: cpu of there"});
}

// --- refusals ----------------------------------------------------------------------------------

TEST_F(BatchTest, ARefusalIsAskedAgainAfterABackOffThatDoubles) {
  submit(New());
  refuses("A", Refusal::Transient, "rate limit");
  expect({"accept 1", "open A: *", "forget A"});
  expect_explained("1", "*shape cpu of here is not asked for during the next 10s: *rate limit*");
  after(9s);
  expect_nothing();
  after(2s);
  expect({"open B: *"});
  refuses("B", Refusal::Transient, "rate limit");
  after(19s);
  expect({"forget B"});
  after(2s);
  expect({"open C: *"});
  for (int i = 0; i < 12; ++i) {
    refuses(std::string(1, static_cast<char>('C' + i)), Refusal::Transient);
    after(11min);
    expect({"forget *", "open *"});
  }
}

TEST_F(BatchTest, ALimitIsRespectedForAMinuteAPermanentRefusalForAnHour) {
  submit(New());
  refuses("A", Refusal::Limit, "MaxJobCount");
  forget_what_was_asked();
  after(59s);
  expect_nothing();
  after(2s);
  expect({"open B: *"});
  refuses("B", Refusal::Permanent, "invalid partition");
  expect({"forget B"});
  after(59min);
  expect_explained("1", "*invalid partition*");
  expect_nothing();
}

TEST_F(BatchTest, ManyRefusalsAtOnceAreOneFailure) {
  much_work();
  accepts("A");
  forget_what_was_asked();
  for (const char* letter : {"B", "C", "D", "E", "F", "G", "H"})
    refuses(letter, Refusal::Limit, "MaxJobCount");
  expect({"forget *", "forget *", "forget *", "forget *", "forget *", "forget *", "forget *"});
  after(61s);
  expect(
      {"open I: *", "open J: *", "open K: *", "open L: *", "open M: *", "open N: *", "open O: *"});
}

TEST_F(BatchTest, TheGoodEndOfAnEarlierOneMakesRoomForTheNext) {
  much_work();
  accepts("A");
  batch("A", BatchState::Running);
  registers("A0");
  after(1s);
  for (const char* letter : {"B", "C", "D", "E", "F", "G", "H", "I"})
    refuses(letter, Refusal::Limit, "MaxJobCount");
  batch_ended("A", EndCause::Timeout);
  forget_what_was_asked();
  after(16s);
  EXPECT_GT(engine_->sites().allocations().size(), 1U) << "not only after the pause of a minute";
  forget_what_was_asked();
}

TEST_F(BatchTest, AnotherSiteIsAskedWhileOneBacksOff) {
  given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})});
  submit(New());
  refuses("A", Refusal::Limit);
  expect({"accept 1", "open A: cpu of here", "forget A", "open B: cpu of there"});
}

// --- ends --------------------------------------------------------------------------------------

TEST_F(BatchTest, WhatCanNeverStartIsCancelledAndItsShapePaused) {
  submit(New());
  accepts("A");
  batch("A", BatchState::NeverStarts, "PartitionTimeLimit");
  forget_what_was_asked();
  after(15s);
  expect({"cancel A"});
  after(30min);
  expect({"forget A"});
  expect_explained("1", "*could never start: PartitionTimeLimit; change the shape*");
}

TEST_F(BatchTest, AShapeIsNotPausedForLongerByHarmlessFailuresBefore) {
  submit(New());
  for (const char* letter : {"A", "B", "C"}) {
    refuses(letter, Refusal::Transient, "rate limit");
    after(41s);
  }
  accepts("D");
  batch("D", BatchState::NeverStarts, "PartitionTimeLimit");
  after(15s);
  expect_explained("1", "*not asked for during the next 59m*");
  forget_what_was_asked();
}

TEST_F(BatchTest, ACancelThatWasLostIsToldAgain) {
  submit(New());
  accepts("A");
  batch("A", BatchState::NeverStarts, "InvalidAccount");
  cancels_work_ = false;
  forget_what_was_asked();
  after(20s);
  expect({"cancel A"});
  after(15s);
  expect_nothing();
  after(30s);
  expect({"cancel A"});
  cancel("1");
  restarts();
  after(20s);
  expect({"tell 1", "count 1", "cancel A"});
}

TEST_F(BatchTest, WhatVanishedFromSeveralListsIsGone) {
  submit(New());
  accepts("A");
  after(20s);
  batch_forgot("A");
  forget_what_was_asked();
  after(30s);
  expect_nothing();
  after(15s);
  expect({"forget A"});
  after(15s);
  expect({"open B: *"});
}

TEST_F(BatchTest, APilotThatIsThereOutweighsAListThatLacksIt) {
  given_pilot();
  submit(New());
  starts("2");
  batch_forgot("A");
  forget_what_was_asked();
  after(10min);
  expect_nothing();
  disconnects("A0");
  after(1min);
  expect({"read the outbox of A"});
}

TEST_F(BatchTest, CancelledBehindOurBackIsRespectedForAWhile) {
  given_pilot();
  submit(New());
  starts("2");
  forget_what_was_asked();
  disconnects("A0");
  batch_ended("A", EndCause::Cancelled);
  after(1s);
  expect({"read the outbox of A"});
  reads_outbox("A");
  expect({"forget A"});
  EXPECT_FALSE(saved_.failed_attempts().back().charged);
  expect_explained(
      "2", "ready*1 earlier attempts*not asked for during the next *cancelled, and not by us*");
  after(28s);
  expect_nothing();
  after(3s);
  expect({"open B: *"});
  accepts("B");
  batch_ended("B", EndCause::Cancelled);
  after(5min);
  expect({"forget B"});  // twice in a row: longer
}

TEST_F(BatchTest, APilotThatNeverRegistersIsNotAskedForAgainAtOnce) {
  submit(New());
  Duration pause = 10s;
  for (const char* letter : {"A", "B", "C", "D"}) {
    accepts(letter);
    batch_ended(letter, EndCause::Failed);
    forget_what_was_asked();
    after(4s);
    expect({"forget *"});
    after(pause - 5s);
    expect_nothing();
    expect_explained("1", "*its pilot never registered*");
    after(5s);
    expect({"open *"});
    pause *= 2;
  }
}

TEST_F(BatchTest, WhatCouldNotBeLaunchedPausesItsShapeAtOnce) {
  submit(New());
  accepts("A");
  batch_ended("A", EndCause::LaunchFailed);
  forget_what_was_asked();
  after(9min);
  expect({"forget A"});
  expect_explained("1", "*could not launch it*look at the workspace's directories*");
  after(2min);
  expect({"open B: *"});
}

TEST_F(BatchTest, AKilledPilotIsNotReplacedBeforeTheBatchSystemHasSaidWhy) {
  given_pilot();
  submit(New().array(1, 20));
  leaves("A0", "terminated");
  ends("2.1-4", Failure::PilotKilled);
  forget_what_was_asked();
  after(3s);
  expect_nothing();
  disconnects("A0");
  batch_ended("A", EndCause::Cancelled);
  after(29s);
  expect({"forget A"});
  expect_explained("2.1", "*cancelled, and not by us*");
  after(3s);
  expect({"open B: *"});
}

TEST_F(BatchTest, APilotThatFindsItsNodeUnfitIsEndedAndNotAskedForAgainAtOnce) {
  submit(New());
  Duration pause = 30s;
  for (const char* letter : {"A", "B", "C"}) {
    accepts(letter);
    forget_what_was_asked();
    batch(letter, BatchState::Running);
    happens(PilotRegistered{
        pilot(std::string(letter) + "0"), 7, "node9", {}, 1h, {}, "", {"no space in /tmp"}});
    expect({"welcome *", "end *"});
    disconnects(std::string(letter) + "0");
    batch_ended(letter, EndCause::Completed);
    after(pause - 1s);
    expect({"forget *"});
    expect_explained("1", "*node9: no space in /tmp*");
    after(2s);
    expect({"open *"});
    pause *= 2;
  }
}

TEST_F(BatchTest, PilotsThatCannotRunTheWaitingWorkAreNotAskedForWithoutEnd) {
  // The node is smaller than its shape promises: nothing that waits fits the pilot.
  submit(New().cpus(4));
  Resources small;
  small.set(kCpus, Amount::of(3));
  Duration pause = 30s;
  for (const char* letter : {"A", "B", "C"}) {
    accepts(letter);
    forget_what_was_asked();
    registers(std::string(letter) + "0", 1h, {}, small);
    leaves(std::string(letter) + "0");
    disconnects(std::string(letter) + "0");
    batch_ended(letter, EndCause::Completed);
    after(1s);
    forget_what_was_asked();
    after(pause - 2s);
    expect_nothing();
    expect_explained("1", "*found nothing that it could run*");
    after(5s);
    expect({"open *"});
    pause *= 2;
  }
}

TEST_F(BatchTest, WhatIsQueuedStaysWhileThePollFails) {
  submit(New());
  accepts("A");
  forget_what_was_asked();
  polls_succeed_ = false;
  after(2h);
  expect_nothing();
  EXPECT_LT(polls(), 40U) << "asked less and less often";
  EXPECT_GT(polls(), 20U) << "though at least every five minutes";
  polls_succeed_ = true;
  batch_ended("A", EndCause::NodeFailed);
  after(5min);
  expect({"forget A", "open B: *"});
}

TEST_F(BatchTest, OrphansOfOurPrefixAreCancelledOthersAreLeftAlone) {
  submit(New());
  accepts("A");
  forget_what_was_asked();
  happens(
      SitePolled{"here",
                 {{.name = "habcdezzzzzzzzz", .number = "7", .state = BatchState::Running},
                  {.name = "habcdeyyyyyyyyy", .number = "8", .state = BatchState::Ended},
                  {.name = "hotherzzzzzzzzz", .number = "9", .state = BatchState::Running},
                  {.name = allocation("A").name, .number = "100A", .state = BatchState::Queued}},
                 now_});
  expect({"cancel habcdezzzzzzzzz"});
}

TEST_F(BatchTest, OneNameTwiceIsAliveAsLongAsOneOfThemIs) {
  submit(New());
  accepts("A");
  forget_what_was_asked();
  const BatchJob dead{.name = allocation("A").name,
                      .number = "1",
                      .state = BatchState::Ended,
                      .cause = EndCause::Failed};
  const BatchJob alive{.name = allocation("A").name, .number = "2", .state = BatchState::Running};
  after(1s);
  happens(SitePolled{"here", {dead, alive}, now_});
  happens(SitePolled{"here", {alive, dead}, now_});
  expect_nothing();
  happens(SitePolled{"here", {dead, dead}, now_});
  expect({"forget A"});
}

TEST_F(BatchTest, TheOutboxIsReadBeforeAnythingIsCalledLost) {
  given_pilot();
  submit(New().array(1, 4));
  starts("2.1-3");
  const EndAtPilot done = result("2.1");
  const EndAtPilot failed = result("2.2", Failure::ToolFailed);
  EndAtPilot staged = result("2.3");
  staged.outputs_staged = true;
  forget_what_was_asked();
  disconnects("A0");
  batch_ended("A", EndCause::NodeFailed);
  after(1s);
  expect({"read the outbox of A"});
  EXPECT_NE(saved_.allocations().at(allocation("A")).state, AllocationState::Ended)
      << "an engine that starts now must read it too";
  reads_outbox("A", {done, failed, staged});
  expect({"tell 2", "forget A", "open B: *"});
  expect_ended("2.1", Failure::Ok);
  expect_ended("2.2", Failure::ToolFailed);
  ASSERT_EQ(saved_.failed_attempts().size(), 1U) << "2.4 had not started";
  EXPECT_EQ(saved_.failed_attempts()[0].outcome.failure, Failure::NodeLost)
      << "2.3 was not published";
  expect_state("2.4", TaskState::Waiting);
}

TEST_F(BatchTest, AnEngineThatDiedBeforeTheOutboxWasReadReadsIt) {
  given_pilot();
  submit(New());
  starts("2");
  const EndAtPilot done = result("2");
  disconnects("A0");
  batch_ended("A", EndCause::Completed);
  after(1s);
  forget_what_was_asked();
  restarts();
  after(1s);
  expect({"read the outbox of A"});
  reads_outbox("A", {done});
  expect({"tell 2", "forget A"});
  expect_ended("2", Failure::Ok);
}

TEST_F(BatchTest, APilotOfAnEndedAllocationIsFencedOff) {
  given_pilot();
  batch_ended("A", EndCause::NodeFailed);
  after(16s);
  expect({"fence A0 (7)", "forget A"});
  happens(PilotRegistered{pilot("A0"), 7, "node1", {}, 1h, {}, "", {}});
  expect({"fence A0 (7)"});
}

class RemovedSiteTest : public BatchTest {
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

TEST_F(RemovedSiteTest, ItsPilotsAreUsedOn) {
  after(14min);
  expect_explained(
      "2", "unknown*after 15m of silence: its site here is no longer in the configuration*");
  registers("A0", 1h, {held("2")});
  expect({"welcome A0"});
  after(10min);
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0"});
  disconnects("A0");
  after(14min);
  registers("A0");
  expect({"welcome A0"});
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
  expect({"welcome A0", "kill 2 at A0 silently"});
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

TEST_F(BatchTest, WhatNoShapeCanRunAnyMoreIsExplained) {
  submit(New().cpus(4).time(50min));
  forget_what_was_asked();
  Snapshot snapshot = saved_.snapshot();
  saved_.count_start();
  snapshot.engine_start = 2;
  snapshot.allocations.clear();
  Shape brief = cpu_shape();
  brief.walltime = 30min;
  engine_ = std::make_unique<Engine>(std::vector{site_of("here", {brief})}, snapshot, 1, now_);
  happens(TimePassed{});
  expect_explained("1",
                   "*no shape of the configuration can run it any more: it needs 4 cpus, 50m*");
}

}  // namespace
}  // namespace hpcbatch
