// Sums that are kept are those that a count from nothing finds.
#include "failure/failure.hpp"
#include "store_in_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace hpcbatch::store {
namespace {

using namespace std::chrono_literals;

class KnownSums : public StoreInFolder {
 protected:
  static constexpr std::uint32_t kTasks = 1500;

  std::string failures(ArrayId id) {
    std::string text;
    for (const FailureGroup& group : store->history().failures(id))
      text += fmt::format("{} {} {} {} {}\n", static_cast<int>(group.failure), group.exit_code,
                          group.signal, group.tasks, group.first);
    return text;
  }
  std::string times(ArrayId id) {
    const TaskTimes all = store->history().times(*store->history().array(id));
    return fmt::format("{} {} {} {} {} {}", all.tasks, all.ran.count(), all.half_within.count(),
                       all.busy.count(), all.earlier_attempts, all.earlier_ran.count());
  }
  Outcome drawn_outcome() {
    constexpr std::array kWays{
        Failure::Ok,        Failure::Ok,         Failure::ToolFailed, Failure::OomTask,
        Failure::Cancelled, Failure::ToolSignal, Failure::NodeLost,   Failure::DependencyFailed};
    Outcome outcome;
    outcome.failure = kWays[draw() % kWays.size()];
    if (outcome.failure == Failure::ToolFailed)
      outcome.exit_code = 1 + static_cast<int>(draw() % 3);
    if (outcome.failure == Failure::ToolSignal || outcome.failure == Failure::OomTask)
      outcome.signal = draw() % 2 == 0 ? 9 : 11;
    outcome.started = Time{} + std::chrono::seconds(draw() % 1000);
    outcome.ended = *outcome.started + std::chrono::seconds(draw() % 100);
    return outcome;
  }

  std::mt19937 draw{3};
};

TEST_F(KnownSums, AreThoseOfACountFromNothingAfterAnyChanges) {
  constexpr std::uint64_t kArrays = 3;
  std::vector<IndexSet> open(kArrays + 1);
  std::vector<Write> first;
  for (std::uint64_t id = 1; id <= kArrays; ++id) {
    first.push_back(array(id, IndexRange{1, kTasks}));
    open[id].add(IndexRange{1, kTasks});
  }
  save(std::move(first));
  std::uint64_t epoch = 10;
  for (int round = 0; round < 60; ++round) {
    std::vector<Write> writes;
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t id = 1 + draw() % kArrays;
      const auto index = static_cast<std::uint32_t>(1 + draw() % kTasks);
      if (!open[id].contains(index)) {
        if (draw() % 4 == 0) {
          writes.push_back({SaveRevived{ArrayId{id}, IndexRange{index, index}}, {}});
          open[id].add(IndexRange{index, index});
        }
        continue;
      }
      const AttemptId which = attempt(id, index, 1, ++epoch);
      if (draw() % 10 == 0) {
        writes.push_back(
            {SaveFailedAttempt{.attempt = which, .pilot = pilot(), .outcome = drawn_outcome()},
             {}});
        continue;
      }
      writes.push_back({SaveResult{which, pilot(), "node7", drawn_outcome()}, {}});
      open[id].remove(IndexRange{index, index});
    }
    save(std::move(writes), false);
    std::string known, counted;
    for (std::uint64_t id = 1; id <= kArrays; ++id) known += failures(ArrayId{id});
    if (round % 5 != 4) continue;
    reopen();
    for (std::uint64_t id = 1; id <= kArrays; ++id) counted += failures(ArrayId{id});
    ASSERT_EQ(known, counted) << "round " << round;
  }
}

TEST_F(KnownSums, OfTimesAreExactOnceAllHasEnded) {
  std::vector<Write> writes{array(1, IndexRange{1, kTasks})};
  std::vector<Write> rest;
  for (std::uint32_t index = 1; index <= kTasks; ++index) {
    Write one{SaveResult{attempt(1, index), pilot(), "node7", drawn_outcome()}, {}};
    (index <= 1200 ? writes : rest).push_back(std::move(one));
  }
  save(std::move(writes));
  const std::string before = times(ArrayId{1});
  EXPECT_EQ(times(ArrayId{1}), before);
  rest.push_back({SaveArrayEnded{ArrayId{1}}, {}});
  save(std::move(rest));
  const std::string known = times(ArrayId{1});
  EXPECT_NE(known, before);
  reopen();
  EXPECT_EQ(known, times(ArrayId{1}));
  save({{SaveRevived{ArrayId{1}, IndexRange{1, 700}}, {}}});
  const std::string revived = times(ArrayId{1});
  reopen();
  EXPECT_EQ(revived, times(ArrayId{1})) << "what was withdrawn is in no sum";
}

TEST(KnownEnds, TimesOfOpenOnesAreOldForAHundredTimesWhatTheyTook) {
  const ArrayId id{4};
  const auto now = KnownEnds::Clock::time_point{} + 1h;
  KnownEnds known;
  TaskTimes all;
  all.tasks = 5000;
  known.keep_times(id, all, now, 10ms);
  EXPECT_TRUE(known.times(id, true, now + 1h)) << "nothing has ended since";
  known.add(id, {Failure::Ok, 0, 0}, {1, {}, {}, 7});
  EXPECT_TRUE(known.times(id, true, now + 900ms));
  EXPECT_FALSE(known.times(id, true, now + 1100ms));
  EXPECT_FALSE(known.times(id, false, now + 900ms)) << "it has ended: what is told now stays";
  known.keep_times(id, all, now, 10ms);
  known.forget(id);
  EXPECT_FALSE(known.times(id, true, now));
  all.tasks = 5;
  known.keep_times(id, all, now, 10ms);
  EXPECT_FALSE(known.times(id, true, now)) << "so few are added up in no time";
}

using RunsTest = StoreInFolder;

TEST_F(RunsTest, AreEachByItselfAndOnceWhoeverFollows) {
  std::mt19937 draw(5);
  save({array(1, IndexRange{1, 900})});
  std::vector<std::uint32_t> ended;
  std::uint64_t cursor = 0;
  std::uint32_t next = 1;
  for (int round = 0; round < 30; ++round) {
    std::vector<Write> writes;
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < 1 + draw() % 20; ++i, ++next) {
      Write one = result(1, next, draw() % 5 == 0 ? Failure::ToolFailed : Failure::Ok);
      Outcome& outcome = std::get<SaveResult>(one.what).outcome;
      // What never ran is in no picture.
      if (draw() % 6 != 0) {
        outcome.started = from_microseconds(1000 + next);
        outcome.ended = from_microseconds(2000 + next);
        expected.push_back(next);
      }
      writes.push_back(std::move(one));
    }
    save(std::move(writes), false);
    const ChangeFeed feed = store->history().runs(cursor, 1000);
    cursor = feed.cursor;
    std::vector<std::uint32_t> found;
    for (auto row = feed.rows.rbegin(); row != feed.rows.rend(); ++row) {
      ASSERT_EQ(row->indices.first, row->indices.last);
      EXPECT_EQ(row->outcome.started, from_microseconds(1000 + row->indices.first));
      EXPECT_EQ(row->outcome.ended, from_microseconds(2000 + row->indices.first));
      found.push_back(row->indices.first);
    }
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, expected) << "round " << round;
    ended.insert(ended.end(), expected.begin(), expected.end());
  }
  const ChangeFeed all = store->history().runs(0, 10'000);
  EXPECT_EQ(all.rows.size(), ended.size());
  EXPECT_EQ(all.cursor, cursor);
  const ChangeFeed few = store->history().runs(0, 7);
  ASSERT_EQ(few.rows.size(), 7U);
  EXPECT_EQ(few.cursor, cursor) << "what is older is left out, not told later";
  EXPECT_TRUE(store->history().runs(cursor, 7).rows.empty());
}

TEST_F(RunsTest, WhatNeverRanHidesNoRun) {
  Write ran = result(1, 0, Failure::Ok);
  std::get<SaveResult>(ran.what).outcome.started = from_microseconds(1000);
  std::vector<Write> writes{array(1, IndexRange{0, 0}), std::move(ran)};
  for (std::uint64_t id = 2; id <= 50; ++id) {
    writes.push_back(array(id, IndexRange{0, 0}));
    writes.push_back(result(id, 0, Failure::Cancelled));
  }
  save(std::move(writes));
  const ChangeFeed feed = store->history().runs(0, 10);
  ASSERT_EQ(feed.rows.size(), 1U);
  EXPECT_EQ(feed.rows.front().array, ArrayId{1});
  EXPECT_EQ(feed.cursor, store->history().newest_change());
}

}  // namespace
}  // namespace hpcbatch::store
