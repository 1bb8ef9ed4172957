// The contract of an estimator as tests; for GoogleTest.  In one source of your test program:
//
//   #include "hpcbatch/contract/estimator.hpp"
//   INSTANTIATE_TEST_SUITE_P(Mine, EstimatorContract,
//   testing::Values(hpcbatch::contract::EstimatorCase{
//       .make = [] { return hpcbatch::contract::load<hpcbatch::Estimator>("/path/mine.so"); }}));
//
// The default configuration is to be one that starts no threads.  How well it predicts real waits is
// not told here: `./dev bench foresight` is a way to find out.
#pragma once

#include "hpcbatch/contract/load.hpp"
#include "hpcbatch/contract/surroundings.hpp"
#include "hpcbatch/estimator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hpcbatch::contract {

struct EstimatorCase {
  std::function<std::unique_ptr<Estimator>()> make;
  friend std::ostream& operator<<(std::ostream& out, const EstimatorCase&) {
    return out << "estimator";
  }
};

class EstimatorContract : public testing::TestWithParam<EstimatorCase> {
 protected:
  static constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

  void SetUp() override {
    estimator_ = GetParam().make();
    before_ = Surroundings::now();
  }
  void TearDown() override { before_.expect_unchanged(); }

  /// Who asks for more than 32 nodes waits an hour, all others a minute, with noise; the second
  /// column says nothing, and is unknown now and then.
  static TrainingTable waits(std::size_t rows, std::uint32_t seed = 1) {
    std::mt19937 random(seed);
    TrainingTable table;
    table.inputs.features = {"nodes", "weekday"};
    for (std::size_t i = 0; i < rows; ++i) {
      const auto nodes = static_cast<float>(1 + random() % 64);
      const double noise = 0.8 + 0.4 * static_cast<double>(random() % 1000) / 1000;
      table.inputs.values.push_back(nodes);
      table.inputs.values.push_back(i % 5 == 0 ? kUnknown : static_cast<float>(random() % 7));
      table.waited.push_back((nodes > 32 ? 3600 : 60) * noise);
    }
    return table;
  }
  static FeatureTable rows(std::vector<float> values) {
    return {{"nodes", "weekday"}, std::move(values)};
  }

  std::string trained(const TrainingTable& table) const {
    const auto model = estimator_->train(table);
    EXPECT_TRUE(model) << (model ? "" : model.error().text);
    return model ? *model : std::string();
  }
  std::unique_ptr<EstimatorModel> loaded(const std::string& bytes) const {
    auto model = estimator_->load(bytes);
    EXPECT_TRUE(model) << (model ? "" : model.error().text);
    return model ? std::move(*model) : nullptr;
  }
  static std::vector<double> predicted(const EstimatorModel& model, const FeatureTable& table) {
    auto waits = model.predict(table);
    EXPECT_TRUE(waits) << (waits ? "" : waits.error().text);
    return waits ? *waits : std::vector<double>();
  }
  template <class T>
  static void expect_refused(const Result<T>& result, const std::string& what) {
    ASSERT_FALSE(result) << what << " was accepted";
    EXPECT_EQ(result.error().kind, Error::Kind::Rejected) << what;
    EXPECT_FALSE(result.error().text.empty()) << what;
    EXPECT_EQ(result.error().text.find('\n'), std::string::npos) << result.error().text;
  }

  std::unique_ptr<Estimator> estimator_;
  Surroundings before_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EstimatorContract);

TEST_P(EstimatorContract, LearnsWhatDecidesAWait) {
  const auto model = loaded(trained(waits(2000)));
  ASSERT_NE(model, nullptr);
  const auto told = predicted(*model, rows({4, 3, 60, 3, 4, kUnknown, 60, kUnknown}));
  ASSERT_EQ(told.size(), 4u);
  for (const std::size_t row : {std::size_t{0}, std::size_t{2}}) {
    EXPECT_GT(told[row], 30);
    EXPECT_LT(told[row], 120);
    EXPECT_GT(told[row + 1], 1800);
    EXPECT_LT(told[row + 1], 7200);
  }
}

TEST_P(EstimatorContract, TheSameTableGivesTheSameModel) {
  const std::string model = trained(waits(300));
  EXPECT_EQ(model, trained(waits(300)));
  const auto other = GetParam().make()->train(waits(300));
  ASSERT_TRUE(other);
  EXPECT_EQ(model, *other);
}

TEST_P(EstimatorContract, AModelOutlivesItsEstimator) {
  const std::string bytes = trained(waits(300));
  const auto first = loaded(bytes);
  auto second = GetParam().make()->load(bytes);
  ASSERT_TRUE(second);
  ASSERT_NE(first, nullptr);
  const auto asked = waits(50, 2).inputs;
  EXPECT_EQ(predicted(*first, asked), predicted(**second, asked));
}

TEST_P(EstimatorContract, ARowIsToldAlikeWhateverStandsBesideIt) {
  const auto model = loaded(trained(waits(300)));
  ASSERT_NE(model, nullptr);
  const auto asked = waits(50, 2).inputs;
  const auto together = predicted(*model, asked);
  ASSERT_EQ(together.size(), 50u);
  for (std::size_t row = 0; row < together.size(); ++row) {
    const auto alone = predicted(*model, rows({asked.values[2 * row], asked.values[2 * row + 1]}));
    EXPECT_EQ(alone, std::vector<double>{together[row]});
  }
  EXPECT_TRUE(predicted(*model, rows({})).empty());
}

TEST_P(EstimatorContract, WhateverIsKnownTheAnswerIsAWait) {
  const auto model = loaded(trained(waits(300)));
  ASSERT_NE(model, nullptr);
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const double told : predicted(
           *model, rows({kUnknown, kUnknown, -kMost, kMost, kMost, -kMost, 0, 0, -1, 1e-40F}))) {
    EXPECT_TRUE(std::isfinite(told));
    EXPECT_GE(told, 0);
  }
}

TEST_P(EstimatorContract, LearnsFromOneRowAndFromWaitsOfNothing) {
  auto table = waits(1);
  table.waited = {0};
  const auto model = loaded(trained(table));
  ASSERT_NE(model, nullptr);
  EXPECT_LT(predicted(*model, table.inputs).front(), 60);
}

TEST_P(EstimatorContract, ARowWithoutWeightTeachesNothing) {
  auto table = waits(1000);
  table.weights.assign(1000, 1);
  for (std::size_t row = 0; row < 1000; row += 2) {
    table.waited[row] = 1e6;
    table.weights[row] = 0;
  }
  const auto model = loaded(trained(table));
  ASSERT_NE(model, nullptr);
  EXPECT_LT(predicted(*model, rows({4, 3})).front(), 120);
}

TEST_P(EstimatorContract, WhoStillWaitsIsNotTakenForOneWhoHasStarted) {
  auto table = waits(1000);
  table.is_pending.assign(1000, 0);
  for (std::size_t row = 0; row < 1000; row += 2) {
    table.is_pending[row] = 1;
    table.waited[row] = 1;
  }
  const auto model = loaded(trained(table));
  ASSERT_NE(model, nullptr);
  EXPECT_GT(predicted(*model, rows({60, 3})).front(), 1800);
}

TEST_P(EstimatorContract, ATableThatDoesNotFitTogetherIsRefused) {
  const auto refused = [&](const std::string& what,
                           const std::function<void(TrainingTable&)>& damage) {
    TrainingTable table = waits(20);
    damage(table);
    expect_refused(estimator_->train(table), what);
  };
  refused("no row", [](auto& t) { t = TrainingTable{.inputs = {{"nodes", "weekday"}, {}}}; });
  refused("no column", [](auto& t) { t.inputs.features.clear(); });
  refused("a column twice", [](auto& t) { t.inputs.features = {"nodes", "nodes"}; });
  refused("half a row", [](auto& t) { t.inputs.values.pop_back(); });
  refused("too few waits", [](auto& t) { t.waited.pop_back(); });
  refused("too few weights", [](auto& t) { t.weights = {1}; });
  refused("a weight below 0", [](auto& t) { t.weights.assign(20, 1), t.weights[3] = -1; });
  refused("no weight at all", [](auto& t) { t.weights.assign(20, 0); });
  refused("too many marks", [](auto& t) { t.is_pending.assign(21, 0); });
  refused("only pending rows", [](auto& t) { t.is_pending.assign(20, 1); });
  refused("a wait below 0", [](auto& t) { t.waited[3] = -1; });
  refused("an unknown wait", [](auto& t) { t.waited[3] = std::nan(""); });
  refused("an infinite input",
          [](auto& t) { t.inputs.values[3] = std::numeric_limits<float>::infinity(); });
}

TEST_P(EstimatorContract, AQuestionWithOtherColumnsIsRefused) {
  const auto model = loaded(trained(waits(20)));
  ASSERT_NE(model, nullptr);
  expect_refused(model->predict({{"weekday", "nodes"}, {1, 2}}), "another order");
  expect_refused(model->predict({{"nodes", "users"}, {1, 2}}), "another name");
  expect_refused(model->predict({{"nodes"}, {1}}), "a column less");
  expect_refused(model->predict({{"nodes", "weekday", "users"}, {1, 2, 3}}), "a column more");
  expect_refused(model->predict({{}, {}}), "no column");
  expect_refused(model->predict(rows({1, 2, 3})), "half a row");
  expect_refused(model->predict(rows({1, std::numeric_limits<float>::infinity()})),
                 "an infinite input");
}

TEST_P(EstimatorContract, ADamagedModelIsRefusedInWords) {
  const std::string bytes = trained(waits(100));
  ASSERT_FALSE(bytes.empty());
  expect_refused(estimator_->load(""), "an empty model");
  expect_refused(estimator_->load("this is no model\n"), "a text");
  expect_refused(estimator_->load(bytes + "x"), "a byte more");
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / 97);
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    expect_refused(estimator_->load(bytes.substr(0, at)), "cut at " + std::to_string(at));
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 0x20);
    expect_refused(estimator_->load(other), "changed at " + std::to_string(at));
  }
}

TEST_P(EstimatorContract, AnswersFromSeveralThreadsAtOnce) {
  const auto model = loaded(trained(waits(300)));
  ASSERT_NE(model, nullptr);
  const auto asked = waits(20, 2).inputs;
  const auto expected = predicted(*model, asked);
  std::vector<std::vector<double>> told(4);
  std::vector<std::thread> threads;
  threads.reserve(told.size());
  for (auto& each : told) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) each = predicted(*model, asked);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : told) EXPECT_EQ(each, expected);
}

}  // namespace hpcbatch::contract
