// How allocations end: in order, without a reason, behind our back, or not at all.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class AllocationEndTest : public EngineTest {};

TEST_F(AllocationEndTest, WhatCanNeverStartIsCancelledAndItsShapePaused) {
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

TEST_F(AllocationEndTest, AShapeIsNotPausedForLongerByHarmlessFailuresBefore) {
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

TEST_F(AllocationEndTest, ACancelThatWasLostIsToldAgain) {
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

TEST_F(AllocationEndTest, WhatVanishedFromSeveralListsIsGone) {
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

TEST_F(AllocationEndTest, WhereNoHistoryIsKeptOrderlyEndsAreKnownByThePilots) {
  for (const char* letter : {"A", "B", "C", "D"}) {
    submit(New());
    accepts(letter);
    registers(std::string(letter) + "0");
    after(1s);
    ends(std::to_string(*letter - 'A' + 1));
    leaves(std::string(letter) + "0");
    batch_forgot(letter);
    disconnects(std::string(letter) + "0");
    after(1min);
  }
  forget_what_was_asked();
  submit(New());
  expect({"accept 5", "open E: *"});
}

TEST_F(AllocationEndTest, WhereNoHistoryIsKeptADeletedOneIsRespected) {
  submit(New());
  accepts("A");
  registers("A0");
  starts("1");
  leaves("A0", "terminated");
  batch_forgot("A");
  disconnects("A0");
  forget_what_was_asked();
  after(1min);
  expect({"read the outbox of A"});
  reads_outbox("A");
  EXPECT_FALSE(saved_.failed_attempts().back().charged);
  forget_what_was_asked();
}

TEST_F(AllocationEndTest, WhatHasNoEndWasNotEndedByIt) {
  Shape machine = cpu_shape();
  machine.walltime = {};
  given({site_of("here", {machine})});
  submit(New());
  accepts("A");
  batch("A", BatchState::Running);
  happens(PilotRegistered{pilot("A0"), 7, node_, usable(machine), std::nullopt, {}, "100A", {}});
  starts("1");
  after(1min);
  batch_forgot("A");
  disconnects("A0");
  after(1min);
  reads_outbox("A");
  EXPECT_EQ(saved_.failed_attempts().back().outcome.failure, Failure::PilotKilled);
  EXPECT_TRUE(saved_.failed_attempts().back().unexplained);
  forget_what_was_asked();
}

TEST_F(AllocationEndTest, APilotThatIsThereOutweighsAListThatLacksIt) {
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

TEST_F(AllocationEndTest, CancelledBehindOurBackIsRespectedForAWhile) {
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
      "2", "ready*1 earlier attempt*not asked for during the next *cancelled, and not by us*");
  after(28s);
  expect_nothing();
  after(3s);
  expect({"open B: *"});
  accepts("B");
  batch_ended("B", EndCause::Cancelled);
  after(5min);
  expect({"forget B"});  // twice in a row: longer
}

TEST_F(AllocationEndTest, DeathsOfPilotsDoNotMakeTheFirstCancelLongerAndGoodWorkEndsItsCount) {
  const auto pause_after = [this](const char* name, EndCause cause) {
    accepts(name);
    registers(std::string(name) + "0");
    disconnects(std::string(name) + "0");
    batch_ended(name, cause);
    after(1s);
    reads_outbox(name);
    const auto& until = engine_->sites().sites()[0].shapes[0].back_off.until;
    return until ? *until - now_ : Duration{};
  };
  Shape one_at_a_time = cpu_shape();
  one_at_a_time.max_running = 1;
  given({site_of("here", {one_at_a_time})});
  submit(New().array(1, 500).time(30min));
  EXPECT_LE(pause_after("A", EndCause::Failed), 2s);
  after(5s);
  EXPECT_LE(pause_after("B", EndCause::Cancelled), 30s);
  after(31s);
  accepts("C");
  registers("C0");
  ends(to_string(*engine_->pilots().find(pilot("C0"))->leases.begin()));
  disconnects("C0");
  batch_ended("C", EndCause::Cancelled);
  after(1s);
  reads_outbox("C");
  const auto& until = engine_->sites().sites()[0].shapes[0].back_off.until;
  ASSERT_TRUE(until);
  EXPECT_LE(*until - now_, 30s);
  after(31s);
  EXPECT_GT(pause_after("D", EndCause::Cancelled), 4min) << "no work was done between the two";
  forget_what_was_asked();
}

TEST_F(AllocationEndTest, APauseIsEndedByHand) {
  submit(New());
  refuses("A", Refusal::Permanent, "invalid partition");
  forget_what_was_asked();
  happens(ResumeAsked{RequestId{7}, "nowhere"});
  expect({"refuse: there is no site 'nowhere'"});
  happens(ResumeAsked{RequestId{7}, "here"});
  expect({"count 1", "open B: *"});
  happens(ResumeAsked{RequestId{7}, "here"});
  expect({"count 0"});
}

TEST_F(AllocationEndTest, WhatOneCommandCancelsIsOneEvent) {
  submit(New().array(1, 2000).time(10min));
  accepts("A");
  for (const char* letter : {"B", "C", "D"}) accepts(letter);
  for (const char* letter : {"A", "B", "C", "D"}) registers(std::string(letter) + "0");
  for (const char* letter : {"A", "B", "C", "D"}) {
    disconnects(std::string(letter) + "0");
    batch_ended(letter, EndCause::Cancelled);
    after(4s);
    reads_outbox(letter);
  }
  EXPECT_TRUE(engine_->sites().sites()[0].shapes[0].back_off.until);
  after(31s);
  EXPECT_FALSE(engine_->sites().sites()[0].shapes[0].back_off.until);
  forget_what_was_asked();
}

TEST_F(AllocationEndTest, GoodWorkSinceTheLastKillMakesThePauseShortAgain) {
  submit(New().array(1, 500).time(30min));
  for (const char* letter : {"A", "B", "C", "D", "E", "F"}) {
    const std::string name = letter;
    accepts(name);
    registers(name + "0");
    const auto leases = engine_->pilots().find(pilot(name + "0"))->leases;
    ASSERT_FALSE(leases.empty()) << name;
    ends(to_string(*leases.begin()));
    disconnects(name + "0");
    batch_ended(name, EndCause::Failed);
    after(1s);
    reads_outbox(name);
    after(5s);
    EXPECT_FALSE(engine_->sites().sites()[0].shapes[0].back_off.until) << name;
  }
  forget_what_was_asked();
}

TEST_F(AllocationEndTest, APilotThatNeverRegistersIsNotAskedForAgainAtOnce) {
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

TEST_F(AllocationEndTest, WhatItsBatchJobPrintedLastSaysWhyAPilotNeverRegistered) {
  submit(New());
  const std::string words = "/var/spool/5.SC: 12: pbsdsh: not found";
  accepts("A");
  after(1s);
  const std::string name = allocation("A").name;
  const BatchJob job{
      .name = name, .number = "1", .state = BatchState::Ended, .cause = EndCause::Failed};
  batch_forgot("A");
  happens(SitePolled{"here", {job}, now_, {{name, words}, {"hbUnknown", "x"}}});
  forget_what_was_asked();
  expect_explained("1", "*its pilot never registered; its output ends with: " + words + "*");
  after(30s);
  expect({"open *"});
  // Where the batch system keeps no record the file is there nonetheless.
  accepts("B");
  batch_forgot("B");
  const std::string second = allocation("B").name;
  for (int list = 0; list < 3; ++list) {
    after(1s);
    happens(SitePolled{"here", {}, now_, {{second, "module: not found"}}});
  }
  forget_what_was_asked();
  expect_explained("1", "*no longer knows it*its output ends with: module: not found*");
}

TEST_F(AllocationEndTest, WhatAKilledPilotPrintedLastIsSaid) {
  given_pilot();
  submit(New());
  starts("2");
  disconnects("A0");
  const std::string name = allocation("A").name;
  const BatchJob job{.name = name,
                     .number = "1",
                     .state = BatchState::Ended,
                     .cause = EndCause::Failed,
                     .reason = "NonZeroExitCode"};
  happens(SitePolled{"here", {job}, now_, {{name, "the pilot was ended by signal 9"}}});
  reads_outbox("A");
  ASSERT_EQ(saved_.failed_attempts().size(), 1U);
  EXPECT_NE(saved_.failed_attempts()[0].outcome.message.find("ended by signal 9"),
            std::string::npos);
  forget_what_was_asked();
}

TEST_F(AllocationEndTest, WhatCouldNotBeLaunchedPausesItsShapeAtOnce) {
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

TEST_F(AllocationEndTest, AKilledPilotIsNotReplacedBeforeTheBatchSystemHasSaidWhy) {
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

/// A PBS without Exit_status, or SLURM's qstat: what the pilot had said decides.
TEST_F(AllocationEndTest, WhereNoExitCodeIsToldADeletedOneIsRespected) {
  given_pilot();
  submit(New().array(1, 4));
  leaves("A0", "terminated");
  ends("2.1-4", Failure::PilotKilled);
  disconnects("A0");
  forget_what_was_asked();
  batch_ended("A", EndCause::None);
  after(5s);
  expect({"forget A"});
  expect_explained("2.1", "*cancelled, and not by us*");
  forget_what_was_asked();
}

TEST_F(AllocationEndTest, WhereNoExitCodeIsToldOneThatWasLetGoWasInOrder) {
  given_pilot();
  leaves("A0");
  disconnects("A0");
  batch_ended("A", EndCause::None);
  after(5s);
  forget_what_was_asked();
  submit(New());
  expect({"accept 2", "open B: *"});
}

TEST_F(AllocationEndTest, WhereNoExitCodeIsToldAUsedUpWalltimeIsKnown) {
  given_pilot();
  submit(New());
  starts("2");
  after(62min);
  disconnects("A0");
  batch_ended("A", EndCause::None);
  after(5min);
  reads_outbox("A");
  forget_what_was_asked();
  expect_ended("2", Failure::PilotWalltime);
}

TEST_F(AllocationEndTest, APilotThatFindsItsNodeUnfitIsEndedAndNotAskedForAgainAtOnce) {
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

TEST_F(AllocationEndTest, PilotsThatCannotRunTheWaitingWorkAreNotAskedForWithoutEnd) {
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

TEST_F(AllocationEndTest, WhatIsQueuedStaysWhileThePollFails) {
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

TEST_F(AllocationEndTest, OrphansOfOurPrefixAreCancelledOthersAreLeftAlone) {
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

TEST_F(AllocationEndTest, OneNameTwiceIsAliveAsLongAsOneOfThemIs) {
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

TEST_F(AllocationEndTest, TheOutboxIsReadBeforeAnythingIsCalledLost) {
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
  // NOLINTNEXTLINE(cppcoreguidelines-slicing)
  reads_outbox("A", {done, failed, staged});
  expect({"tell 2", "forget A", "open B: *"});
  expect_ended("2.1", Failure::Ok);
  expect_ended("2.2", Failure::ToolFailed);
  ASSERT_EQ(saved_.failed_attempts().size(), 1U) << "2.4 had not started";
  EXPECT_EQ(saved_.failed_attempts()[0].outcome.failure, Failure::NodeLost)
      << "2.3 was not published";
  expect_state("2.4", TaskState::Waiting);
}

TEST_F(AllocationEndTest, AnEngineThatDiedBeforeTheOutboxWasReadReadsIt) {
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
  // NOLINTNEXTLINE(cppcoreguidelines-slicing)
  reads_outbox("A", {done});
  expect({"tell 2", "forget A"});
  expect_ended("2", Failure::Ok);
}

TEST_F(AllocationEndTest, APilotOfAnEndedAllocationIsFencedOff) {
  given_pilot();
  batch_ended("A", EndCause::NodeFailed);
  after(16s);
  expect({"fence A0 (7)", "forget A"});
  happens(PilotRegistered{pilot("A0"), 7, "node1", {}, 1h, {}, "", {}});
  expect({"fence A0 (7)"});
}

}  // namespace
}  // namespace hpcbatch
