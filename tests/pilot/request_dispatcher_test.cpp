// Which worker is handed which requests, and what becomes of requests whose worker died.
#include "pilot/answering/request_dispatcher.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

std::string said_of(const RequestDispatcher::Action& action) {
  struct {
    std::string operator()(const RequestDispatcher::StartWorker& a) const {
      return "start " + std::to_string(a.worker) + (a.devices.empty() ? "" : " on " + a.devices);
    }
    std::string operator()(const RequestDispatcher::HandOver& a) const {
      std::string text = "hand " + std::to_string(a.worker);
      for (const auto request : a.requests)
        text += (text.ends_with(' ') ? "" : " ") + std::to_string(request);
      return text;
    }
    std::string operator()(const RequestDispatcher::Cancel& a) const {
      return "cancel " + std::to_string(a.worker) + " " + std::to_string(a.request);
    }
    std::string operator()(const RequestDispatcher::EndWorker& a) const {
      return "end " + std::to_string(a.worker);
    }
    std::string operator()(const RequestDispatcher::Plain& a) const {
      return "plain " + std::to_string(a.request);
    }
    std::string operator()(const RequestDispatcher::Fail& a) const {
      return "fail " + std::to_string(a.request);
    }
    std::string operator()(const RequestDispatcher::Tell& a) const {
      return "tell " + std::to_string(a.request);
    }
    std::string operator()(const RequestDispatcher::Ready&) const { return "ready"; }
    std::string operator()(const RequestDispatcher::GiveUp&) const { return "give up"; }
  } visitor;
  return std::visit(visitor, action);
}

class RequestDispatcherTest : public testing::Test {
 protected:
  void begin(DispatchTerms terms) {
    if (terms.start == Duration{}) terms.start = 120s;
    dispatcher_.emplace(terms, now_);
  }
  /// With its first worker ready.
  void begin_ready(const DispatchTerms& terms) {
    begin(terms);
    expect("start 1");
    dispatcher_->ready(1, now_);
    expect("ready");
  }
  void expect(const std::string& wanted) {
    std::string said;
    for (const auto& action : dispatcher_->decide(now_))
      said += (said.empty() ? "" : "; ") + said_of(action);
    EXPECT_EQ(said, wanted);
  }
  void want(std::initializer_list<RequestDispatcher::Request> requests,
            const std::string& devices = "") {
    for (const auto request : requests) dispatcher_->wanted(request, devices);
  }

  Time now_{1000s};
  std::optional<RequestDispatcher> dispatcher_;
};

TEST_F(RequestDispatcherTest, EachRequestHasAWorkerOfItsOwn) {
  begin_ready({});
  want({1, 2});
  expect("hand 1 1; start 2");
  dispatcher_->ready(2, now_);
  expect("hand 2 2");
  dispatcher_->answered(1, 1, now_);
  want({3});
  expect("hand 1 3");
  EXPECT_TRUE(dispatcher_->is_busy());
  dispatcher_->answered(1, 3, now_);
  dispatcher_->answered(2, 2, now_);
  expect("");
  EXPECT_FALSE(dispatcher_->is_busy());
}

TEST_F(RequestDispatcherTest, WhatWaitsIsHandedOverTogether) {
  begin_ready({.batch = 3, .instances = 1});
  want({1, 2, 3, 4});
  expect("hand 1 1 2 3");
  want({5});
  for (const auto request : {3U, 1U, 2U}) {
    expect("");
    dispatcher_->answered(1, request, now_);
  }
  expect("hand 1 4 5");
}

TEST_F(RequestDispatcherTest, WhoseFaultItWasIsFoundOutAlone) {
  begin_ready({.batch = 4, .instances = 1});
  want({1, 2, 3});
  expect("hand 1 1 2 3");
  dispatcher_->answered(1, 1, now_);
  dispatcher_->died(1, "it was ended by SIGSEGV", now_);
  expect("tell 3; tell 2; start 2");
  RequestDispatcher::Worker worker = 2;
  dispatcher_->ready(worker, now_);
  expect("hand 2 2");
  dispatcher_->answered(worker, 2, now_);
  expect("hand 2 3");
  for (int death = 0; death < 2; ++death) {
    dispatcher_->died(worker, "it was ended by SIGSEGV", now_);
    ++worker;
    expect("tell 3; start " + std::to_string(worker));
    dispatcher_->ready(worker, now_);
    expect("hand " + std::to_string(worker) + " 3");
  }
  want({4});
  dispatcher_->died(worker, "it was ended by SIGSEGV", now_);
  expect("fail 3; start " + std::to_string(worker + 1));
}

TEST_F(RequestDispatcherTest, ARequestThatIsCancelledCostsItsWorkerOnlyWhereThatGoesOn) {
  begin_ready({.instances = 1});
  want({1, 2});
  expect("hand 1 1");
  dispatcher_->cancelled(1, now_);
  expect("cancel 1 1");
  now_ += 9s;
  dispatcher_->answered(1, 1, now_);
  expect("hand 1 2");
  dispatcher_->cancelled(2, now_);
  want({3});
  expect("cancel 1 2");
  now_ += 9s;
  dispatcher_->heard(1, now_);
  now_ += 9s;
  expect("");
  now_ += 2s;
  expect("end 1; start 2");
  dispatcher_->ready(2, now_);
  expect("hand 2 3");
}

TEST_F(RequestDispatcherTest, AWorkerOfAnotherDeviceIsNoHelp) {
  begin({.instances = 1, .waits_for_devices = true});
  expect("ready");
  want({1, 2}, "gpu0");
  want({3}, "gpu1");
  expect("start 1 on gpu0; start 2 on gpu1");
  dispatcher_->ready(2, now_);
  expect("hand 2 3");
  dispatcher_->ready(1, now_);
  expect("hand 1 1");
}

TEST_F(RequestDispatcherTest, WhereNoWorkerCanBeHadRequestsRunWithoutOne) {
  begin({});
  want({1});
  expect("start 1");
  dispatcher_->died(1, "it ended with exit code 1", now_);
  expect("plain 1; give up");
}

TEST_F(RequestDispatcherTest, OneThatWasReadyOnceIsStartedMoreThanOnce) {
  begin_ready({});
  want({1});
  expect("hand 1 1");
  dispatcher_->died(1, "it ended", now_);
  expect("tell 1; start 2");
  dispatcher_->not_started(2, "no memory", now_);
  expect("");
  now_ += 1s;
  expect("start 3");
  dispatcher_->not_started(3, "no memory", now_);
  now_ += 1s;
  expect("start 4");
  dispatcher_->not_started(4, "no memory", now_);
  expect("plain 1; give up");
}

TEST_F(RequestDispatcherTest, MemoryIsOfTheRequestThatIsThere) {
  begin_ready({.memory = 1000});
  dispatcher_->uses(1, 1001, now_);
  expect("end 1");
  want({1});
  expect("start 2");
  dispatcher_->ready(2, now_);
  expect("hand 2 1");
  dispatcher_->uses(2, 1001, now_);
  expect("end 2; tell 1; start 3");
}

TEST_F(RequestDispatcherTest, WhatARequestWasGrantedItsWorkerMayUseMeanwhile) {
  begin_ready({.memory = 1000});
  dispatcher_->wanted(1, "", 5000);
  expect("hand 1 1");
  dispatcher_->uses(1, 5000, now_);
  expect("");
  dispatcher_->answered(1, 1, now_);
  dispatcher_->uses(1, 5000, now_);
  expect("end 1");
}

TEST_F(RequestDispatcherTest, IdleWorkersGoButForOne) {
  begin_ready({.idle = 60s});
  want({1, 2, 3});
  expect("hand 1 1; start 2; start 3");
  for (const RequestDispatcher::Worker worker : {2U, 3U}) dispatcher_->ready(worker, now_);
  expect("hand 2 2; hand 3 3");
  for (const auto one : {1U, 2U, 3U}) dispatcher_->answered(one, one, now_);
  expect("");
  ASSERT_TRUE(dispatcher_->next());
  now_ = *dispatcher_->next();
  expect("end 1; end 2");
  EXPECT_FALSE(dispatcher_->next());
}

TEST_F(RequestDispatcherTest, OneThatSaysNothingWhileItStartsIsEnded) {
  begin({.start = 10s});
  want({1});
  expect("start 1");
  now_ += 9s;
  dispatcher_->lives(1, now_);
  now_ += 9s;
  expect("");
  now_ += 1s;
  expect("end 1; plain 1; give up");
}

TEST_F(RequestDispatcherTest, WhatHasChangedIsLoadedAnewBeforeTheNextRequest) {
  begin_ready({.batch = 2});
  want({1, 2});
  expect("hand 1 1 2");
  dispatcher_->renews(1, now_);
  expect("end 1; start 2");
  dispatcher_->ready(2, now_);
  expect("hand 2 1 2");
}

}  // namespace
}  // namespace hpcbatch::pilot
