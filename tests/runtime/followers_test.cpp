// Output reaches each reader once and in order, whatever links do; input goes one piece at a time.
#include "links/followers.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

const TaskId kTask{ArrayId{3}, 4};
const AttemptId kFirst{kTask, 1, 10};
const AttemptId kSecond{kTask, 2, 11};

struct Heard {
  std::string out, err;
  int ended{0};
};

FollowerId follow(Followers& followers, Heard& heard) {
  return followers.add({.task = kTask,
                        .output =
                            [&heard](std::uint32_t stream, const std::string& bytes) {
                              (stream == 2 ? heard.err : heard.out) += bytes;
                            },
                        .ended = [&heard] { ++heard.ended; }});
}

TEST(Followers, PassOnWhatComesTwiceOnce) {
  Followers followers;
  Heard heard;
  follow(followers, heard);
  followers.chunk(kFirst, 1, 0, "hello ");
  followers.chunk(kFirst, 1, 3, "lo world");
  followers.chunk(kFirst, 1, 0, "hello");
  followers.chunk(kFirst, 2, 0, "oops");
  EXPECT_EQ(heard.out, "hello world");
  EXPECT_EQ(heard.err, "oops");
  EXPECT_EQ(followers.seen(kFirst, 1), 11U);
}

TEST(Followers, LeaveAGapToTheLog) {
  Followers followers;
  Heard heard;
  follow(followers, heard);
  followers.chunk(kFirst, 1, 5, "late");
  EXPECT_EQ(heard.out, "");
  EXPECT_EQ(followers.seen(kFirst, 1), 0U);
}

TEST(Followers, BeginAnewWithANewAttempt) {
  Followers followers;
  Heard heard;
  follow(followers, heard);
  followers.chunk(kFirst, 1, 0, "one ");
  followers.chunk(kSecond, 1, 0, "two");
  EXPECT_EQ(heard.out, "one two");
  EXPECT_EQ(followers.seen(kSecond, 1), 3U);
}

TEST(Followers, AreToldOfTheEndOnceAndOnlyWhenTheirTaskIsOver) {
  Followers followers;
  Heard heard;
  follow(followers, heard);
  followers.end(ArrayId{3}, [](TaskId) { return false; });
  EXPECT_EQ(heard.ended, 0);
  followers.end(ArrayId{3}, [](TaskId task) { return task == kTask; });
  followers.end(ArrayId{3}, [](TaskId) { return true; });
  EXPECT_EQ(heard.ended, 1);
  EXPECT_FALSE(followers.any(kTask));
}

TEST(Followers, WhoLeavesHearsNothingMore) {
  Followers followers;
  Heard heard;
  const FollowerId id = follow(followers, heard);
  followers.remove(id);
  followers.chunk(kFirst, 1, 0, "x");
  EXPECT_EQ(heard.out, "");
}

struct InputQueueTest : testing::Test {
  void push(const std::string& bytes, std::optional<std::uint64_t> offset, bool end = false) {
    queue.push(kTask, {bytes, end, offset,
                       [this, bytes](bool taken) { answers += bytes + (taken ? "+ " : "- "); }});
  }
  std::string next() {
    const auto piece = queue.next(kTask);
    return piece ? fmt::format("{}@{}{}", piece->bytes, piece->offset, piece->end ? "." : "") : "";
  }
  InputQueue queue;
  std::string answers;
};

TEST_F(InputQueueTest, SendsAPieceWhenThePilotWantsOne) {
  push("abc", std::nullopt);
  EXPECT_EQ(next(), "") << "nobody asked for it yet";
  queue.wanted(kTask, 0, false);
  EXPECT_EQ(next(), "abc@0");
  push("def", std::nullopt, true);
  EXPECT_EQ(next(), "") << "the first has not been taken";
  EXPECT_EQ(answers, "");
  queue.wanted(kTask, 3, false);
  EXPECT_EQ(answers, "abc+ ");
  EXPECT_EQ(next(), "def@3.");
  queue.wanted(kTask, 6, true);
  EXPECT_EQ(answers, "abc+ def+ ");
}

TEST_F(InputQueueTest, SaysWhenInputIsAskedFor) {
  queue.push(kTask, {"", false, std::nullopt,
                     [this](bool taken) { answers += taken ? "asked " : "never "; }, true});
  EXPECT_EQ(next(), "");
  EXPECT_EQ(answers, "");
  queue.wanted(kTask, 0, false);
  EXPECT_EQ(answers, "asked ");
  EXPECT_EQ(next(), "") << "it is no piece";
  push("abc", 0);
  EXPECT_EQ(next(), "abc@0");
}

TEST_F(InputQueueTest, SaysAtTheEndThatNobodyAsked) {
  queue.push(kTask, {"", false, std::nullopt,
                     [this](bool taken) { answers += taken ? "asked " : "never "; }, true});
  queue.end(kTask.array, [](TaskId) { return true; });
  EXPECT_EQ(answers, "never ");
}

TEST_F(InputQueueTest, SendsAgainWhatANewLinkHasNotBroughtToTheTask) {
  push("abc", 0);
  queue.wanted(kTask, 0, false);
  EXPECT_EQ(next(), "abc@0");
  queue.wanted(kTask, 0, false);
  EXPECT_EQ(next(), "abc@0");
  EXPECT_EQ(answers, "");
}

TEST_F(InputQueueTest, TakesAgainWhatTheTaskWasGivenBefore) {
  queue.wanted(kTask, 6, false);
  push("abc", 0);
  EXPECT_EQ(answers, "abc+ ");
  push("defgh", 3);
  EXPECT_EQ(next(), "defgh@3");
  push("", 8, true);
  queue.wanted(kTask, 8, false);
  EXPECT_EQ(next(), "@8.");
  queue.wanted(kTask, 8, true);
  push("", 8, true);
  EXPECT_EQ(answers, "abc+ defgh+ + + ");
}

TEST_F(InputQueueTest, RefusesAGapAndWhatComesBehindTheEnd) {
  queue.wanted(kTask, 3, false);
  push("xyz", 9);
  EXPECT_EQ(next(), "");
  EXPECT_EQ(answers, "xyz- ");
  queue.wanted(kTask, 3, true);
  push("more", std::nullopt);
  EXPECT_EQ(answers, "xyz- more- ");
}

TEST_F(InputQueueTest, TellsWhoStillSendsThatTheTaskIsOver) {
  push("abc", std::nullopt);
  queue.end(ArrayId{3}, [](TaskId) { return true; });
  EXPECT_EQ(answers, "abc- ");
}

}  // namespace
}  // namespace hpcbatch
