// A model of waits is taken from its file, anew when that changes; one that is damaged is said.
#include "runtime/learned_waits.hpp"
#include "runtime/queue_watching.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

class LearnedWaitsTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string new_folder() {
    std::string pattern = testing::TempDir() + "waits-XXXXXX";
    return ::mkdtemp(pattern.data());
  }
  std::string file() const { return folder_ + "/here.waits"; }
  /// One that has seen as long a wait for each that waits before it.
  std::string bytes() const {
    TrainingTable table;
    table.inputs.features = foresight::queue_feature_names();
    for (foresight::Seconds row = 0; row < 400; ++row) {
      const std::vector<foresight::PresentJob> present(
          static_cast<std::size_t>(row % 20), {.partition = 0, .user = 1, .cpus = 1, .limit = 60});
      const auto inputs =
          foresight::queue_features({.partition = 0, .cpus = 1, .limit = 60}, present, row * 100);
      table.inputs.values.insert(table.inputs.values.end(), inputs.begin(), inputs.end());
      table.waited.push_back(static_cast<double>(100 * (row % 20 + 1)));
    }
    const auto estimator = plugins_.estimator("xgboost", "");
    return foresight::to_bytes({{.estimator = "xgboost",
                                 .config_yaml = "",
                                 .partitions = {"main"},
                                 .spread = {-0.1, 0, 0.1},
                                 .waits = 400},
                                *(*estimator)->train(table)});
  }
  void write(const std::string& text) const {
    std::ofstream(file() + ".new", std::ios::binary) << text;
    std::filesystem::rename(file() + ".new", file());
  }
  /// A look at a queue in which so many wait.
  void see(int waiting) {
    WatchedQueue queue;
    queue.partitions.push_back({.name = "main", .is_default = true, .cpus = 8});
    for (int i = 0; i < waiting; ++i)
      queue.jobs.push_back({.number = std::to_string(i),
                            .name = "n",
                            .user = "ann",
                            .partitions = {"main"},
                            .limit = std::chrono::seconds{60},
                            .age = std::chrono::seconds{5}});
    waits_.see(queue, {}, {}, 1'000'000);
  }
  std::vector<foresight::Seconds> told(const std::string& partition = "") {
    return waits_.waits({.partition = partition, .cpus = 1, .limit = 60});
  }

  std::string folder_{new_folder()};
  PluginHost plugins_{{PLUGINS}};
  LearnedWaits waits_{plugins_, file()};
};

TEST_F(LearnedWaitsTest, WithoutAFileNothingIsToldAndNothingIsWrong) {
  see(3);
  EXPECT_TRUE(told().empty());
  EXPECT_EQ(waits_.trouble(), "");
  EXPECT_EQ(waits_.learned_from(), 0U);
}

TEST_F(LearnedWaitsTest, ANewFileIsTakenWithTheNextLook) {
  see(3);
  write(bytes());
  EXPECT_TRUE(told().empty());
  see(2);
  ASSERT_EQ(told().size(), 3U) << waits_.trouble();
  EXPECT_EQ(waits_.trouble(), "");
  const auto few = told()[1];
  see(18);
  EXPECT_GT(told()[1], 2 * few);
  EXPECT_EQ(told(), told("main")) << "the default partition";
  EXPECT_EQ(told("another").size(), 3U);
  EXPECT_EQ(waits_.learned_from(), 400U);
  std::filesystem::remove(file());
  see(2);
  EXPECT_TRUE(told().empty());
}

TEST_F(LearnedWaitsTest, ADamagedFileIsSaidAndNotUsed) {
  const std::string good = bytes();
  write(good);
  see(2);
  ASSERT_FALSE(told().empty()) << waits_.trouble();
  write(good.substr(0, good.size() / 2));
  see(2);
  EXPECT_TRUE(told().empty());
  EXPECT_THAT(waits_.trouble(), HasSubstr("a part of it is missing; 'hpcbatch waits train'"));
  std::string flipped = good;
  for (std::size_t at = good.find('\n') + 1; at < flipped.size(); at += 7) flipped[at] ^= 0x55;
  write(flipped);
  see(2);
  EXPECT_TRUE(told().empty());
  EXPECT_THAT(waits_.trouble(), HasSubstr("is not used"));
  write("");
  see(2);
  EXPECT_THAT(waits_.trouble(), HasSubstr("is not used"));
  write(good);
  see(2);
  EXPECT_EQ(told().size(), 3U);
  EXPECT_EQ(waits_.trouble(), "");
}

TEST(ModelRenewal, IsDueWhenATenthOfItsTimeHasPassed) {
  constexpr foresight::Seconds kDay = foresight::kDay, kUntil = 100 * kDay;
  EXPECT_FALSE(is_due(70 * kDay, kUntil, kUntil + 2 * kDay));
  EXPECT_TRUE(is_due(70 * kDay, kUntil, kUntil + 3 * kDay));
  EXPECT_FALSE(is_due(98 * kDay, kUntil, kUntil + kDay / 2)) << "a day at least";
  EXPECT_TRUE(is_due(98 * kDay, kUntil, kUntil + kDay));
  EXPECT_FALSE(is_due(0, 0, kUntil)) << "there is none";
}

TEST(RunTimesFile, WhatWasSeenIsKnownToTheNext) {
  std::string pattern = testing::TempDir() + "run-times-XXXXXX";
  const std::string path = std::string(::mkdtemp(pattern.data())) + "/models/here.run-times";
  RunTimesFile first(path);
  foresight::QueueWatch seen;
  first.load_into(seen);
  using Ended = foresight::QueueWatch::Ended;
  for (int i = 0; i < 30; ++i)
    first.add({Ended{.user = "an\tn", .name = "", .limit = 36'000, .ran = 3000, .cpus = 4}});
  std::ofstream(path, std::ios::app) << "nonsense\n36000\t";
  RunTimesFile second(path);
  foresight::QueueWatch other;
  second.load_into(other);
  WatchedJob job{.number = "1", .name = "", .user = "ann", .partitions = {"main"}};
  job.runs = true;
  job.cpus = 4;
  job.limit = std::chrono::seconds{36'000};
  job.nodes = {"n1"};
  other.see(
      {.jobs = {job}, .partitions = {{.name = "main", .cpus = 4, .busy_cpus = 4, .nodes = {"n1"}}}},
      1'000'000);
  const auto told = other.foresee({.partition = "main", .cpus = 4, .limit = 60}, {});
  EXPECT_FALSE(told.by_limits);
  ASSERT_EQ(told.next.size(), 31U);
  EXPECT_NEAR(static_cast<double>(told.next[15]), 3000, 120);
}

}  // namespace
}  // namespace hpcbatch
