// From a site's accounting to a model, or to why there is none.
#include "estimate/training.hpp"
#include "plugin_host/plugin_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::estimate {
namespace {

using foresight::Seconds;
using testing::HasSubstr;

constexpr Seconds kNow = 1'800'000'000;

/// A cluster of so many cpus that starts in order of arrival, with days that are busy and days that
/// are not; what waits for how long follows from the queue.
std::vector<PastJob> busy_cluster(std::size_t count) {
  std::mt19937 random(7);
  std::exponential_distribution<double> gap(1.0 / 600), runs(1.0 / 3000);
  using End = std::pair<Seconds, double>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  double free = 16;
  Seconds now = kNow - static_cast<Seconds>(count) * 850, line = now;
  std::vector<PastJob> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_busy = i / 150 % 2 == 0;
    now += static_cast<Seconds>(gap(random) * (is_busy ? 0.7 : 2));
    const double cpus = 1 + static_cast<double>(random() % 4);
    Seconds start = std::max(line, now);
    while (!ends.empty() && (ends.top().first <= start || free < cpus)) {
      start = std::max(start, ends.top().first);
      free += ends.top().second;
      ends.pop();
    }
    free -= cpus;
    line = start;
    const auto time = static_cast<Seconds>(runs(random)) + 60;
    ends.push({start + time, cpus});
    jobs.push_back({.partition = "main",
                    .user = "u" + std::to_string(random() % 5),
                    .cpus = cpus,
                    .gpus = 0,
                    .limit = std::chrono::hours{2},
                    .submitted = std::chrono::seconds{now},
                    .eligible = std::chrono::seconds{now},
                    .started = std::chrono::seconds{start},
                    .ended = std::chrono::seconds{start + time}});
  }
  return jobs;
}

Teacher xgboost() {
  const std::shared_ptr<Estimator> estimator =
      std::move(*PluginHost({PLUGINS}).estimator("xgboost", "num_round: 60"));
  return {.name = "xgboost",
          .config_yaml = "num_round: 60",
          .train = [estimator](const TrainingTable& table) { return estimator->train(table); },
          .load = [estimator](const std::string& bytes) { return estimator->load(bytes); }};
}

/// Told by the median of what it was taught, each as much as it weighs.
class WeighedMedian final : public EstimatorModel {
 public:
  explicit WeighedMedian(double median) : median_(median) {}
  Result<std::vector<double>> predict(const FeatureTable& asked) const override {
    return std::vector<double>(asked.values.size() / asked.features.size(), median_);
  }

 private:
  double median_;
};

TEST(LearnSite, HowFastTheOldIsForgottenIsChosenByWhatIsMeasured) {
  // In the first sixty days nine in ten waits are long, then none is: who has forgotten half after
  // ten days knows that soon, who takes thirty does not.
  std::vector<PastJob> jobs;
  for (int hour = 0; hour < 24 * 116; ++hour) {
    const Seconds came = kNow - (24 * 116 - hour) * foresight::kHour;
    const bool is_short = hour >= 24 * 60 || hour % 10 == 0;
    const Seconds wait = is_short ? 60 : 5 * foresight::kHour;
    jobs.push_back({.partition = "main",
                    .user = "ann",
                    .cpus = 1,
                    .gpus = 0,
                    .limit = std::chrono::hours{2},
                    .submitted = std::chrono::seconds{came},
                    .eligible = std::chrono::seconds{came},
                    .started = std::chrono::seconds{came + wait},
                    .ended = std::chrono::seconds{came + wait + 60}});
  }
  const Teacher teacher{
      .name = "median",
      .config_yaml = "",
      .train = [](const TrainingTable& table) -> Result<std::string> {
        std::vector<std::pair<double, double>> waits;
        double all = 0;
        for (std::size_t row = 0; row < table.waited.size(); ++row) {
          waits.emplace_back(table.waited[row], table.weights[row]);
          all += table.weights[row];
        }
        std::sort(waits.begin(), waits.end());
        double sum = 0;
        for (const auto& [wait, weight] : waits) {
          sum += weight;
          if (sum >= all / 2) return std::to_string(wait);
        }
        return std::string("0");
      },
      .load = [](const std::string& bytes) -> Result<std::unique_ptr<EstimatorModel>> {
        return std::unique_ptr<EstimatorModel>(new WeighedMedian(std::stod(bytes)));
      }};
  const auto learned = learn_site(jobs, 0, kNow, teacher);
  ASSERT_TRUE(learned) << learned.error().text;
  EXPECT_EQ(learned->facts.half_life, 10 * foresight::kDay);
}

TEST(LearnSite, WhereTheQueueDecidesWaitsAModelIsMadeThatIsBetterThanMedians) {
  const auto learned = learn_site(busy_cluster(3000), 0, kNow, xgboost());
  ASSERT_TRUE(learned) << learned.error().text;
  EXPECT_LT(learned->facts.mean_square, 0.7 * learned->facts.mean_square_medians);
  EXPECT_EQ(learned->facts.waits, 3000U);
  EXPECT_EQ(learned->facts.spread.size(), 20U);
  EXPECT_TRUE(std::is_sorted(learned->facts.spread.begin(), learned->facts.spread.end()));
  auto model = xgboost().load(learned->model);
  ASSERT_TRUE(model) << model.error().text;
  const foresight::WaitModel told(learned->facts, std::move(*model));
  std::vector<foresight::PresentJob> full;
  full.reserve(40);
  for (int i = 0; i < 40; ++i)
    full.push_back({.partition = 0,
                    .user = 1,
                    .cpus = 3,
                    .limit = 7200,
                    .submitted = kNow - 3000,
                    .started = i < 5 ? std::optional(kNow - 1000) : std::nullopt});
  const auto in_a_crowd = told.waits({.cpus = 2, .limit = 7200}, full, kNow);
  const auto alone = told.waits({.cpus = 2, .limit = 7200}, {}, kNow);
  ASSERT_TRUE(in_a_crowd && alone);
  EXPECT_GT(in_a_crowd->at(10), 3 * alone->at(10) + 600);
}

/// Tells everybody a day.
class ADay final : public EstimatorModel {
 public:
  Result<std::vector<double>> predict(const FeatureTable& rows) const override {
    return std::vector<double>(rows.rows(), 86'400);
  }
};

TEST(LearnSite, AModelThatIsWorseThanMediansIsNotMade) {
  Teacher teacher = xgboost();
  teacher.load = [](const std::string&) -> Result<std::unique_ptr<EstimatorModel>> {
    return std::unique_ptr<EstimatorModel>(std::make_unique<ADay>());
  };
  const auto learned = learn_site(busy_cluster(1500), 0, kNow, teacher);
  ASSERT_FALSE(learned);
  EXPECT_THAT(learned.error().text, HasSubstr("where medians have"));
}

TEST(LearnSite, OfFewBatchJobsNothingIsLearned) {
  EXPECT_THAT(learn_site(busy_cluster(150), 0, kNow, xgboost()).error().text,
              HasSubstr("accounting shows 150 batch jobs"));
  EXPECT_FALSE(learn_site({}, 0, kNow, xgboost()));
  std::vector<PastJob> pending = busy_cluster(400);
  for (PastJob& job : pending) job.started = job.ended = std::nullopt;
  EXPECT_THAT(learn_site(pending, 0, kNow, xgboost()).error().text,
              HasSubstr("a wait that is over"));
}

TEST(LearnSite, ATeacherThatFailsIsHeard) {
  Teacher teacher = xgboost();
  teacher.train = [](const TrainingTable&) -> Result<std::string> {
    return Error{Error::Kind::Transient, "it took too long"};
  };
  EXPECT_EQ(learn_site(busy_cluster(400), 0, kNow, teacher).error().text, "it took too long");
}

}  // namespace
}  // namespace hpcbatch::estimate
