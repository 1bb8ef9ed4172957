// Pilots that cannot write to their workspace: nothing starts there, and what has ended waits.
#include "engine_test.hpp"

#include "engine/sites/site_forecast.hpp"

namespace hpcbatch {
namespace {

constexpr const char* kWhy = "cannot write /w/logs/A0: No space left on device";

class WorkspaceTroubleTest : public EngineTest {
 protected:
  WorkspaceTroubleTest() { given_pilot(); }

  void is_in_trouble(const std::vector<AttemptId>& ended = {}) {
    happens(WorkspaceSeen{pilot("A0"), kWhy, ended});
  }
};

TEST_F(WorkspaceTroubleTest, WhatHasEndedIsFinishingAndDoesNotRun) {
  submit(New());
  is_in_trouble({attempt("2")});
  expect_state("2", TaskState::Finishing);
  expect_explained("2",
                   "done at pilot *.0 on node1, its result waits for the workspace of *No space "
                   "left on device*");
  EXPECT_EQ(engine_->counts().running, 1U);
  forget_what_was_asked();
  ends("2");
  expect({"tell 2", "acknowledge 2 to A0"});
}

TEST_F(WorkspaceTroubleTest, NothingIsLeasedAndNoPilotIsAskedForUntilItCanBeWritten) {
  is_in_trouble();
  forget_what_was_asked();
  submit(New().array(1, 40));
  after(1min);
  expect({"accept 2"});
  expect_explained("2.1", "*nothing starts at site *No space left on device*");
  happens(WorkspaceSeen{pilot("A0"), "", {}});
  expect({"lease 2.1-4 to A0"});
}

TEST_F(WorkspaceTroubleTest, AnOutputThatIsLostIsNotTheTasksFault) {
  submit(New());
  is_in_trouble({attempt("2")});
  forget_what_was_asked();
  happens(WorkspaceSeen{pilot("A0"), "", {}});
  ends("2", Failure::WorkspaceLost);
  ASSERT_EQ(saved_.failed_attempts().size(), 1U);
  EXPECT_FALSE(saved_.failed_attempts()[0].charged);
  expect({"acknowledge 2 to A0", "lease 2 again (2) to A0"});
}

TEST_F(WorkspaceTroubleTest, OneOfManyThatCannotWriteDoesNotCloseItsSite) {
  submit(New().array(1, 400).time(30min));
  for (const char* letter : {"B", "C"}) {
    accepts(letter);
    node_ = letter;
    registers(std::string(letter) + "0");
  }
  is_in_trouble();
  const auto is_closed = [&] { return engine_->sites().sites()[0].workspace_in_trouble(); };
  EXPECT_FALSE(is_closed());
  EXPECT_TRUE(SiteForecast(engine_->sites(), now_).outlets()[0].open);
  happens(WorkspaceSeen{pilot("B0"), kWhy, {}});
  EXPECT_TRUE(is_closed()) << "most of them";
  happens(WorkspaceSeen{pilot("A0"), "", {}});
  EXPECT_FALSE(is_closed());
  disconnects("A0");
  disconnects("C0");
  EXPECT_TRUE(is_closed()) << "those that can are gone";
  forget_what_was_asked();
}

TEST_F(WorkspaceTroubleTest, WhatFailsElsewhereIsNotKeptForAPilotThatCannotWrite) {
  submit(New().array(1, 400).time(30min).may_fail(1));
  accepts("B");
  node_ = "node2";
  registers("B0");
  is_in_trouble();
  ends("2.5", Failure::ToolFailed);
  EXPECT_TRUE(saved_.has_lease(task("2.5")));
  forget_what_was_asked();
}

TEST_F(WorkspaceTroubleTest, APilotThatComesAgainIsAskedAgain) {
  is_in_trouble();
  registers("A0");
  EXPECT_FALSE(engine_->sites().sites()[0].workspace_in_trouble());
  forget_what_was_asked();
}

TEST_F(WorkspaceTroubleTest, APilotThatIsGoneIsNoLongerInTrouble) {
  is_in_trouble();
  disconnects("A0");
  EXPECT_FALSE(engine_->sites().sites()[0].workspace_in_trouble());
  registers("A0");
  EXPECT_TRUE(engine_->pilots().find(pilot("A0"))->takes_tasks());
  forget_what_was_asked();
}

}  // namespace
}  // namespace hpcbatch
