// What accounting teaches of waits: only what was known when a job came, alike for the past and for
// now; and models as files.
#include "foresight/learned/features.hpp"
#include "foresight/learned/wait_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hpcbatch::foresight {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

PastJob past(std::chrono::seconds submitted, std::optional<std::chrono::seconds> started,
             std::optional<std::chrono::seconds> ended, double cpus = 2,
             const std::string& user = "ann") {
  return {.partition = "main",
          .user = user,
          .cpus = cpus,
          .gpus = 0,
          .limit = 2h,
          .submitted = submitted,
          .eligible = submitted,
          .started = started,
          .ended = ended};
}

float input_of(const PastLesson& lesson, std::size_t row, const std::string& name) {
  const auto& names = lesson.inputs.features;
  const auto at = std::find(names.begin(), names.end(), name) - names.begin();
  return lesson.inputs.values.at(row * names.size() + static_cast<std::size_t>(at));
}

constexpr Seconds kToldAt = 100 * kDay;
std::chrono::seconds at(Seconds moment) {
  return std::chrono::seconds{90 * kDay + moment};
}

TEST(PastLesson, ARowShowsTheQueueAsItWas) {
  const auto lesson = past_lesson(
      {past(at(0), at(60), at(4000)), past(at(100), at(4000), at(5000), 8),
       past(at(200), std::nullopt, at(300)), past(at(1000), at(5000), at(6000), 2, "bob")},
      0, kToldAt, 100);
  ASSERT_EQ(lesson.waits.size(), 4U);
  EXPECT_EQ(input_of(lesson, 0, "cluster_waiting"), 0);
  EXPECT_EQ(input_of(lesson, 1, "partition_running"), 1);
  EXPECT_EQ(input_of(lesson, 1, "partition_running_hours"), 2 * (7200 - 40) / 3600.F);
  EXPECT_EQ(input_of(lesson, 1, "cpus"), 8);
  EXPECT_EQ(input_of(lesson, 2, "user_waiting_cpus"), 8);
  EXPECT_EQ(input_of(lesson, 3, "partition_waiting"), 1) << "without the one that was cancelled";
  EXPECT_EQ(input_of(lesson, 3, "user_waiting"), 0);
  EXPECT_EQ(input_of(lesson, 3, "near_oldest"), 900 / 3600.F);
  EXPECT_EQ(input_of(lesson, 3, "near_median"), 60 / 3600.F);
  EXPECT_TRUE(std::isnan(input_of(lesson, 0, "near_median")));
  EXPECT_EQ(lesson.waits[0].waited, 60);
  EXPECT_TRUE(lesson.waits[0].has_started);
  EXPECT_FALSE(lesson.waits[2].has_started);
  EXPECT_EQ(lesson.waits[2].waited, 100);
  EXPECT_THAT(lesson.partitions, ElementsAre("main"));
}

TEST(PastLesson, WhatHappenedLaterChangesNoRow) {
  std::vector<PastJob> jobs, poisoned;
  jobs.reserve(300);
  for (Seconds i = 0; i < 300; ++i) {
    const Seconds came = i * 500;
    jobs.push_back(past(at(came), at(came + i * 37 % 9000), at(came + i * 37 % 9000 + 4000),
                        static_cast<double>(1 + i % 5), i % 3 == 0 ? "ann" : "bob"));
  }
  const Seconds cut = Seconds{150} * 500;
  poisoned = jobs;
  for (PastJob& job : poisoned) {
    // Whoever had not begun by then begins and ends at another time; whoever ran runs on.
    if (job.started > at(cut)) job.started = at(9 * kDay);
    if (job.ended > at(cut)) job.ended = at(9 * kDay) + 1h;
  }
  const auto one = past_lesson(jobs, 0, kToldAt, 1000),
             other = past_lesson(poisoned, 0, kToldAt, 1000);
  const std::size_t known = 151 * one.inputs.features.size();
  for (std::size_t place = 0; place < known; ++place) {
    const float left = one.inputs.values[place], right = other.inputs.values[place];
    ASSERT_TRUE(left == right || (std::isnan(left) && std::isnan(right)))
        << one.inputs.features[place % one.inputs.features.size()];
  }
  const TrainingTable taught = known_by(one, at(cut).count(), kDay),
                      again = known_by(other, at(cut).count(), kDay);
  EXPECT_EQ(taught.waited, again.waited);
  EXPECT_EQ(taught.is_pending, again.is_pending);
  EXPECT_EQ(taught.waited.size(), 150U);
}

TEST(PastLesson, WhatCameBeforeIsThereAndNoRow) {
  const auto lesson =
      past_lesson({past(at(0), at(60), std::nullopt), past(at(100), at(120), at(500))},
                  at(50).count(), kToldAt, 100);
  ASSERT_EQ(lesson.waits.size(), 1U);
  EXPECT_EQ(input_of(lesson, 0, "partition_running"), 1);
}

TEST(PastLesson, OfManyAFewAreChosenAndTheirQueueIsWhole) {
  std::vector<PastJob> jobs;
  jobs.reserve(1000);
  for (int i = 0; i < 1000; ++i) jobs.push_back(past(at(i), std::nullopt, std::nullopt));
  const auto lesson = past_lesson(jobs, 0, kToldAt, 100);
  ASSERT_EQ(lesson.waits.size(), 100U);
  EXPECT_EQ(input_of(lesson, 99, "partition_waiting"), 990);
}

TEST(PastLesson, WhateverAccountingSaysInputsAreFinite) {
  PastJob odd = past(at(0), at(-50), at(-100), 1e300);
  odd.limit = std::chrono::seconds::max();
  const auto lesson = past_lesson({odd, past(at(5), std::nullopt, at(1)), past(at(9), at(9), at(9)),
                                   past(std::chrono::seconds{kToldAt + 5}, {}, {})},
                                  0, kToldAt, 100);
  for (const float value : lesson.inputs.values) EXPECT_FALSE(std::isinf(value));
  for (const PastWait& wait : lesson.waits) EXPECT_GE(wait.waited, 0);
  EXPECT_TRUE(past_lesson({}, 0, kToldAt, 100).waits.empty());
}

TEST(QueueFeatures, ALookShowsWhatAccountingShows) {
  std::vector<PastJob> jobs = {past(at(0), at(60), std::nullopt),
                               past(at(100), std::nullopt, std::nullopt, 8, "bob"),
                               past(at(1000), std::nullopt, std::nullopt, 4)};
  jobs.front().gpus = 3;
  const auto lesson = past_lesson(jobs, 0, kToldAt, 100);
  const auto look = [](bool runs, double cpus, const std::string& user, Seconds age,
                       Seconds elapsed) {
    WatchedJob job{.number = "1", .name = "n", .user = user, .partitions = {"main", "other"}};
    job.runs = runs;
    job.cpus = cpus;
    job.limit = 2h;
    job.age = std::chrono::seconds{age};
    job.elapsed = std::chrono::seconds{elapsed};
    return job;
  };
  WatchedQueue queue{.jobs = {look(true, 2, "ann", 1000, 940), look(false, 8, "bob", 900, 0)},
                     .partitions = {}};
  WatchedJob held = look(false, 64, "bob", 5, 0);
  held.may_start = false;
  queue.jobs.push_back(held);
  Numbers partitions(lesson.partitions), users;
  queue.jobs.front().number = "2";
  const WatchedRoom room{.nodes = {}, .jobs = {{"2", {.memory = 0, .gpus = {{"a100", 3}}}}}};
  const auto present = present_in(queue, room, partitions, users, at(1000).count());
  const auto row = queue_features({partitions.of("main"), users.of("ann"), 4, 0, 7200}, present,
                                  at(1000).count());
  const std::size_t width = row.size();
  for (std::size_t place = 0; place < width; ++place) {
    const float told = lesson.inputs.values[2 * width + place];
    EXPECT_TRUE(row[place] == told || (std::isnan(row[place]) && std::isnan(told)))
        << lesson.inputs.features[place] << ": " << row[place] << " and " << told;
  }
}

TEST(PastText, ComesBackAsItWas) {
  PastJob odd = past(at(5), std::nullopt, at(7));
  odd.partition = "a\tb\n";
  odd.gpus = 2;
  const auto back = past_jobs(past_text({past(at(0), at(60), std::nullopt), odd}));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].started, at(60));
  EXPECT_FALSE(back[0].ended);
  EXPECT_EQ(back[0].user, "ann");
  EXPECT_EQ(back[0].limit, 2h);
  EXPECT_EQ(back[1].partition, "a?b?");
  EXPECT_EQ(back[1].gpus, 2);
  EXPECT_TRUE(past_jobs("").empty());
  for (const char* text :
       {"a\tb\n", "a", "p\tu\tx\t0\t1\t1\t1\t-\t-\n", "p\tu\t1\t0\t1\t1\t1\t-\t\n"})
    EXPECT_THROW((void)past_jobs(text), std::invalid_argument) << text;
}

/// Tells half an hour for each cpu hour that waits.
class HalfAnHour final : public EstimatorModel {
 public:
  explicit HalfAnHour(double told = 1800) : told_(told) {}
  Result<std::vector<double>> predict(const FeatureTable& rows) const override {
    return std::vector<double>(rows.rows(), told_);
  }

 private:
  double told_;
};

WaitModelFile a_file() {
  return {{.estimator = "some",
           .config_yaml = "a: 1",
           .partitions = {"main"},
           .spread = {-1, 0, 1},
           .waits = 500,
           .from = 3,
           .until = 9,
           .mean_square = 0.5,
           .mean_square_medians = 0.75},
          std::string("\0bytes\n{", 8)};
}

TEST(WaitModel, ComesBackFromItsFile) {
  const std::string bytes = to_bytes(a_file());
  const WaitModelFile back = wait_model_file(bytes);
  EXPECT_EQ(back.model, a_file().model);
  EXPECT_EQ(back.facts.partitions, a_file().facts.partitions);
  EXPECT_EQ(back.facts.spread, a_file().facts.spread);
  EXPECT_EQ(back.facts.waits, 500U);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW((void)wait_model_file(bytes.substr(0, size)), std::invalid_argument) << size;
  EXPECT_THROW((void)wait_model_file(bytes + "x"), std::invalid_argument);
}

TEST(WaitModel, TellsAsManyWaitsAsItWasOffBefore) {
  const WaitModel model(a_file().facts, std::make_unique<HalfAnHour>());
  const auto waits = model.waits({.limit = 60}, {}, kToldAt);
  ASSERT_TRUE(waits) << waits.error().text;
  EXPECT_THAT(*waits, ElementsAre(179, 1800, 18009));
  const WaitModel wrong(a_file().facts,
                        std::make_unique<HalfAnHour>(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(wrong.waits({.limit = 60}, {}, kToldAt));
}

}  // namespace
}  // namespace hpcbatch::foresight
