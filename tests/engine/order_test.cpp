// Who goes first: priority, then turns between clients, then age; how many of an array at once; who
// is held.
#include "engine_test.hpp"

#include <deque>

namespace hpcbatch {
namespace {

class OrderTest : public EngineTest {
 protected:
  /// One slot: the task that fills the pilot; what is leased next is seen when it ends.
  static New whole() { return New().cpus(4); }
};

TEST_F(OrderTest, AgeDecidesAmongEquals) {
  given_pilot();
  for (int i = 0; i < 3; ++i) submit(whole());
  expect({"accept 2", "lease 2 to A0", "accept 3", "accept 4"});
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0", "lease 3 to A0"});
  ends("3");
  expect({"tell 3", "acknowledge 3 to A0", "lease 4 to A0"});
}

TEST_F(OrderTest, PriorityGoesBeforeAge) {
  given_pilot();
  submit(whole());
  submit(whole());
  submit(whole().urgency(-1));
  submit(whole().urgency(5));
  forget_what_was_asked();
  for (const char* next : {"5", "3", "4"}) {
    const std::string before = next == std::string("5")   ? "2"
                               : next == std::string("3") ? "5"
                                                          : "3";
    ends(before);
    expect({"tell *", "acknowledge *", std::string("lease ") + next + " to A0"});
  }
}

TEST_F(OrderTest, ClientsTakeTurns) {
  given_pilot();
  submit(whole().array(1, 50), "ann");
  submit(whole().array(1, 50), "bob");
  forget_what_was_asked();
  std::uint32_t of_bob = 0;
  for (int i = 0; i < 20; ++i) {
    for (const auto& [id, lease] :
         std::map(engine_->pilots().leases().begin(), engine_->pilots().leases().end())) {
      if (id.array == ArrayId{3}) ++of_bob;
      ends(to_string(id), Failure::Ok, 10s);
    }
  }
  EXPECT_GE(of_bob, 9U);
  EXPECT_LE(of_bob, 10U);
  forget_what_was_asked();
}

TEST_F(OrderTest, WhoComesBackAfterAPauseDoesNotMakeUpForIt) {
  given_pilot();
  submit(whole(), "bob");
  ends("2");
  submit(whole().array(1, 100), "ann");
  for (int i = 1; i <= 30; ++i) ends("3." + std::to_string(i), Failure::Ok, 10s);
  submit(whole().array(1, 10), "bob");
  forget_what_was_asked();
  ends("3.31", Failure::Ok, 10s);
  expect({"tell 3", "acknowledge *", "lease 3.32 to A0"});
  ends("3.32", Failure::Ok, 10s);
  expect({"tell 3", "acknowledge *", "lease 4.1 to A0"});
  ends("4.1", Failure::Ok, 10s);
  expect({"tell 4", "acknowledge *", "lease 3.33 to A0"});
}

TEST_F(OrderTest, AnArrayRunsNoMoreAtOnceThanItMay) {
  given_pilot();
  submit(New().array(1, 5).at_once(2));
  expect({"accept 2", "lease 2.1-2 to A0"});
  expect_explained("2.3", "2 tasks of its array are with pilots, and no more may be*");
  ends("2.2");
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 2.3 to A0"});
  gives_back("2.1,3");
  expect({"lease 2.1,3 to A0"});
  ends("2.1,3");
  ends("2.4-5");
  expect({"tell 2", "ack*", "lease 2.4 to A0", "tell 2", "ack*", "lease 2.5 to A0", "tell 2",
          "ack*", "tell 2", "ack*"});
  EXPECT_TRUE(engine_->tasks().arrays().empty());
}

TEST_F(OrderTest, AHundredThousandTasksAreOneObject) {
  given_pilot();
  submit(New().array(1, 100'000).cpus(4).at_once(1));
  expect({"accept 2", "lease 2.1 to A0"});
  EXPECT_EQ(engine_->counts().waiting, 100'000U);
  starts("2.1");
  EXPECT_EQ(engine_->counts().waiting, 99'999U);
  EXPECT_EQ(engine_->counts().running, 1U);
  cancel("2");
  expect({"tell 2", "kill 2.1 at A0", "count 100000"});
  ends("2.1", Failure::ToolSignal);
  expect({"tell 2", "acknowledge 2.1 to A0"});
  expect_ended("2.1", Failure::Cancelled);
}

// Were each of them to cost a walk over those that wait, this would not end.
TEST_F(OrderTest, AHundredThousandGapsAndALimitCostNoMoreThanTheirTasks) {
  walks_invariants = false;  // what it costs is the matter here
  given_pilot();
  NewArray sparse = New().cpus(0.1).at_once(20);
  sparse.indices = *parse_index_set("1-200000:2");
  std::deque<AttemptId> leased;
  std::uint64_t ended = 0;
  const auto feed = [&](const Event& event) {
    for (const Action& action : engine_->on(event, now_)) {
      if (const auto* send = std::get_if<SendLeases>(&action)) {
        for (const SendLeases::Lease& lease : send->leases) leased.push_back(lease.attempt);
      }
    }
  };
  feed(TasksSubmitted{RequestId{1}, "me", "", 0, {sparse}, {}});
  for (; !leased.empty(); ++ended) {
    ASSERT_LE(leased.size(), 20U);
    AttemptEnd done{leased.front(), {}, false};
    leased.pop_front();
    done.outcome.started = now_ - 10s;
    done.outcome.ended = now_;
    feed(AttemptsEnded{pilot("A0"), {done}});
  }
  EXPECT_EQ(ended, 100'000U);
  EXPECT_TRUE(engine_->tasks().arrays().empty());
}

TEST_F(OrderTest, ATaskThatAPilotsEndCutCountsAgainstTheLimit) {
  given_pilot(10min);
  submit(New().array(1, 6).at_once(2));
  starts("2.1-2");
  after(9min);
  forget_what_was_asked();
  ends("2.1", Failure::PilotWalltime, 9min);
  expect({"acknowledge 2.1 to A0", "lease 2.3 to A0"});
  restarts();
  registers("A0", 20s, {held("2.2"), held("2.3")});
  forget_what_was_asked();
  expect_explained("2.1", "*2 tasks of its array are with pilots, and no more may be*");
  cancel("2.1");
  expect({"tell 2", "count 1"});
}

TEST_F(OrderTest, HeldTasksWaitForRelease) {
  given_pilot();
  submit(New().array(1, 4).on_hold());
  expect({"accept 2"});
  expect_state("2.1", TaskState::Held);
  expect_explained("2.1", "held by its user; 'hpcbatch release 2.1'*");
  EXPECT_EQ(engine_->counts().held, 4U);
  hold("2.2-3", false);
  expect({"count 2", "lease 2.2-3 to A0"});
  restarts();
  registers("A0", 1h, {held("2.2"), held("2.3")});
  expect({"welcome A0"});
  expect_state("2.4", TaskState::Held);
  hold("2", false);
  expect({"count 2", "lease 2.1,4 to A0"});
}

TEST_F(OrderTest, HoldStopsWhatHasNotStarted) {
  given_pilot();
  submit(whole().array(1, 3));
  expect({"accept 2", "lease 2.1 to A0"});
  hold("2");
  expect({"count 2"});
  ends("2.1");
  expect({"tell 2", "acknowledge 2.1 to A0"});
  hold("2");
  expect({"count 0"});
  hold("2.3", false);
  expect({"count 1", "lease 2.3 to A0"});
  cancel("2.2");
  expect({"tell 2", "count 1"});
  expect_ended("2.2", Failure::Cancelled);
  hold("77");
  expect({"count 0"});
}

}  // namespace
}  // namespace hpcbatch
