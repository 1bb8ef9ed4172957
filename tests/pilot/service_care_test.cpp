// When a service is started, trusted, renewed and given up.
#include "pilot/policy/service_care.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

AttemptId id_of(unsigned number) {
  return {number, 0, 1, number};
}

std::string words_of(const ServiceCare::Action& action) {
  struct {
    std::string operator()(const ServiceCare::Start&) const { return "start"; }
    std::string operator()(const ServiceCare::Ask& a) const {
      return "ask " + std::to_string(a.id.array);
    }
    std::string operator()(const ServiceCare::End&) const { return "end"; }
    std::string operator()(const ServiceCare::Plain& a) const {
      return "plain " + std::to_string(a.id.array);
    }
    std::string operator()(const ServiceCare::HandBack& a) const {
      return "back " + std::to_string(a.id.array);
    }
  } visitor;
  return std::visit(visitor, action);
}

class ServiceCareTest : public testing::Test {
 protected:
  void expect(const std::string& wanted) {
    std::string said;
    why_.clear();
    for (const auto& action : care_.decide(now_)) {
      said += (said.empty() ? "" : "; ") + words_of(action);
      if (const auto* plain = std::get_if<ServiceCare::Plain>(&action)) why_ = plain->why;
    }
    EXPECT_EQ(said, wanted);
  }
  void given_ready() {
    care_.wanted(id_of(1));
    expect("start");
    care_.ready(now_);
    expect("ask 1");
    care_.served(now_);
    expect("");
  }
  void pass(Duration time) { now_ += time; }

  Time now_{std::chrono::hours{1}};
  ServiceCare care_{{.name = "s", .memory = 1000, .idle = 60s, .requests = 3}};
  std::string why_;
};

TEST_F(ServiceCareTest, StartsOnFirstNeedAndServesOneAfterAnother) {
  expect("");
  care_.wanted(id_of(1));
  care_.wanted(id_of(2));
  expect("start");
  expect("");
  care_.ready(now_);
  expect("ask 1");
  expect("");
  care_.served(now_);
  expect("ask 2");
}

TEST_F(ServiceCareTest, EndsWhenNobodyHasWantedItForAWhile) {
  given_ready();
  EXPECT_EQ(care_.next(), now_ + 60s);
  pass(60s);
  expect("end");
  EXPECT_TRUE(care_.is_forgettable(now_));
  care_.wanted(id_of(2));
  expect("start");
}

TEST_F(ServiceCareTest, IsRenewedAfterSoManyRequests) {
  given_ready();
  for (unsigned n : {2U, 3U}) {
    care_.wanted(id_of(n));
    expect("ask " + std::to_string(n));
    care_.served(now_);
  }
  care_.wanted(id_of(4));
  expect("end; start");
  care_.ready(now_);
  expect("ask 4");
}

TEST_F(ServiceCareTest, IsRenewedBetweenRequestsWhenItHasGrown) {
  given_ready();
  care_.uses(1000, now_);
  expect("");
  care_.uses(1001, now_);
  care_.wanted(id_of(2));
  expect("end; start");
  care_.ready(now_);
  expect("ask 2");
}

TEST_F(ServiceCareTest, GrowingOverARequestIsAFailure) {
  given_ready();
  care_.wanted(id_of(2));
  expect("ask 2");
  care_.uses(2000, now_);
  expect("end; start");
  care_.ready(now_);
  expect("ask 2");
  care_.uses(2000, now_);
  expect("end; plain 2");
  EXPECT_NE(why_.find("2.0 KiB"), std::string::npos) << why_;
}

TEST_F(ServiceCareTest, ADeathCostsOneMoreTry) {
  given_ready();
  care_.wanted(id_of(2));
  care_.wanted(id_of(3));
  expect("ask 2");
  care_.died("it ended with exit code 1", now_);
  expect("start");
  care_.ready(now_);
  expect("ask 2");
  care_.died("it ended with exit code 1", now_);
  expect("plain 2; start");
  EXPECT_EQ(why_, "it ended with exit code 1");
  care_.ready(now_);
  expect("ask 3");
  care_.served(now_);
  expect("");
}

TEST_F(ServiceCareTest, AHangIsADeath) {
  given_ready();
  care_.wanted(id_of(2));
  expect("ask 2");
  pass(19s);
  expect("");
  pass(1s);
  expect("end; start");
  care_.ready(now_);
  expect("ask 2");
}

TEST_F(ServiceCareTest, OneThatCannotStartIsDoneWithoutForAWhile) {
  care_.wanted(id_of(1));
  care_.wanted(id_of(2));
  expect("start");
  care_.died("it ended with exit code 1 (No module named x)", now_);
  expect("plain 1; plain 2");
  EXPECT_NE(why_.find("No module named x"), std::string::npos);
  EXPECT_NE(why_.find("before it was ready"), std::string::npos);
  care_.wanted(id_of(3));
  expect("plain 3");
  EXPECT_FALSE(care_.is_forgettable(now_));
  pass(10s);
  care_.wanted(id_of(4));
  expect("start");
  // And then for longer.
  care_.not_started("no such program", now_);
  expect("plain 4");
  pass(19s);
  care_.wanted(id_of(5));
  expect("plain 5");
  pass(1s);
  EXPECT_TRUE(care_.is_forgettable(now_));
  care_.wanted(id_of(6));
  expect("start");
  care_.ready(now_);
  expect("ask 6");
}

TEST_F(ServiceCareTest, OneThatIsNeverReadyIsGivenUp) {
  care_.wanted(id_of(1));
  expect("start");
  pass(119s);
  expect("back 1");
  pass(1s);
  expect("end");
  care_.wanted(id_of(2));
  expect("plain 2");
  EXPECT_EQ(why_, "it was not ready after 120 s");
}

TEST_F(ServiceCareTest, AStartThatTakesLongHoldsUpNobody) {
  care_.wanted(id_of(1));
  expect("start");
  EXPECT_EQ(care_.next(), now_ + 2s);
  pass(1s);
  care_.wanted(id_of(2));
  expect("");
  EXPECT_FALSE(care_.takes_long());
  pass(1s);
  expect("back 1; back 2");
  EXPECT_TRUE(care_.takes_long());
  EXPECT_TRUE(care_.is_awaited());
  care_.wanted(id_of(3));
  expect("back 3");
  pass(30s);
  care_.ready(now_);
  EXPECT_FALSE(care_.takes_long());
  EXPECT_FALSE(care_.is_awaited());
  care_.wanted(id_of(3));
  expect("ask 3");
}

TEST_F(ServiceCareTest, WhatHasSeenItFailWaitsHereAndIsCounted) {
  given_ready();
  care_.wanted(id_of(2));
  care_.wanted(id_of(3));
  expect("ask 2");
  care_.died("it ended", now_);
  expect("start");
  pass(2s);
  expect("back 3");
  care_.ready(now_);
  expect("ask 2");
  care_.died("it ended", now_);
  expect("plain 2");
}

TEST_F(ServiceCareTest, SignsOfLifeGiveItTime) {
  care_.wanted(id_of(1));
  expect("start");
  pass(2s);
  expect("back 1");
  for (int i = 0; i < 10; ++i) {
    pass(100s);
    care_.lives(now_);
    expect("");
  }
  EXPECT_EQ(care_.next(), now_ + 120s);
  pass(120s);
  expect("end");
}

TEST_F(ServiceCareTest, SignsOfLifeGiveItNotAllTheTimeOfTheWorld) {
  care_.wanted(id_of(1));
  expect("start");
  for (int i = 0; i < 19; ++i) {
    pass(60s);
    care_.lives(now_);
    expect(i == 0 ? "back 1" : "");
  }
  pass(60s);
  care_.lives(now_);
  expect("end");
}

TEST_F(ServiceCareTest, WhatItTookBeforeItMayTakeThreeTimes) {
  care_.wanted(id_of(1));
  expect("start");
  pass(100s);
  expect("back 1");
  care_.ready(now_);
  EXPECT_EQ(care_.longest_start(), 100s);
  pass(60s);
  expect("end");
  care_.wanted(id_of(2));
  expect("start");
  pass(299s);
  expect("back 2");
  pass(1s);
  expect("end");
  // And what it was given in vain it may take longer the next time.
  pass(10s);
  care_.wanted(id_of(3));
  expect("start");
  pass(899s);
  expect("back 3");
  pass(1s);
  expect("end");
}

TEST_F(ServiceCareTest, ASiteOrATaskMaySayHowLongItMayBeSilent) {
  ServiceCare patient{{.name = "s", .start = 600s}};
  patient.wanted(id_of(1));
  patient.decide(now_);
  patient.decide(now_ + 2s);
  EXPECT_EQ(patient.next(), now_ + 600s);
}

TEST_F(ServiceCareTest, OneThatHasToWaitForAnothersImportIsGivenItsTimeAfterwards) {
  care_.wanted(id_of(1));
  expect("start");
  for (int i = 0; i < 400; ++i) {
    care_.not_yet(now_);
    EXPECT_LE(*care_.next(), now_ + 500ms);
    pass(500ms);
    expect(i == 3 ? "start; back 1" : "start");
    EXPECT_TRUE(care_.may_wait_for_turn(now_));
  }
  pass(100s);
  EXPECT_FALSE(care_.may_wait_for_turn(now_));
  pass(19s);
  expect("");
  pass(1s);
  expect("end");
}

TEST_F(ServiceCareTest, WhatIsForeseenStartsItAndKeepsIt) {
  care_.foreseen(id_of(1));
  expect("start");
  care_.ready(now_);
  expect("");
  EXPECT_EQ(care_.next(), std::nullopt);
  pass(600s);
  expect("");
  care_.foreseen_no_more(id_of(1), now_);
  EXPECT_EQ(care_.next(), now_ + 60s);
  pass(60s);
  expect("end");
  EXPECT_TRUE(care_.is_forgettable(now_));
}

TEST_F(ServiceCareTest, WhatIsForeseenDoesNotBringBackWhatCannotStartAtOnceNorWhatHadToGo) {
  care_.foreseen(id_of(1));
  expect("start");
  care_.died("it ended", now_);
  expect("");
  EXPECT_EQ(care_.next(), now_ + 10s);
  EXPECT_FALSE(care_.is_forgettable(now_));
  pass(10s);
  expect("start");
  care_.ready(now_);
  expect("");
  care_.end_asked();
  expect("end");
  expect("");
  EXPECT_TRUE(care_.is_down());
}

TEST_F(ServiceCareTest, OneThatFailsWhateverItIsAskedIsGivenUp) {
  given_ready();
  care_.wanted(id_of(2));
  care_.wanted(id_of(3));
  care_.wanted(id_of(4));
  expect("ask 2");
  care_.unserved("it cannot fork", now_);
  expect("ask 2");
  care_.unserved("it cannot fork", now_);
  expect("plain 2; ask 3");
  care_.unserved("it cannot fork", now_);
  expect("end; plain 3; plain 4");
}

TEST_F(ServiceCareTest, OneThatStartsItselfAnewStillHasItsRequest) {
  given_ready();
  care_.wanted(id_of(2));
  expect("ask 2");
  care_.renewing(now_);
  pass(60s);
  expect("");
  care_.ready(now_);
  pass(19s);
  expect("");
  care_.served(now_);
  expect("");
}

TEST_F(ServiceCareTest, WhatIsForgottenIsNotAskedForAgain) {
  given_ready();
  care_.wanted(id_of(2));
  care_.wanted(id_of(3));
  expect("ask 2");
  care_.forget(id_of(3));
  care_.forget(id_of(2));
  care_.died("it ended", now_);
  expect("");
  EXPECT_TRUE(care_.is_down());
}

}  // namespace
}  // namespace hpcbatch::pilot
