// Where the time of tasks went.
#include "store_in_folder.hpp"

#include <limits>

namespace hpcbatch::store {
namespace {

using namespace std::chrono_literals;

Time at(std::int64_t seconds) {
  return Time{std::chrono::seconds{seconds}};
}

class TimesTest : public StoreInFolder {
 protected:
  static Write ran(std::uint32_t index, std::int64_t started, std::int64_t ended,
                   Failure failure = Failure::Ok) {
    Write write = result(1, index, failure);
    Outcome& outcome = std::get<SaveResult>(write.what).outcome;
    outcome.started = at(started);
    outcome.ended = at(ended);
    outcome.cpu_time = std::chrono::seconds{1};
    return write;
  }
  TaskTimes times() { return store->history().times(*store->history().array(ArrayId{1})); }
};

TEST_F(TimesTest, AreThoseOfEachTaskHoweverManyShareARow) {
  // Submitted at 1 ms; 1 to 3 share a row, 4 is alone, 5 never started, 6 runs still.
  save({array(1, IndexRange{1, 6}), ran(1, 10, 12), ran(2, 10, 14), ran(3, 20, 21),
        ran(4, 30, 40, Failure::ToolFailed)});
  save({result(1, 5, Failure::Cancelled)});
  const TaskTimes all = times();
  EXPECT_EQ(all.tasks, 4U);
  EXPECT_EQ(all.ran, 17s);
  EXPECT_EQ(all.cpu, 4s);
  EXPECT_EQ(all.half_within, 2s);
  EXPECT_EQ(all.most_within, 10s);
  EXPECT_EQ(all.half_waited, 10s - 1ms);
  EXPECT_EQ(all.longest, (TaskId{ArrayId{1}, 4}));
  EXPECT_EQ(all.longest_ran, 10s);
  EXPECT_EQ(all.busy, 15s) << "10 to 14, 20 to 21 and 30 to 40";
  EXPECT_FALSE(all.is_estimate);
}

TEST_F(TimesTest, OfEarlierAttemptsAreTheirOwn) {
  Outcome outcome{.failure = Failure::ToolFailed, .started = at(10), .ended = at(13)};
  save({array(1, IndexRange{1, 2}),
        {SaveFailedAttempt{.attempt = attempt(1, 1), .pilot = pilot(), .outcome = outcome}},
        ran(1, 20, 21)});
  EXPECT_EQ(times().earlier_attempts, 1U);
  EXPECT_EQ(times().earlier_ran, 3s);
  EXPECT_EQ(times().ran, 1s);
}

TEST_F(TimesTest, OfNoneAreNothing) {
  save({array(1, IndexRange{1, 2})});
  EXPECT_EQ(times().tasks, 0U);
  EXPECT_EQ(times().ran, Duration{});
}

TEST(TimesOfTasks, AClockThatGoesBackGivesNothingAndOneThatLeapsNoSmallSum) {
  TimesOfTasks sums(at(100));
  sums.add({ArrayId{1}, 1}, at(90), at(80), -5s);
  const Time last{Duration::max()};
  sums.add({ArrayId{1}, 2}, Time{}, last, Duration::max());
  sums.add({ArrayId{1}, 3}, Time{}, last, Duration::max());
  const TaskTimes all = std::move(sums).all(3);
  EXPECT_EQ(all.ran, Duration::max());
  EXPECT_EQ(all.cpu, Duration::max());
  EXPECT_EQ(all.half_waited, Duration{});
  EXPECT_EQ(all.longest, (TaskId{ArrayId{1}, 2}));
}

TEST(TimesOfTasks, OfEveryTenthMakeThoseOfAll) {
  TimesOfTasks sums(at(0));
  for (std::uint32_t i = 1; i <= 5; ++i)
    sums.add({ArrayId{1}, i}, at(i), at(std::int64_t{2} * i), 1s);
  const TaskTimes all = std::move(sums).all(50);
  EXPECT_EQ(all.tasks, 50U);
  EXPECT_EQ(all.ran, 150s);
  EXPECT_EQ(all.cpu, 50s);
  EXPECT_EQ(all.half_within, 3s);
  EXPECT_FALSE(all.longest);
  EXPECT_TRUE(all.is_estimate);
}

}  // namespace
}  // namespace hpcbatch::store
