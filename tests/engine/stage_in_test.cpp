// Tasks whose files have to be staged in at a site: before they start, no more than are soon wanted,
// elsewhere when a site fails; and those whose outputs come back after they have ended.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class StageInTest : public EngineTest {
 protected:
  void brought(const std::string& tasks, const std::string& site = "here") {
    happens(
        StagedIn{.site = site, .array = task(tasks).array, .there = indices(tasks), .failed = {}});
  }
  void not_brought(const std::string& tasks, bool again, Failure failure = Failure::StageInFailed,
                   const std::string& site = "here") {
    happens(StagedIn{.site = site,
                     .array = task(tasks).array,
                     .there = {},
                     .failed = {{indices(tasks), failure, "the reason", again}}});
  }
  static IndexSet indices(const std::string& tasks) {
    const auto dot = tasks.find('.');
    return dot == std::string::npos ? IndexSet(IndexRange{0, 0})
                                    : *parse_index_set(tasks.substr(dot + 1));
  }
  void given_two_sites() {
    given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})});
  }
};

TEST_F(StageInTest, ATaskStartsWhenItsFilesAreThere) {
  given_pilot();
  submit(New().files_brought_to({"here"}));
  expect({"accept 2", "bring files of 2, each to here"});
  expect_state("2", TaskState::Waiting);
  expect_explained("2", "ready*its files are being staged in at site here*");
  brought("2");
  expect({"lease 2 to A0"});
}

TEST_F(StageInTest, NoPilotIsAskedForBeforeThat) {
  submit(New().files_brought_to({"here"}));
  expect({"accept 1", "bring files of 1, each to here"});
  after(10s);
  expect_nothing();
  brought("1");
  expect({"open A: cpu of here"});
}

TEST_F(StageInTest, WhatCannotBeHadEndsTheTask) {
  given_pilot();
  submit(New().array(1, 3).files_brought_to({"here"}));
  expect({"accept 2", "bring files of 2.1-3, each to here"});
  not_brought("2.2", false, Failure::InputMissing);
  expect({"tell 2"});
  expect_ended("2.2", Failure::InputMissing, "the reason");
  brought("2.1,3");
  expect({"lease 2.1,3 to A0"});
}

TEST_F(StageInTest, WhatMayPassIsTriedAgainLater) {
  given_pilot();
  submit(New().files_brought_to({"here"}));
  forget_what_was_asked();
  not_brought("2", true);
  expect_nothing();
  expect_explained("2", "*could not be staged in at site here: the reason; tried again in*");
  after(4s);
  expect_nothing();
  after(2s);
  expect({"bring files of 2, each to here"});
  not_brought("2", true);
  after(8s);
  expect_nothing();
  after(3s);
  expect({"bring files of 2, each to here"});
}

TEST_F(StageInTest, FilesThatAreGoneAreBroughtAgain) {
  given_pilot();
  submit(New().array(1, 2).cpus(4).files_brought_to({"here"}));
  brought("2.1-2");
  starts("2.1");
  forget_what_was_asked();
  not_brought("2.1-2", true);
  gives_back("2.1");
  expect_nothing();
  after(6s);
  expect({"bring files of 2.1-2, each to here"});
  brought("2.1-2");
  expect({"lease 2.1 to A0"});
}

TEST_F(StageInTest, WhatIsThereForOthersOfAnArrayIsThereForAll) {
  given_pilot();
  submit(New().array(1, 2).files_brought_to({"here"}, false));
  hold("2.2");
  brought("2.1");
  forget_what_was_asked();
  after(1s);
  hold("2.2", false);
  after(1s);
  expect({"count 1", "lease 2.2 to A0"});
}

TEST_F(StageInTest, APilotStartedAnewLosesNothingThatIsOnItsWay) {
  given_pilot();
  submit(New().array(1, 2).files_brought_to({"here"}));
  brought("2.1-2");
  starts("2.1-2");
  happens(StageOutPending{pilot("A0"), {attempt("2.1")}});
  forget_what_was_asked();
  disconnects("A0");
  happens(PilotRegistered{.pilot = pilot("A0"),
                          .incarnation = 77,
                          .node = "node1",
                          .capacity = cpu_shape().capacity,
                          .time_left = 1h});
  expect({"welcome A0", "lease 2.2 again (2) to A0"});
  ends("2.1");
  expect({"tell 2", "acknowledge 2.1 to A0"});
  expect_ended("2.1", Failure::Ok);
}

TEST_F(StageInTest, ManySingleTasksAreSharedBetweenSites) {
  given_two_sites();
  for (int i = 0; i < 4; ++i) submit(New().files_brought_to({"here", "there"}, false));
  after(1s);
  expect({"accept 1", "bring files of 1 to here", "accept 2", "accept 3", "accept 4",
          "bring files of 2 to there", "bring files of 3 to here", "bring files of 4 to there"});
}

TEST_F(StageInTest, NoMoreThanIsSoonWanted) {
  given_pilot();
  submit(New().array(1, 1000).files_brought_to({"here"}));
  expect({"accept 2", "bring files of 2.1-256, each to here"});
  brought("2.1-256");
  expect({"lease 2.1-4 to A0", "open B: *"});
  after(1s);
  expect({"bring files of 2.257-260, each to here"});
}

TEST_F(StageInTest, WhatAllTasksShareIsBroughtOnce) {
  given_pilot();
  submit(New().array(1, 100'000).files_brought_to({"here"}, false));
  expect({"accept 2", "bring files of 2.1-100000 to here"});
  brought("2.1-100000");
  expect({"lease 2.1-4 to A0", "open B: *", "open C: *", "open D: *", "open E: *", "open F: *",
          "open G: *", "open H: *", "open I: *"});
}

TEST_F(StageInTest, WhereItsFilesAreSeenATaskNeedsNothing) {
  given_two_sites();
  given_pilot();  // here
  submit(New().files_brought_to({"there"}));
  expect({"accept 2", "bring files of 2, each to there", "lease 2 to A0"});
  brought("2", "there");
  expect_nothing();
}

TEST_F(StageInTest, ATaskThatIsLeasedAgainNeedsNothingBrought) {
  given_pilot();
  submit(New().files_brought_to({"here"}));
  brought("2");
  forget_what_was_asked();
  gives_back("2");
  expect({"lease 2 to A0"});
}

TEST_F(StageInTest, ARevivedTasksFilesAreBroughtAgain) {
  given_pilot();
  submit(New().files_brought_to({"here"}));
  brought("2");
  ends("2", Failure::ToolFailed);
  forget_what_was_asked();
  retry({"2"});
  expect({"count 1"});
  after(1s);
  expect({"bring files of 2, each to here"});
}

TEST_F(StageInTest, ACancelledTaskHearsNothingMore) {
  given_pilot();
  submit(New().files_brought_to({"here"}));
  forget_what_was_asked();
  cancel("2");
  forget_what_was_asked();
  brought("2");
  expect_nothing();
  expect_ended("2", Failure::Cancelled);
}

TEST_F(StageInTest, AHeldTaskStartsWhereItsFilesAre) {
  given_pilot();
  submit(New().files_brought_to({"here"}));
  hold("2");
  brought("2");
  forget_what_was_asked();
  hold("2", false);
  expect({"count 1", "lease 2 to A0"});
}

TEST_F(StageInTest, FilesGoElsewhereWhenASiteTakesNone) {
  given_two_sites();
  submit(New().array(1, 3).files_brought_to({"here", "there"}));
  expect({"accept 1", "bring files of 1.1-3, each to here"});
  after(50s);
  expect_nothing();
  after(15s);
  expect({"bring files of 1.1-3, each to there"});
  brought("1.1-3", "there");
  expect({"open A: cpu of there"});
}

TEST_F(StageInTest, ASiteThatMayNotBeAskedGetsNoFiles) {
  given_two_sites();
  submit(New().on("here"));
  refuses("A", Refusal::Permanent);
  forget_what_was_asked();
  submit(New().files_brought_to({"here", "there"}));
  expect({"accept 2", "bring files of 2, each to there"});
}

TEST_F(StageInTest, RoomIsFreeWhileOutputsComeBack) {
  given_pilot();
  submit(New().array(1, 8).files_brought_to({"here"}));
  brought("2.1-8");
  starts("2.1-4");
  forget_what_was_asked();
  happens(StageOutPending{pilot("A0"), {attempt("2.1"), attempt("2.2")}});
  expect({"lease 2.5-6 to A0"});
  expect_explained("2.1", "done at *, its outputs are being staged out*");
  ends("2.1");
  // One more to wait behind those that run, now that it is known how long they take.
  expect({"tell 2", "acknowledge 2.1 to A0", "lease 2.7 to A0"});
}

TEST_F(StageInTest, HowLongFilesWereOnTheirWayIsKept) {
  given_pilot();
  submit(New().array(1, 2).files_brought_to({"here"}));
  after(7s);
  brought("2.1-2");
  starts("2.1-2");
  happens(StageOutPending{pilot("A0"), {attempt("2.1")}});
  after(3s);
  ends("2.1-2");
  EXPECT_EQ(saved_.outcome(task("2.1"))->staged_in, 7s);
  EXPECT_EQ(saved_.outcome(task("2.1"))->staged_out, 3s);
  EXPECT_EQ(saved_.outcome(task("2.2"))->staged_in, 7s);
  EXPECT_EQ(saved_.outcome(task("2.2"))->staged_out, Duration{});
  submit(New());
  starts("3");
  ends("3");
  EXPECT_EQ(saved_.outcome(task("3"))->staged_in, Duration{});
  forget_what_was_asked();
}

TEST_F(StageInTest, ARestartBringsWhatWaitsAgain) {
  given_pilot();
  submit(New().array(1, 8).files_brought_to({"here"}));
  brought("2.1-8");
  starts("2.1-4");
  forget_what_was_asked();
  restarts();
  registers("A0", 1h, {held("2.1"), held("2.2"), held("2.3"), held("2.4")});
  expect({"bring files of 2.5-8, each to here", "welcome A0"});
  happens(StageOutPending{pilot("A0"), {attempt("2.1")}});
  brought("2.5-8");
  expect({"lease 2.5 to A0"});
}

TEST_F(StageInTest, WhatIsFetchedFromAnEndedAllocationKeepsNobodyElse) {
  given_pilot();
  submit(New().array(1, 3).files_brought_to({"here"}));
  brought("2.1-3");
  starts("2.1-3");
  happens(StageOutPending{pilot("A0"), {attempt("2.1")}});
  disconnects("A0");
  batch_ended("A", EndCause::Failed);
  after(1s);
  forget_what_was_asked();
  happens(OutboxRead{allocation("A"), {}, {attempt("2.1"), attempt("2.2")}});
  after(6s);
  expect({"open B: cpu of here"});
  EXPECT_EQ(engine_->counts().unknown, 0U);
  happens(OutputsDelayed{attempt("2.2"), "the disk here is full"});
  expect_explained("2.2",
                   "done at *being staged out*the last time that failed: the disk here is full*");
  ends("2.2");
  expect({"tell 2", "acknowledge 2.2 to A0"});
  ends("2.1");
  expect({"tell 2", "forget A", "acknowledge 2.1 to A0"});
  expect_ended("2.1", Failure::Ok);
}

TEST_F(StageInTest, ATaskThatHasFailedStaysFailedWhenItsPilotDies) {
  given_pilot();
  submit(New().array(1, 2).files_brought_to({"here"}));
  brought("2.1-2");
  starts("2.1-2");
  for (const char* task : {"2.1", "2.2"}) {
    EndAtPilot staged = result(task, Failure::ToolFailed);
    staged.outputs_staged = true;
    happens(staged);
  }
  forget_what_was_asked();
  disconnects("A0");
  happens(PilotRegistered{.pilot = pilot("A0"),
                          .incarnation = 77,
                          .node = "node1",
                          .capacity = cpu_shape().capacity,
                          .time_left = 1h,
                          .held = {held("2.2")}});
  expect_ended("2.1", Failure::ToolFailed);
  disconnects("A0");
  batch_ended("A", EndCause::NodeFailed);
  after(1s);
  reads_outbox("A");
  expect_ended("2.2", Failure::ToolFailed);
  forget_what_was_asked();
}

TEST_F(StageInTest, AFetchThatNobodyWantsAnyMoreIsStopped) {
  given_pilot();
  submit(New().files_brought_to({"here"}));
  brought("2");
  starts("2");
  happens(StageOutPending{pilot("A0"), {attempt("2")}});
  disconnects("A0");
  forget_what_was_asked();
  cancel("2");
  expect({"kill 2 at A0", "count 1"});
  ends("2", Failure::Cancelled);
  expect({"tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::Cancelled);
}

TEST_F(StageInTest, ATaskThatIsTooLongForASiteIsBroughtToAnother) {
  Shape longer = cpu_shape("long");
  longer.walltime = 4h;
  given({site_of("here", {cpu_shape()}), site_of("there", {longer})});
  given_pilot();
  submit(New().files_brought_to({"here", "there"}));
  brought("2");
  starts("2");
  after(55min);
  forget_what_was_asked();
  ends("2", Failure::PilotWalltime, 59min);
  after(1s);
  expect({"acknowledge 2 to A0", "bring files of 2, each to there"});
  brought("2", "there");
  expect({"open B: long of there"});
}

TEST_F(StageInTest, NobodysManyKeepAnothersFewAway) {
  given_pilot();
  submit(New().array(1, 5000).files_brought_to({"here"}), "many");
  expect({"accept 2", "bring files of 2.1-256, each to here"});
  submit(New().array(1, 2).files_brought_to({"here"}), "few");
  expect({"accept 3"});
  brought("2.1-256");
  expect({"lease 2.1-4 to A0", "open B: *"});
  after(1s);
  expect({"bring files of 3.1-2, each to here", "bring files of 2.257-258, each to here"});
}

}  // namespace
}  // namespace hpcbatch
