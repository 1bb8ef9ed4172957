// Tasks whose pilots die without a reason: who is blamed, who is tried where, who is cleared.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class SuspectsTest : public EngineTest {
 protected:
  void dies(const std::string& letter, EndCause cause = EndCause::Failed) {
    disconnects(letter + "0");
    batch_ended(letter, cause);
    after(1s);
    reads_outbox(letter);
  }
  void comes(const std::string& letter) {
    accepts(letter);
    registers(letter + "0");
  }
  std::uint32_t deaths(const std::string& name) {
    const TaskHistory* past = engine_->tasks().history(task(name));
    return past ? past->unexplained_deaths : 0;
  }
};

TEST_F(SuspectsTest, ATaskThatWasNeverSeenToStartIsCharged) {
  submit(New());
  for (const char* letter : {"A", "B", "C"}) {
    comes(letter);
    EXPECT_TRUE(saved_.has_lease(task("1")));
    dies(letter);
    if (*letter != 'C') {
      EXPECT_TRUE(saved_.failed_attempts().back().unexplained) << letter;
    }
    after(2min);
  }
  forget_what_was_asked();
  expect_ended("1", Failure::SetAside, "set aside: it was running in 3 pilots*");
}

/// Its goodbye may be lost with its link, and what was on its way to it was never there.
TEST_F(SuspectsTest, APilotThatLeftByItselfWasKilledByNobody) {
  given_pilot();
  submit(New().array(1, 3));
  dies("A", EndCause::Completed);
  for (const auto& failed : saved_.failed_attempts()) EXPECT_FALSE(failed.unexplained);
  after(5s);
  forget_what_was_asked();
  comes("B");
  expect({"welcome B0", "lease 2.1-3 to B0"});
}

/// A PBS without Exit_status, or SLURM's qstat.
TEST_F(SuspectsTest, WhereNoExitCodeIsToldASilentEndIsUnexplained) {
  submit(New());
  for (const char* letter : {"A", "B", "C"}) {
    comes(letter);
    dies(letter, EndCause::None);
    after(2min);
  }
  forget_what_was_asked();
  expect_ended("1", Failure::SetAside, "set aside: it was running in 3 pilots*does not say how*");
}

TEST_F(SuspectsTest, AfterADeathSuspectsRunOneToAPilot) {
  given_pilot();
  submit(New().array(1, 3));
  forget_what_was_asked();
  dies("A");
  EXPECT_EQ(saved_.failed_attempts().size(), 3U);
  after(5s);
  forget_what_was_asked();
  comes("B");
  expect({"welcome B0", "lease 2.1 again (2) to B0"});
  submit(New().array(1, 2));
  expect({"accept 3"});  // they could be what kills the next one
  expect_explained("2.2", "ready*1 pilot died that had it*the only such task of a pilot*");
  ends("2.1");
  expect({"tell 2", "acknowledge 2.1 to B0", "lease 2.2 again (2) to B0"});
  starts("2.2");
  after(31s);
  forget_what_was_asked();
  expect_state("2.3", TaskState::Waiting);
  EXPECT_TRUE(saved_.has_lease(task("2.3"))) << "2.2 has run for a while";
}

TEST_F(SuspectsTest, TheNeighboursOfASuspectAreNotBlamed) {
  submit(New());
  submit(New().array(1, 12));
  for (const char* letter : {"A", "B", "C"}) {
    comes(letter);
    EXPECT_TRUE(saved_.has_lease(task("1"))) << letter;
    dies(letter);
    if (*letter == 'B') expect_explained("2.12", "*task 1 seems to kill its pilots: 2 have died*");
    after(2min);
    forget_what_was_asked();
  }
  expect_ended("1", Failure::SetAside);
  comes("D");
  for (int i = 0; i < 40 && !engine_->tasks().arrays().empty(); ++i) {
    after(1s);
    for (const auto& [id, lease] :
         std::map(engine_->pilots().leases().begin(), engine_->pilots().leases().end()))
      ends(to_string(id));
  }
  forget_what_was_asked();
  for (int i = 1; i <= 12; ++i)
    EXPECT_EQ(saved_.outcome({ArrayId{2}, static_cast<std::uint32_t>(i)})->failure, Failure::Ok);
}

TEST_F(SuspectsTest, SuspicionSurvivesARestart) {
  submit(New().array(1, 2));
  comes("A");
  dies("A");
  after(5s);
  restarts();
  forget_what_was_asked();
  comes("B");
  expect({"welcome B0", "lease 1.1 again (2) to B0"});
}

TEST_F(SuspectsTest, OneThatEndsByItselfIsCleared) {
  submit(New().array(1, 2).may_fail(2));
  comes("A");
  dies("A");
  after(5s);
  EXPECT_EQ(deaths("1.1"), 1U);
  comes("B");
  ends("1.1", Failure::ToolFailed);
  EXPECT_EQ(deaths("1.1"), 0U);
  EXPECT_EQ(deaths("1.2"), 1U);
  restarts();
  EXPECT_EQ(deaths("1.1"), 0U);
  EXPECT_EQ(deaths("1.2"), 1U);
  registers("B0", 1h, {held("1.1")});
  ends("1.1");
  ends("1.2");
  EXPECT_TRUE(engine_->tasks().arrays().empty());
  forget_what_was_asked();
}

TEST_F(SuspectsTest, OneThatHasEndedIsNoneAfterARestart) {
  submit(New().array(1, 2));
  for (const char* letter : {"A", "B"}) {
    comes(letter);
    dies(letter);
    after(2min);
  }
  comes("C");
  const char* tried = saved_.has_lease(task("1.1")) ? "1.1" : "1.2";
  ends(tried);
  forget_what_was_asked();
  restarts();
  EXPECT_EQ(deaths(tried), 0U);
  EXPECT_EQ(engine_->tasks().history(task(tried)), nullptr);
}

TEST_F(SuspectsTest, ASuspectWaitsForAPilotWithoutDearTasksButNotForEver) {
  submit(New().array(1, 8).time(50min));
  accepts("A");
  accepts("B");
  registers("A0");
  registers("B0");
  starts("1.1-8");
  after(2min);
  ends("1.5");
  dies("A");
  EXPECT_FALSE(saved_.has_lease(task("1.1"))) << "others have run for two minutes at B0";
  after(4min);
  EXPECT_FALSE(saved_.has_lease(task("1.1")));
  after(65s);
  EXPECT_TRUE(saved_.has_lease(task("1.1")));
  forget_what_was_asked();
}

TEST_F(SuspectsTest, WhatRanBesideASuspectForAMomentMayHaveBeenIt) {
  given({site_of("here", {cpu_shape()})});
  submit(New());
  comes("A");
  starts("1");
  dies("A");
  after(5s);
  submit(New().array(1, 2).urgency(1));
  forget_what_was_asked();
  comes("B");
  expect({"welcome B0", "lease 2.1-2 to B0", "lease 1 again (2) to B0"});
  starts("2.1-2");
  starts("1");
  dies("B");
  EXPECT_EQ(saved_.failed_attempts().size(), 4U) << "all three are blamed, and none for itself";
  for (const SaveFailedAttempt& failed : saved_.failed_attempts())
    EXPECT_TRUE(failed.unexplained) << to_string(failed.attempt.task);
  after(5s);
  forget_what_was_asked();
  // The third time decides: nothing may be beside it that could have been it.
  submit(New().array(1, 2).urgency(2));
  forget_what_was_asked();
  comes("C");
  expect({"welcome C0", "lease 3.1-2 to C0", "lease 2.1 again (2) to C0"});
  starts("3.1-2");
  starts("2.1");
  ends("2.1");
  forget_what_was_asked();
  ends("2.2");
  forget_what_was_asked();
  EXPECT_FALSE(saved_.has_lease(task("1")));
  ends("3.1-2");
  EXPECT_TRUE(saved_.has_lease(task("1")));
  dies("C");
  after(1s);
  forget_what_was_asked();
  expect_ended("1", Failure::SetAside);
}

}  // namespace
}  // namespace hpcbatch
