// Nodes at which tasks fail that do well elsewhere, seen through the engine: who pays, who is tried
// where, what the pilots there still get.
#include "engine_test.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace hpcbatch {
namespace {

class NodesTest : public EngineTest {
 protected:
  /// A0 on node1, B0 on node2, both without work.
  void given_two_nodes() {
    given_pilot();
    submit(New().array(1, 2000).time(30min).on_hold());
    hold("2", false);
    cancel("2");
    accepts("B");
    node_ = "node2";
    registers("B0");
    for (const auto& [id, lease] :
         std::map(engine_->pilots().leases().begin(), engine_->pilots().leases().end())) {
      gives_back(to_string(id));
    }
    forget_what_was_asked();
  }
  /// All that is leased ends a second later: at the bad nodes at once and not well.  What a pilot
  /// was asked for it gives back.
  void step(const std::set<std::string>& bad) {
    after(1s);
    std::set<PilotId> recalled;
    for (const auto& [id, pilot] : engine_->pilots().all()) {
      if (pilot.recalled) recalled.insert(id);
    }
    for (const auto& [id, lease] :
         std::map(engine_->pilots().leases().begin(), engine_->pilots().leases().end())) {
      if (recalled.contains(lease.pilot) && !lease.counted) {
        gives_back(to_string(id));
        continue;
      }
      const bool fails = bad.contains(engine_->pilots().find(lease.pilot)->node);
      ends(to_string(id), fails ? Failure::ToolFailed : Failure::Ok, fails ? 1ms : 900ms);
    }
    forget_what_was_asked();
  }
  std::size_t failed(std::uint64_t array, std::uint32_t last) const {
    std::size_t count = 0;
    for (std::uint32_t i = 1; i <= last; ++i) {
      const auto outcome = saved_.outcome({ArrayId{array}, i});
      if (outcome && outcome->failure != Failure::Ok) ++count;
    }
    return count;
  }
  bool is_over() const { return engine_->tasks().arrays().empty(); }
};

TEST_F(NodesTest, ABadNodeSwallowsNoArray) {
  given_two_nodes();
  submit(New().array(1, 600));
  for (int i = 0; i < 600 && !is_over(); ++i) step({"node1"});
  EXPECT_TRUE(is_over());
  EXPECT_LE(failed(3, 600), 3U);
  EXPECT_TRUE(engine_->trust().is_bad({"here", "node1"}));
  EXPECT_TRUE(engine_->pilots().find(pilot("A0"))->leaving);
  EXPECT_LT(saved_.failed_attempts().size(), 40U);
  for (const SaveFailedAttempt& attempt : saved_.failed_attempts()) {
    EXPECT_FALSE(attempt.charged) << attempt.outcome.message;
    EXPECT_EQ(attempt.node, "node1");
  }
}

TEST_F(NodesTest, WhatWaitsForAnotherNodeSaysSo) {
  given_two_nodes();
  submit(New().array(1, 5000));
  step({"node1"});
  bool any = false;
  for (const SaveFailedAttempt& attempt : saved_.failed_attempts()) {
    EXPECT_TRUE(attempt.outcome.message.find("in doubt") != std::string::npos);
    any = true;
  }
  ASSERT_TRUE(any);
  const auto why = engine_->explain(task("3.5000"), now_);
  ASSERT_TRUE(why);
  const std::string told = fmt::format("{}", fmt::join(why->details, "; "));
  EXPECT_NE(told.find("node node1 of here gets "), std::string::npos) << why->text << told;
  EXPECT_NE(told.find("fail there at once"), std::string::npos) << told;
}

TEST_F(NodesTest, TasksThatFailEverywhereFailHonestly) {
  given_two_nodes();
  submit(New().array(1, 100));
  for (int i = 0; i < 200 && !is_over(); ++i) step({"node1", "node2"});
  EXPECT_TRUE(is_over());
  EXPECT_EQ(failed(3, 100), 100U);
  EXPECT_LT(saved_.failed_attempts().size(), 40U) << "were tried elsewhere before";
  EXPECT_FALSE(engine_->trust().any());
}

TEST_F(NodesTest, OneNodeThatIsAllThereIsFailsAtOnce) {
  Site only = site_of("here", {cpu_shape()});
  only.max_running = 1;
  given({only});
  given_pilot();
  submit(New().array(1, 100));
  for (int i = 0; i < 30 && !is_over(); ++i) step({"node1"});
  EXPECT_TRUE(is_over());
  EXPECT_EQ(failed(2, 100), 100U);
  EXPECT_TRUE(saved_.failed_attempts().empty());
}

TEST_F(NodesTest, TheOnlyPilotIsBrakedUntilAnotherNodeHasSpoken) {
  given_pilot();
  submit(New().array(1, 600).time(1min));
  forget_what_was_asked();
  for (int i = 0; i < 6; ++i) step({"node1"});
  EXPECT_LE(failed(2, 600), 5U);
  EXPECT_GT(engine_->counts().waiting, 585U);
  accepts("B");
  node_ = "node2";
  registers("B0");
  for (int i = 0; i < 600 && !is_over(); ++i) step({"node1"});
  EXPECT_TRUE(is_over());
  EXPECT_LE(failed(2, 600), 5U);
}

TEST_F(NodesTest, ARetryGoesToAnotherNode) {
  given_two_nodes();
  submit(New().may_fail(1));
  expect({"accept 3", "lease 3 to A0"});
  ends("3", Failure::ToolFailed);
  expect({"acknowledge 3 to A0", "lease 3 again (2) to B0"});
  ends("3");
  expect({"tell 3", "acknowledge 3 to B0"});
}

TEST_F(NodesTest, ARetryWaitsForAnotherNodeNoLongerThanAMoment) {
  given_two_nodes();
  submit(New().may_fail(1));
  submit(New().array(1, 7).time(50min));
  expect({"accept 3", "lease 3 to A0", "accept 4", "lease 4.1-3 to A0", "lease 4.4-7 to B0"});
  ends("3", Failure::ToolFailed);
  expect({"acknowledge 3 to A0"});
  expect_explained("3", "ready*the last one failed on node1 of here*");
  after(31s);
  expect({"lease 3 again (2) to A0"});
  ends("3");
  forget_what_was_asked();
}

TEST_F(NodesTest, ACommandThatIsNotThereIsLookedForOnOneMoreNode) {
  given_two_nodes();
  submit(New());
  EndAtPilot end = result("3", Failure::ToolFailed);
  end.outcome.exit_code = 127;
  happens(end);
  expect({"accept 3", "lease 3 to A0", "acknowledge 3 to A0", "lease 3 again (2) to B0"});
  end = result("3", Failure::ToolFailed);
  end.outcome.exit_code = 127;
  happens(end);
  expect({"tell 3", "acknowledge 3 to B0"});
  EXPECT_FALSE(engine_->trust().any());
}

TEST_F(NodesTest, APilotThatComesToABadNodeGetsNothingWhileOthersAreThere) {
  given_two_nodes();
  submit(New().array(1, 200));
  while (!is_over()) step({"node1"});
  node_ = "node1";
  submit(New().array(1, 40).time(50min));
  forget_what_was_asked();
  accepts("C");
  registers("C0");
  EXPECT_TRUE(engine_->pilots().find(pilot("C0"))->leases.empty());
  forget_what_was_asked();
}

}  // namespace
}  // namespace hpcbatch
