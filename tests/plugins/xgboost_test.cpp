// The estimator that grows trees with xgboost.
#include "hpcbatch/contract/estimator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

std::unique_ptr<Estimator> make(const std::string& config = "") {
  return contract::load<Estimator>(PLUGINS "/estimators/xgboost.so", config);
}

std::string refusal_of(const std::string& config) {
  try {
    make(config);
    return "accepted";
  } catch (const std::exception& e) {
    return e.what();
  }
}

TrainingTable two_rows() {
  TrainingTable table;
  table.inputs = {{"nodes"}, {1, 2}};
  table.waited = {10, 20};
  return table;
}

TEST(XgboostEstimator, ItsSettingsAreChecked) {
  EXPECT_EQ(refusal_of("num_round: 10\nmax_depth: 3\neta: 0.1\nnthread: 2\n"), "accepted");
  EXPECT_THAT(refusal_of("num_round: 0"),
              HasSubstr("line 1: 'num_round' must be a whole number from 1"));
  EXPECT_THAT(refusal_of("max_depth: 3\neta: 1.5"),
              HasSubstr("line 2: 'eta' must be over 0 and at most 1"));
  EXPECT_THAT(refusal_of("subsample: nan"), HasSubstr("'subsample' must be over 0"));
  EXPECT_THAT(refusal_of("num_rond: 3"), HasSubstr("unknown key 'num_rond'"));
}

TEST(XgboostEstimator, SaysWhatIsWrongWithATable) {
  auto table = two_rows();
  table.waited[1] = -1;
  EXPECT_EQ(make()->train(table).error().text, "a wait is no number of seconds from 0 on");
  table = two_rows();
  table.inputs.values[1] = INFINITY;
  EXPECT_EQ(make()->train(table).error().text, "column nodes of row 2 is infinite");
}

TEST(XgboostEstimator, SaysWhichColumnsAModelWants) {
  const auto bytes = make("num_round: 3")->train(two_rows());
  ASSERT_TRUE(bytes);
  const auto model = make()->load(*bytes);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->predict({{"cpus"}, {1}}).error().text,
            "the model was trained with column nodes where it is asked with cpus");
}

TEST(XgboostEstimator, SaysThatAModelIsDamaged) {
  auto bytes = make("num_round: 3")->train(two_rows());
  ASSERT_TRUE(bytes);
  bytes->back() = static_cast<char>(bytes->back() ^ 1);
  EXPECT_EQ(make()->load(*bytes).error().text,
            "this is no whole model of the estimator xgboost (its sum is wrong): train it again");
}

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(Xgboost, EstimatorContract, testing::Values(EstimatorCase{.make = [] {
                           return make(
                               "num_round: 40\nmax_depth: 4\neta: 0.3\nmin_child_weight: 1");
                         }}));
}  // namespace contract
}  // namespace hpcbatch
