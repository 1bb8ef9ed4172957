// Calls that hang cost their own time, not that of those that wait behind them.
#include "loop/lane.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

class CallLaneTest : public testing::Test {
 protected:
  CallLane::Work hang() {
    return [release = release_](Deadline) { release.wait(); };
  }
  void call(std::chrono::milliseconds limit, const std::string& name, CallLane::Work work) {
    lane_.call(
        limit, [work = std::move(work)] { return work; },
        [this, name](bool given_up) {
          answers_.push_back(name + (given_up ? " given up" : " done"));
        });
  }
  void run_until_answered(std::size_t answers) {
    const auto latest = std::chrono::steady_clock::now() + 60s;
    loop_.restart();
    while (answers_.size() < answers && std::chrono::steady_clock::now() < latest)
      loop_.run_one_until(latest);
    ASSERT_EQ(answers_.size(), answers);
  }
  void TearDown() override {
    let_go_.set_value();
    loop_.restart();
    loop_.run_for(50ms);
  }

  std::promise<void> let_go_;
  std::shared_future<void> release_{let_go_.get_future()};
  asio::io_context loop_;
  int renewed_{0};
  bool can_renew_{true};
  CallLane lane_{loop_, 10ms, [this] {
                   renewed_ += can_renew_ ? 1 : 0;
                   return can_renew_;
                 }};
  std::vector<std::string> answers_;
};

TEST_F(CallLaneTest, ACallThatHangsIsGivenUpAndThoseBehindItRun) {
  Deadline began{};
  call(30ms, "first", hang());
  call(20s, "second", [&](Deadline deadline) { began = deadline - 20s; });
  call(5s, "third", [](Deadline) {});
  const auto asked = std::chrono::steady_clock::now();
  run_until_answered(3);
  EXPECT_EQ(answers_, (std::vector<std::string>{"first given up", "second done", "third done"}));
  EXPECT_EQ(renewed_, 1);
  EXPECT_GE(began, asked + 30ms) << "its time counts from its own beginning";
  EXPECT_FALSE(lane_.is_busy());
}

TEST_F(CallLaneTest, WhatCannotBeRenewedIsTriedAgainWithTheNextCall) {
  can_renew_ = false;
  call(5ms, "first", hang());
  call(5ms, "second", [](Deadline) {});
  run_until_answered(1);
  can_renew_ = true;
  run_until_answered(2);
  call(10s, "third", [](Deadline) {});
  run_until_answered(3);
  EXPECT_EQ(answers_,
            (std::vector<std::string>{"first given up", "second given up", "third done"}));
  EXPECT_EQ(renewed_, 1);
}

TEST_F(CallLaneTest, ThreadsThatHangAreNotMadeWithoutEnd) {
  for (std::size_t i = 0; i < CallLane::kMostLeftBehind + 3; ++i) call(1ms, "hanging", hang());
  run_until_answered(CallLane::kMostLeftBehind + 3);
  EXPECT_EQ(renewed_, static_cast<int>(CallLane::kMostLeftBehind));
  EXPECT_FALSE(lane_.is_busy());
}

}  // namespace
}  // namespace hpcbatch
