// When a job file is read: at once where its end is known, else after a while, and not for ever.
#include "dropbox/job_watch.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;
using Verdict = JobWatch::Verdict;

struct JobWatchTest : testing::Test {
  JobWatch watch{{.quiet = 2s, .grace = 30s}};
  Time now = Time{} + 100h;

  static FileStamp stamp(std::int64_t size, std::uint32_t owner = 0) {
    return {.inode = 7,
            .changed_ns = size,
            .modified_ns = size,
            .size = size,
            .owner = owner,
            .mode = 0100644};
  }
  Names due(std::size_t most = 10) const { return watch.due(now, most); }
};

TEST_F(JobWatchTest, AClosedFileIsReadAtOnce) {
  watch.seen("a.job", stamp(9), true, now);
  EXPECT_EQ(due(), Names{"a.job"});
}

TEST_F(JobWatchTest, AnotherOnceItIsQuiet) {
  EXPECT_TRUE(watch.seen("a.job", stamp(0), false, now));
  EXPECT_EQ(due(), Names{});
  EXPECT_EQ(watch.next_due(), now + 2s);
  now += 1s;
  EXPECT_TRUE(watch.seen("a.job", stamp(9), false, now)) << "it grew";
  now += 1s;
  EXPECT_FALSE(watch.seen("a.job", stamp(9), false, now));
  EXPECT_EQ(due(), Names{});
  now += 1s;
  EXPECT_EQ(due(), Names{"a.job"});
}

TEST_F(JobWatchTest, AFileThatMakesNoSenseGetsTime) {
  watch.seen("a.job", stamp(0), true, now);
  EXPECT_EQ(watch.not_yet("a.job", now), Verdict::Wait);
  EXPECT_EQ(due(), Names{}) << "it is not read again and again";
  EXPECT_EQ(watch.next_due(), now + 30s);
  now += 10s;
  watch.seen("a.job", stamp(9), true, now);
  EXPECT_EQ(due(), Names{"a.job"}) << "it changed";
  EXPECT_EQ(watch.not_yet("a.job", now), Verdict::Wait);
  now += 29s;
  EXPECT_EQ(due(), Names{});
  now += 1s;
  EXPECT_EQ(due(), Names{"a.job"});
  EXPECT_EQ(watch.not_yet("a.job", now), Verdict::Refuse);
}

TEST_F(JobWatchTest, WhatIsGoneIsForgotten) {
  watch.seen("a.job", stamp(1), true, now);
  watch.seen("b.job", stamp(1), true, now);
  watch.seen("c.job", stamp(1), true, now);
  watch.forget("a.job");
  watch.keep_only({"b.job"});
  EXPECT_EQ(due(), Names{"b.job"});
  EXPECT_EQ(watch.size(), 1U);
}

TEST_F(JobWatchTest, OwnersTakeTurns) {
  for (int i = 0; i < 100; ++i) {
    watch.seen("crowd" + std::to_string(i) + ".job", stamp(1, 1000), true, now);
    now += 1ms;
  }
  watch.seen("single.job", stamp(1, 1001), true, now);
  EXPECT_EQ(due(4), (Names{"crowd0.job", "single.job", "crowd1.job", "crowd2.job"}));
}

TEST_F(JobWatchTest, NothingIsDueForEmptyHands) {
  watch.seen("a.job", stamp(1), true, now);
  EXPECT_EQ(due(0), Names{});
  EXPECT_EQ(JobWatch{}.next_due(), std::nullopt);
}

}  // namespace
}  // namespace hpcbatch
