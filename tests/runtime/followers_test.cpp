// Output reaches each reader once and in order, whatever links do; input goes one piece at a time.
#include "runtime/followers.hpp"

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
                        .output = [&heard](std::uint32_t stream, const std::string& bytes) { (stream == 2 ? heard.err : heard.out) += bytes; },
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

TEST(InputQueue, SendsAPieceWhenThePilotWantsOne) {
  InputQueue queue;
  bool taken = false;
  queue.push(kTask, {"abc", false, [&](bool t) { taken = t; }});
  EXPECT_FALSE(queue.next(kTask)) << "nobody asked for it yet";
  queue.wanted(kTask);
  const auto piece = queue.next(kTask);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->bytes, "abc");
  queue.push(kTask, {"def", true, [](bool) {}});
  EXPECT_FALSE(queue.next(kTask)) << "the first has not been taken";
  EXPECT_FALSE(taken);
}

TEST(InputQueue, TellsWhoStillSendsThatTheTaskIsOver) {
  InputQueue queue;
  int refused = 0;
  queue.push(kTask, {"abc", false, [&](bool t) { refused += t ? 0 : 1; }});
  queue.end(ArrayId{3}, [](TaskId) { return true; });
  EXPECT_EQ(refused, 1);
}

}  // namespace
}  // namespace hpcbatch
