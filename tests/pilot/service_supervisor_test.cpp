// When a service is started, trusted, renewed and given up.
#include "pilot/policy/service_supervisor.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

AttemptId id_of(unsigned number) {
  return {number, 0, 1, number};
}

std::string words_of(const ServiceSupervisor::Action& action) {
  struct {
    std::string operator()(const ServiceSupervisor::Start&) const { return "start"; }
    std::string operator()(const ServiceSupervisor::Ask& a) const {
      return "ask " + std::to_string(a.id.array);
    }
    std::string operator()(const ServiceSupervisor::End&) const { return "end"; }
    std::string operator()(const ServiceSupervisor::Plain& a) const {
      return "plain " + std::to_string(a.id.array);
    }
    std::string operator()(const ServiceSupervisor::HandBack& a) const {
      return "back " + std::to_string(a.id.array);
    }
  } visitor;
  return std::visit(visitor, action);
}

class ServiceSupervisorTest : public testing::Test {
 protected:
  void expect(const std::string& wanted) {
    std::string said;
    why_.clear();
    for (const auto& action : supervisor_.decide(now_)) {
      said += (said.empty() ? "" : "; ") + words_of(action);
      if (const auto* plain = std::get_if<ServiceSupervisor::Plain>(&action)) why_ = plain->why;
    }
    EXPECT_EQ(said, wanted);
  }
  void given_ready() {
    supervisor_.wanted(id_of(1));
    expect("start");
    supervisor_.ready(now_);
    expect("ask 1");
    supervisor_.served(now_);
    expect("");
  }
  void pass(Duration time) { now_ += time; }

  Time now_{std::chrono::hours{1}};
  ServiceSupervisor supervisor_{{.name = "s", .memory = 1000, .idle = 60s, .requests = 3}};
  std::string why_;
};

TEST_F(ServiceSupervisorTest, StartsOnFirstNeedAndServesOneAfterAnother) {
  expect("");
  supervisor_.wanted(id_of(1));
  supervisor_.wanted(id_of(2));
  expect("start");
  expect("");
  supervisor_.ready(now_);
  expect("ask 1");
  expect("");
  supervisor_.served(now_);
  expect("ask 2");
}

TEST_F(ServiceSupervisorTest, EndsWhenNobodyHasWantedItForAWhile) {
  given_ready();
  EXPECT_EQ(supervisor_.next(), now_ + 60s);
  pass(60s);
  expect("end");
  EXPECT_TRUE(supervisor_.is_forgettable(now_));
  supervisor_.wanted(id_of(2));
  expect("start");
}

TEST_F(ServiceSupervisorTest, IsRenewedAfterSoManyRequests) {
  given_ready();
  for (unsigned n : {2U, 3U}) {
    supervisor_.wanted(id_of(n));
    expect("ask " + std::to_string(n));
    supervisor_.served(now_);
  }
  supervisor_.wanted(id_of(4));
  expect("end; start");
  supervisor_.ready(now_);
  expect("ask 4");
}

TEST_F(ServiceSupervisorTest, IsRenewedBetweenRequestsWhenItHasGrown) {
  given_ready();
  supervisor_.uses(1000, now_);
  expect("");
  supervisor_.uses(1001, now_);
  supervisor_.wanted(id_of(2));
  expect("end; start");
  supervisor_.ready(now_);
  expect("ask 2");
}

TEST_F(ServiceSupervisorTest, GrowingOverARequestIsAFailure) {
  given_ready();
  supervisor_.wanted(id_of(2));
  expect("ask 2");
  supervisor_.uses(2000, now_);
  expect("end; start");
  supervisor_.ready(now_);
  expect("ask 2");
  supervisor_.uses(2000, now_);
  expect("end; plain 2");
  EXPECT_NE(why_.find("2.0 KiB"), std::string::npos) << why_;
}

TEST_F(ServiceSupervisorTest, ADeathCostsOneMoreTry) {
  given_ready();
  supervisor_.wanted(id_of(2));
  supervisor_.wanted(id_of(3));
  expect("ask 2");
  supervisor_.died("it ended with exit code 1", now_);
  expect("start");
  supervisor_.ready(now_);
  expect("ask 2");
  supervisor_.died("it ended with exit code 1", now_);
  expect("plain 2; start");
  EXPECT_EQ(why_, "it ended with exit code 1");
  supervisor_.ready(now_);
  expect("ask 3");
  supervisor_.served(now_);
  expect("");
}

TEST_F(ServiceSupervisorTest, AHangIsADeath) {
  given_ready();
  supervisor_.wanted(id_of(2));
  expect("ask 2");
  pass(19s);
  expect("");
  pass(1s);
  expect("end; start");
  supervisor_.ready(now_);
  expect("ask 2");
}

TEST_F(ServiceSupervisorTest, OneThatCannotStartIsDoneWithoutForAWhile) {
  supervisor_.wanted(id_of(1));
  supervisor_.wanted(id_of(2));
  expect("start");
  supervisor_.died("it ended with exit code 1 (No module named x)", now_);
  expect("plain 1; plain 2");
  EXPECT_NE(why_.find("No module named x"), std::string::npos);
  EXPECT_NE(why_.find("before it was ready"), std::string::npos);
  supervisor_.wanted(id_of(3));
  expect("plain 3");
  EXPECT_FALSE(supervisor_.is_forgettable(now_));
  pass(10s);
  supervisor_.wanted(id_of(4));
  expect("start");
  // And then for longer.
  supervisor_.not_started("no such program", now_);
  expect("plain 4");
  pass(19s);
  supervisor_.wanted(id_of(5));
  expect("plain 5");
  pass(1s);
  EXPECT_TRUE(supervisor_.is_forgettable(now_));
  supervisor_.wanted(id_of(6));
  expect("start");
  supervisor_.ready(now_);
  expect("ask 6");
}

TEST_F(ServiceSupervisorTest, OneThatIsNeverReadyIsGivenUp) {
  supervisor_.wanted(id_of(1));
  expect("start");
  pass(119s);
  expect("back 1");
  pass(1s);
  expect("end");
  supervisor_.wanted(id_of(2));
  expect("plain 2");
  EXPECT_EQ(why_, "it was not ready after 120 s");
}

TEST_F(ServiceSupervisorTest, AStartThatTakesLongHoldsUpNobody) {
  supervisor_.wanted(id_of(1));
  expect("start");
  EXPECT_EQ(supervisor_.next(), now_ + 2s);
  pass(1s);
  supervisor_.wanted(id_of(2));
  expect("");
  EXPECT_FALSE(supervisor_.takes_long());
  pass(1s);
  expect("back 1; back 2");
  EXPECT_TRUE(supervisor_.takes_long());
  EXPECT_TRUE(supervisor_.is_awaited());
  supervisor_.wanted(id_of(3));
  expect("back 3");
  pass(30s);
  supervisor_.ready(now_);
  EXPECT_FALSE(supervisor_.takes_long());
  EXPECT_FALSE(supervisor_.is_awaited());
  supervisor_.wanted(id_of(3));
  expect("ask 3");
}

TEST_F(ServiceSupervisorTest, WhatHasSeenItFailWaitsHereAndIsCounted) {
  given_ready();
  supervisor_.wanted(id_of(2));
  supervisor_.wanted(id_of(3));
  expect("ask 2");
  supervisor_.died("it ended", now_);
  expect("start");
  pass(2s);
  expect("back 3");
  supervisor_.ready(now_);
  expect("ask 2");
  supervisor_.died("it ended", now_);
  expect("plain 2");
}

TEST_F(ServiceSupervisorTest, SignsOfLifeGiveItTime) {
  supervisor_.wanted(id_of(1));
  expect("start");
  pass(2s);
  expect("back 1");
  for (int i = 0; i < 10; ++i) {
    pass(100s);
    supervisor_.lives(now_);
    expect("");
  }
  EXPECT_EQ(supervisor_.next(), now_ + 120s);
  pass(120s);
  expect("end");
}

TEST_F(ServiceSupervisorTest, SignsOfLifeGiveItNotAllTheTimeOfTheWorld) {
  supervisor_.wanted(id_of(1));
  expect("start");
  for (int i = 0; i < 19; ++i) {
    pass(60s);
    supervisor_.lives(now_);
    expect(i == 0 ? "back 1" : "");
  }
  pass(60s);
  supervisor_.lives(now_);
  expect("end");
}

TEST_F(ServiceSupervisorTest, WhatItTookBeforeItMayTakeThreeTimes) {
  supervisor_.wanted(id_of(1));
  expect("start");
  pass(100s);
  expect("back 1");
  supervisor_.ready(now_);
  EXPECT_EQ(supervisor_.longest_start(), 100s);
  pass(60s);
  expect("end");
  supervisor_.wanted(id_of(2));
  expect("start");
  pass(299s);
  expect("back 2");
  pass(1s);
  expect("end");
  // And what it was given in vain it may take longer the next time.
  pass(10s);
  supervisor_.wanted(id_of(3));
  expect("start");
  pass(899s);
  expect("back 3");
  pass(1s);
  expect("end");
}

TEST_F(ServiceSupervisorTest, ASiteOrATaskMaySayHowLongItMayBeSilent) {
  ServiceSupervisor patient{{.name = "s", .start = 600s}};
  patient.wanted(id_of(1));
  patient.decide(now_);
  patient.decide(now_ + 2s);
  EXPECT_EQ(patient.next(), now_ + 600s);
}

TEST_F(ServiceSupervisorTest, OneThatHasToWaitForAnothersImportIsGivenItsTimeAfterwards) {
  supervisor_.wanted(id_of(1));
  expect("start");
  for (int i = 0; i < 400; ++i) {
    supervisor_.not_yet(now_);
    EXPECT_LE(*supervisor_.next(), now_ + 500ms);
    pass(500ms);
    expect(i == 3 ? "start; back 1" : "start");
    EXPECT_TRUE(supervisor_.may_wait_for_turn(now_));
  }
  pass(100s);
  EXPECT_FALSE(supervisor_.may_wait_for_turn(now_));
  pass(19s);
  expect("");
  pass(1s);
  expect("end");
}

TEST_F(ServiceSupervisorTest, WhatIsForeseenStartsItAndKeepsIt) {
  supervisor_.foreseen(id_of(1));
  expect("start");
  supervisor_.ready(now_);
  expect("");
  EXPECT_EQ(supervisor_.next(), std::nullopt);
  pass(600s);
  expect("");
  supervisor_.foreseen_no_more(id_of(1), now_);
  EXPECT_EQ(supervisor_.next(), now_ + 60s);
  pass(60s);
  expect("end");
  EXPECT_TRUE(supervisor_.is_forgettable(now_));
}

TEST_F(ServiceSupervisorTest, WhatIsForeseenDoesNotBringBackWhatCannotStartAtOnceNorWhatHadToGo) {
  supervisor_.foreseen(id_of(1));
  expect("start");
  supervisor_.died("it ended", now_);
  expect("");
  EXPECT_EQ(supervisor_.next(), now_ + 10s);
  EXPECT_FALSE(supervisor_.is_forgettable(now_));
  pass(10s);
  expect("start");
  supervisor_.ready(now_);
  expect("");
  supervisor_.end_asked();
  expect("end");
  expect("");
  EXPECT_TRUE(supervisor_.is_down());
}

TEST_F(ServiceSupervisorTest, OneThatFailsWhateverItIsAskedIsGivenUp) {
  given_ready();
  supervisor_.wanted(id_of(2));
  supervisor_.wanted(id_of(3));
  supervisor_.wanted(id_of(4));
  expect("ask 2");
  supervisor_.unserved("it cannot fork", now_);
  expect("ask 2");
  supervisor_.unserved("it cannot fork", now_);
  expect("plain 2; ask 3");
  supervisor_.unserved("it cannot fork", now_);
  expect("end; plain 3; plain 4");
}

TEST_F(ServiceSupervisorTest, OneThatStartsItselfAnewStillHasItsRequest) {
  given_ready();
  supervisor_.wanted(id_of(2));
  expect("ask 2");
  supervisor_.renewing(now_);
  pass(60s);
  expect("");
  supervisor_.ready(now_);
  pass(19s);
  expect("");
  supervisor_.served(now_);
  expect("");
}

TEST_F(ServiceSupervisorTest, WhatIsForgottenIsNotAskedForAgain) {
  given_ready();
  supervisor_.wanted(id_of(2));
  supervisor_.wanted(id_of(3));
  expect("ask 2");
  supervisor_.forget(id_of(3));
  supervisor_.forget(id_of(2));
  supervisor_.died("it ended", now_);
  expect("");
  EXPECT_TRUE(supervisor_.is_down());
}

}  // namespace
}  // namespace hpcbatch::pilot
