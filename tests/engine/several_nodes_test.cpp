// Tasks over several nodes: all of their pilots or none, and what frees them.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

Shape four_nodes() {
  Shape shape = cpu_shape("wide");
  shape.nodes = 4;
  return shape;
}

class SeveralNodesTest : public EngineTest {
 protected:
  void SetUp() override { given({site_of("here", {four_nodes()})}); }

  static New wide(std::uint32_t nodes = 2) { return New().cpus(4).nodes(nodes); }

  /// A runs, with so many pilots.
  void given_pilots(int count) {
    submit(New().cpus(0.1));
    accepts("A");
    for (int rank = 0; rank < count; ++rank) registers("A" + std::to_string(rank));
    ends("1");
    forget_what_was_asked();
  }

  /// As the pilot says it of a task of which it only holds room.
  void member_ends(const std::string& name, const std::string& task_name, Failure failure,
                   const std::string& message = "") {
    AttemptEnd end{attempt(task_name), {.failure = failure, .message = message}};
    end.of_room = true;
    happens(AttemptsEnded{pilot(name), {end}});
  }

  HeldAttempt runs(const std::string& name) const { return held(name); }
};

TEST_F(SeveralNodesTest, HasAllOfItsPilotsOrNone) {
  given_pilots(1);
  submit(wide(3));
  expect({"accept 2"});
  registers("A1");
  expect({"welcome A1"});
  registers("A2");
  expect({"welcome A2", "hold 2 at A0", "hold 2 at A1", "lease 2 to A2"});
  // All of their room is taken.
  submit(New());
  expect({"accept 3"});
  ends("2");
  expect({"kill 2 at A0 silently", "kill 2 at A1 silently", "tell 2", "acknowledge 2 to A2",
          "lease 3 to A0"});
}

TEST_F(SeveralNodesTest, TwoRunSideBySideInOneAllocation) {
  given_pilots(4);
  submit(wide());
  submit(wide());
  submit(wide());
  expect({"accept 2", "hold 2 at A1", "lease 2 to A0", "accept 3", "hold 3 at A3", "lease 3 to A2",
          "accept 4"});
  ends("3");
  expect(
      {"kill 3 at A3 silently", "tell 3", "acknowledge 3 to A2", "hold 4 at A3", "lease 4 to A2"});
}

TEST_F(SeveralNodesTest, IsRefusedWhereNoShapeHasSoMany) {
  submit(wide(5));
  expect({"refuse*5 nodes at once where its batch jobs have 4*"});
}

TEST_F(SeveralNodesTest, ShapesOfThatManyAreAskedFor) {
  Shape one = cpu_shape("one");
  given({patient(site_of("here", {one, four_nodes()}))});
  submit(wide());
  expect({"accept 1", "open A: wide of here"});
}

TEST_F(SeveralNodesTest, SmallTasksDoNotKeepItFromStarting) {
  given_pilots(2);
  submit(New().array(1, 100).cpus(1));
  submit(wide());
  starts("2.1-8");
  // The small ones are older, and one by one they are replaced.
  for (int i = 1; i <= 20; ++i) {
    after(1s);
    ends("2." + std::to_string(i), Failure::Ok, 10s);
    starts("2." + std::to_string(i + 8));
  }
  EXPECT_FALSE(engine_->pilots().lease(task("3")));
  forget_what_was_asked();
}

TEST_F(SeveralNodesTest, RoomIsKeptForTheOlder) {
  given_pilots(2);
  submit(New().cpus(4));
  submit(wide());
  submit(New().array(1, 50).cpus(4));
  starts("2");
  starts("4.1");
  after(6s);
  forget_what_was_asked();
  // What is younger goes first no more where it waits for its second node.
  ends("4.1", Failure::Ok, 6s);
  EXPECT_FALSE(engine_->pilots().lease(task("4.2")));
  expect_explained("3", "*");
  ends("2", Failure::Ok, 7s);
  const Lease* lease = engine_->pilots().lease(task("3"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->members.get().size(), 1U);
  forget_what_was_asked();
}

TEST_F(SeveralNodesTest, KeptRoomLeavesTheRestOfItsNodesToOthers) {
  given_pilots(2);
  submit(New().cpus(3).time(1h));
  submit(New().cpus(3).time(1h));
  submit(New().nodes(2).cpus(2));
  submit(New().array(1, 9).cpus(1).time(10min));
  starts("2");
  starts("3");
  starts("5.1-2");
  after(6s);
  expect_explained("4", "*kept for it on pilot*");
  forget_what_was_asked();
  // It waits for the second node; on the first one there is room for more than it needs.
  ends("2", Failure::Ok, 6s);
  const Lease* lease = engine_->pilots().lease(task("5.3"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->pilot, pilot("A0"));
  EXPECT_FALSE(engine_->pilots().lease(task("5.4")) && engine_->pilots().lease(task("5.5")));
  forget_what_was_asked();
  ends("3", Failure::Ok, 7s);
  EXPECT_TRUE(engine_->pilots().lease(task("4")));
  forget_what_was_asked();
}

TEST_F(SeveralNodesTest, WhatEndsBeforeKeptRoomIsThereMayStartInIt) {
  given_pilots(2);
  submit(New().cpus(4).time(30min));
  submit(New().nodes(2).cpus(4));
  submit(New().array(1, 9).cpus(4).time(5min));
  submit(New().array(1, 9).cpus(4).time(25min));
  starts("2");
  starts("4.1");
  after(6s);
  forget_what_was_asked();
  // The first is there for half an hour: six times five minutes.
  for (int i = 1; i <= 5; ++i) {
    after(5min - 6s);
    ends("4." + std::to_string(i), Failure::Ok, 4min + 30s);
    ASSERT_TRUE(engine_->pilots().lease(task("4." + std::to_string(i + 1)))) << i;
    starts("4." + std::to_string(i + 1));
  }
  after(4min + 30s);
  ends("4.6", Failure::Ok, 4min + 30s);
  EXPECT_FALSE(engine_->pilots().lease(task("4.7")));
  EXPECT_FALSE(engine_->pilots().lease(task("5.1")));
  forget_what_was_asked();
  ends("2", Failure::Ok, 29min);
  EXPECT_TRUE(engine_->pilots().lease(task("3")));
  forget_what_was_asked();
}

TEST_F(SeveralNodesTest, PilotsOfABatchJobLeaveTogether) {
  given_pilots(2);
  const auto stays = [&](const std::string& name) {
    return engine_->pilots().find(pilot(name))->stays_until.has_value();
  };
  EXPECT_FALSE(stays("A0") || stays("A1"));
  submit(New());
  starts("2");
  EXPECT_TRUE(stays("A0") && stays("A1"));
  ends("2");
  EXPECT_FALSE(stays("A0") || stays("A1"));
  forget_what_was_asked();
}

TEST_F(SeveralNodesTest, CancelGoesThroughTheHead) {
  given_pilots(2);
  submit(wide());
  starts("2");
  forget_what_was_asked();
  cancel("2");
  expect({"kill 2 at A0", "count 1"});
  ends("2", Failure::ToolSignal);
  expect({"kill 2 at A1 silently", "tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::Cancelled);
}

TEST_F(SeveralNodesTest, WhatIsKilledForItsMemoryAtAMemberEndsTheTask) {
  given_pilots(2);
  submit(wide());
  starts("2");
  forget_what_was_asked();
  member_ends("A1", "2", Failure::OomTask, "used 9 GB");
  expect({"kill 2 at A1 silently", "kill 2 at A0"});
  ends("2", Failure::OomTask);
  expect({"tell 2", "acknowledge 2 to A0"});
  expect_ended("2", Failure::OomTask, "*node1*used 9 GB*");
}

TEST_F(SeveralNodesTest, ALostMemberEndsItAsNodeLostAndItRunsAgain) {
  given_pilots(4);
  submit(wide());
  starts("2");
  disconnects("A1");
  forget_what_was_asked();
  // Its process is another one now.
  happens(PilotRegistered{
      pilot("A1"), 8, node_, engine_->pilots().find(pilot("A1"))->capacity, 1h, {}, "100A", {}});
  expect({"welcome A1", "kill 2 at A0"});
  ends("2", Failure::NodeLost);
  expect({"acknowledge 2 to A0", "hold 2 at A1", "lease 2 again (2) to A0"});
}

TEST_F(SeveralNodesTest, WhatFailsWithoutItsMemberIsNotTheTasksFault) {
  given_pilots(4);
  submit(wide());
  starts("2");
  disconnects("A1");
  forget_what_was_asked();
  ends("2", Failure::ToolFailed);
  expect({"acknowledge 2 to A0", "hold 2 at A2", "lease 2 again (2) to A0"});
}

TEST_F(SeveralNodesTest, AClaimThatGotLostOnItsWayIsSaidAgain) {
  given_pilots(2);
  submit(wide());
  starts("2");
  disconnects("A1");
  forget_what_was_asked();
  registers("A1");
  expect({"welcome A1", "hold 2 at A1"});
  disconnects("A1");
  registers("A1", 1h, {runs("2")});
  expect({"welcome A1"});
  ends("2");
  forget_what_was_asked();
}

TEST_F(SeveralNodesTest, AMemberThatGivesItBackEndsIt) {
  given_pilots(2);
  submit(wide());
  forget_what_was_asked();
  happens(AttemptsReturned{pilot("A1"), {attempt("2")}});
  expect({"kill 2 at A0"});
  ends("2", Failure::NodeLost);
  expect({"acknowledge 2 to A0", "hold 2 at A1", "lease 2 again (2) to A0"});
}

TEST_F(SeveralNodesTest, ClaimsComeBackAfterARestart) {
  given_pilots(2);
  submit(wide());
  starts("2");
  forget_what_was_asked();
  restarts();
  registers("A1", 1h, {runs("2")});
  registers("A0", 1h, {runs("2")});
  expect({"welcome A1", "welcome A0"});
  submit(New());
  expect({"accept 3"});
  ends("2");
  expect({"kill 2 at A1 silently", "tell 2", "acknowledge 2 to A0", "lease 3 to A0"});
}

TEST_F(SeveralNodesTest, AClaimThatIsNotThereAfterARestartEndsIt) {
  given_pilots(2);
  submit(wide());
  starts("2");
  forget_what_was_asked();
  restarts();
  registers("A1");
  registers("A0", 1h, {runs("2")});
  expect({"welcome A1", "welcome A0", "kill 2 at A0"});
  ends("2", Failure::NodeLost);
  expect({"acknowledge 2 to A0", "hold 2 at A1", "lease 2 again (2) to A0"});
}

TEST_F(SeveralNodesTest, AClaimWhoseTaskIsOverIsKilled) {
  given_pilots(2);
  submit(wide());
  starts("2");
  disconnects("A1");
  ends("2");
  forget_what_was_asked();
  registers("A1", 1h, {runs("2")});
  expect({"welcome A1", "kill 2 at A1 silently"});
}

TEST_F(SeveralNodesTest, AnOutboxOfAMemberSaysNothingOfTheTask) {
  given_pilots(2);
  submit(wide());
  starts("2");
  forget_what_was_asked();
  batch_ended("A", EndCause::Failed);
  after(20s);
  AttemptEnd of_member{attempt("2"), {.failure = Failure::PilotWalltime}};
  of_member.of_room = true;
  AttemptEnd of_head{attempt("2"), {.failure = Failure::Ok}};
  reads_outbox("A", {of_member, of_head});
  expect_ended("2", Failure::Ok);
  forget_what_was_asked();
}

TEST_F(SeveralNodesTest, AMemberMayEndWhenItsTaskHas) {
  given_pilots(2);
  submit(wide());
  starts("2");
  leaves("A1", "walltime");
  forget_what_was_asked();
  ends("2");
  expect({"kill 2 at A1 silently", "end A1", "tell 2", "acknowledge 2 to A0"});
}

}  // namespace
}  // namespace hpcbatch
