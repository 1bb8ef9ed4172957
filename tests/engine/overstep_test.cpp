// What a pilot may say: of its own leases, as one node of what was asked for; and what becomes of
// one that says more.
#include "engine_test.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

class OverstepTest : public EngineTest {
 protected:
  OverstepTest() {
    Shape two = cpu_shape("two");
    two.nodes = 2;
    given({site_of("here", {cpu_shape(), two})});
    given_pilot();
  }

  /// Another pilot, of an allocation of its own; each has one task.
  void given_another() {
    submit(New().array(1, 2000).time(30min).on_hold());
    hold("2", false);
    cancel("2");
    ends("2.1-4", Failure::Cancelled);
    accepts("B");
    registers("B0");
    submit(New().array(1, 40).cpus(4).time(10min));
    for (const auto& [id, lease] : engine_->pilots().leases())
      (lease.pilot == pilot("A0") ? of_a_ : of_b_) = to_string(id);
    ASSERT_FALSE(of_a_.empty() || of_b_.empty());
    forget_what_was_asked();
  }
  void TearDown() override { forget_what_was_asked(); }

  std::optional<std::string> says(const std::string& name, const AttemptId& attempt) {
    return engine_->overstep({.pilot = pilot(name), .attempts = {{attempt, "results"}}});
  }
  std::optional<std::string> comes(const PilotId& id, Resources capacity,
                                   std::optional<Duration> left = 1h) {
    return engine_->overstep(
        {.pilot = id, .capacity = std::move(capacity), .node = PilotClaims::Node{left}});
  }
  void oversteps(const std::string& name, std::uint64_t incarnation = 7) {
    happens(PilotOverstepped{pilot(name), incarnation, "it spoke of another's task"});
  }
  Resources asked() const { return usable(cpu_shape()); }

  std::string of_a_, of_b_;
};

TEST_F(OverstepTest, AnAttemptIsItsPilotsAlone) {
  given_another();
  EXPECT_FALSE(says("A0", attempt(of_a_)));
  EXPECT_FALSE(says("B0", attempt(of_b_)));
  ASSERT_TRUE(says("B0", attempt(of_a_)));
  EXPECT_NE(says("B0", attempt(of_a_))
                ->find("('results'), which was given to pilot " + to_string(pilot("A0"))),
            std::string::npos);
  EXPECT_TRUE(says("A0", attempt(of_b_)));
}

TEST_F(OverstepTest, WhoGuessesAnEpochIsFoundOut) {
  given_another();
  AttemptId guess = attempt(of_a_);
  for (const std::int64_t off : {-4096, -1, 1, 2, 100, 4096}) {
    guess.epoch = attempt(of_a_).epoch + static_cast<std::uint64_t>(off);
    EXPECT_TRUE(says("B0", guess)) << off;
    EXPECT_FALSE(says("A0", guess)) << "a late word of its own is no lie";
  }
}

TEST_F(OverstepTest, OneEpochDoesNotTellTheNextPilots) {
  given_another();
  EXPECT_GT(attempt(of_a_).epoch & 0xFFFFFFFFFF, 1U);
  const auto [first, second] = std::minmax({attempt(of_a_).epoch, attempt(of_b_).epoch});
  EXPECT_GT(second, first + 1);
  ends(of_b_);
  const Lease* next = engine_->pilots().lease(task("3.3"));
  ASSERT_TRUE(next);
  EXPECT_GT(next->attempt.epoch, second) << "they rise: the store compares them";
}

TEST_F(OverstepTest, OthersMayComeToNothingByWhatItSays) {
  given_another();
  const AttemptId of_a = attempt(of_a_);
  const PilotId b = pilot("B0");
  // Each kind of event that names attempts, past the check that is asked before.
  happens(AttemptsEnded{b, {{of_a, {.failure = Failure::Ok}}}});
  expect_nothing();
  happens(AttemptsReturned{b, {of_a}});
  happens(AttemptsStarted{b, {of_a}});
  happens(WorkspaceSeen{b, "", {of_a}});
  happens(StageOutPending{b, {of_a}});
  happens(AttemptsEnded{b, {{of_a, {.failure = Failure::Ok}, true}}});
  expect_nothing();
  const Lease* lease = engine_->pilots().lease(task(of_a_));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->pilot, pilot("A0"));
  EXPECT_EQ(lease->state, Lease::State::Sent);
  EXPECT_FALSE(lease->has_left);
  EXPECT_FALSE(lease->waits_for_workspace);
}

TEST_F(OverstepTest, LateWordsOfItsOwnAreNoLie) {
  given_another();
  const AttemptId first = attempt(of_a_);
  leaves("A0");
  gives_back(of_a_);
  for (const auto* lease = engine_->pilots().lease(task(of_a_)); lease == nullptr;
       lease = engine_->pilots().lease(task(of_a_)))
    ends(to_string(*engine_->pilots().find(pilot("B0"))->leases.begin()));
  ASSERT_EQ(engine_->pilots().lease(task(of_a_))->pilot, pilot("B0"));
  ASSERT_EQ(attempt(of_a_).number, first.number);
  EXPECT_FALSE(says("A0", first));
  EXPECT_TRUE(says("A0", attempt(of_a_))) << "but that one is B0's";
}

TEST_F(OverstepTest, AnEarlierAttemptMayHaveBeenAnybodys) {
  given_another();
  const AttemptId first = attempt(of_a_);
  AttemptId second = first;
  second.number = 2;
  EXPECT_TRUE(says("B0", second));
  ends(of_a_, Failure::NodeLost);
  EXPECT_FALSE(says("B0", first)) << "nobody knows any more";
}

TEST_F(OverstepTest, WhatWasLeasedBeforeARestartIsTheOldEnginesWord) {
  given_another();
  const AttemptId of_a = attempt(of_a_);
  AttemptId lost = of_a;
  lost.epoch += 77;  // given by the engine before, and not written when the machine lost its power
  restarts();
  EXPECT_FALSE(says("B0", lost));
  EXPECT_TRUE(says("B0", of_a)) << "what is known to be another's is";
}

TEST_F(OverstepTest, ARankIsOneOfItsNodes) {
  EXPECT_FALSE(comes({allocation("A"), 0}, asked()));
  ASSERT_TRUE(comes({allocation("A"), 1}, asked()));
  EXPECT_EQ(*comes({allocation("A"), 7}, asked()),
            "it says that it is rank 7 of an allocation of 1 node");
}

TEST_F(OverstepTest, ItHasNoMoreThanWasAskedFor) {
  const PilotId id{allocation("A"), 0};
  EXPECT_FALSE(comes(id, {})) << "less is no lie: a GPU may have been set aside";
  for (const auto& [name, amount] :
       std::vector<std::pair<std::string, Amount>>{{"cpus", Amount::of(5)},
                                                   {"cpus", Amount{Amount::of(4).ticks + 1}},
                                                   {"cpus", Amount::of(100'000)},
                                                   {"memory", Amount::of(std::int64_t{17} << 30)},
                                                   {"gpus/a100", Amount::of(1)},
                                                   {"licences", Amount{1}},
                                                   {"aaa", Amount{1}},
                                                   {"cpus", Amount::of(-1)}}) {
    Resources more = asked();
    more.set(name, amount);
    EXPECT_TRUE(comes(id, more)) << name;
    EXPECT_TRUE(engine_->overstep({.pilot = id, .capacity = more}))
        << "of GPUs set aside: " << name;
  }
  EXPECT_FALSE(comes(id, asked(), 1h + 2min));
  EXPECT_TRUE(comes(id, asked(), 2h));
  EXPECT_TRUE(comes(id, asked(), std::nullopt)) << "its batch job has an end";
}

TEST_F(OverstepTest, WhatWasAskedForHoldsUnderAnotherConfiguration) {
  Shape smaller = cpu_shape();
  smaller.capacity.set(kCpus, Amount::of(2));
  restarts_with({site_of("here", {smaller})});
  EXPECT_FALSE(comes({allocation("A"), 0}, asked()));
  Shape larger = cpu_shape();
  larger.capacity.set(kCpus, Amount::of(8));
  larger.nodes = 2;
  restarts_with({site_of("here", {larger})});
  EXPECT_FALSE(comes({allocation("A"), 1}, usable(larger))) << "its file was written anew";
  restarts_with({site_of("elsewhere", {cpu_shape()})});
  EXPECT_FALSE(comes({allocation("A"), 0}, asked()));
  EXPECT_TRUE(comes({allocation("A"), 0}, usable(larger)));
}

TEST_F(OverstepTest, OneThatOverstepsIsNotHeardAndItsTasksWaitForItsEnd) {
  given_another();
  starts(of_a_);
  starts(of_b_);
  cancels_work_ = false;
  forget_what_was_asked();
  oversteps("A0");
  expect({"fence A0 (7)", "cancel A"});
  expect_state(of_a_, TaskState::Unknown);
  expect_state(of_b_, TaskState::Running);
  expect_explained(of_a_, "unknown: pilot *said what it may not*it spoke of another's task*");
  const Allocation& facts = engine_->sites().find(allocation("A"))->facts;
  EXPECT_NE(facts.reason.find("said what it may not"), std::string::npos);
  registers("A0");
  expect({"fence A0 (7)"});
  restarts();
  forget_what_was_asked();
  registers("A0");
  expect({"fence A0 (7)"});
}

TEST_F(OverstepTest, ItsOutboxIsNotHeardEither) {
  given_another();
  starts(of_a_);
  starts(of_b_);
  oversteps("A0");
  batch_ended("A", EndCause::Cancelled);
  after(16s);
  // Nor may an outbox say anything of other allocations' tasks.
  const AttemptEnd& of_a = result(of_a_);
  const AttemptEnd& of_b = result(of_b_);
  reads_outbox("A", {of_a, of_b});
  EXPECT_FALSE(saved_.outcome(task(of_a_)));
  expect_state(of_b_, TaskState::Running);
}

TEST_F(OverstepTest, SomebodyElseWithItsKeyDoesNotHarmTheOneThatIsThere) {
  oversteps("A0", 99);
  expect({"fence A0 (99)"});
  EXPECT_TRUE(engine_->pilots().find(pilot("A0"))->connected);
  happens(PilotOverstepped{{allocation("A"), 7}, 99, "it says that it is rank 7"});
  EXPECT_TRUE(engine_->pilots().find(pilot("A0"))->connected);
  EXPECT_FALSE(engine_->sites().find(allocation("A"))->facts.cancel_asked);
}

}  // namespace
}  // namespace hpcbatch
