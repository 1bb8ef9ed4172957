// The tables made of a queue's polls.
#include "replay/poll_replay.hpp"
#include "plugin_host/plugin_host.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

namespace hpcbatch::estimate {
namespace {

using testing::HasSubstr;

/// A day is long or short for all jobs; account 1 waits ten times as long as others.
foresight::Polls made_polls(int days) {
  std::mt19937 random(3);
  foresight::Polls polls;
  for (int day = 0; day < days; ++day) {
    for (int at = 0; at < 120; ++at) {
      foresight::PolledJob job;
      job.polled = day * foresight::kDay;
      job.submitted = job.eligible = job.polled - 100;
      job.partition = static_cast<std::uint32_t>(at % 2);
      job.account = static_cast<std::uint32_t>(random() % 4);
      job.known.fill(1);
      job.known[foresight::known_column("time_limit_sec")] = job.account == 1 ? 7200 : 3600;
      const auto noise = static_cast<foresight::Seconds>(random() % 100);
      polls.jobs.push_back(job);
      polls.waited.push_back((job.account == 1 ? 6000 : 600) + noise);
    }
  }
  return polls;
}

Learner learner_here(const std::string& config) {
  const std::shared_ptr<Estimator> estimator =
      std::move(*PluginHost({PLUGINS}).estimator("xgboost", config));
  return [estimator](const TrainingTable& table) -> Result<std::unique_ptr<EstimatorModel>> {
    const auto model = estimator->train(table);
    if (!model) return model.error();
    return estimator->load(*model);
  };
}

boost::json::object replayed(const foresight::Polls& polls, Learner learner) {
  ReplayOptions options;
  options.estimator = "xgboost";
  options.learner = std::move(learner);
  return replay(polls, options, [](const std::string&, std::size_t, std::size_t) {});
}

TEST(ReplayOfPolls, AnEstimatorIsBetterThanWhatDoesNotLearn) {
  const auto found = replayed(
      made_polls(31), learner_here("{num_round: 20, eta: 0.3, max_depth: 3, min_child_weight: 5}"));
  EXPECT_TRUE(found.at("unused").as_array().empty()) << boost::json::serialize(found.at("unused"));
  for (const auto& protocol : found.at("protocols").as_array()) {
    const auto& rows = protocol.at("rows").as_array();
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_LT(rows[3].at("mean_square").as_double(), 0.05);
    EXPECT_LT(rows[3].at("mean_square").as_double(), rows[1].at("mean_square").as_double());
    EXPECT_GT(rows[3].at("within_2").as_double(), 0.95);
  }
  const auto& held = found.at("protocols").at(1).at("rows").at(3).at("held_90").as_array();
  ASSERT_EQ(held.size(), 2u);
  for (const auto& block : held) EXPECT_NEAR(block.as_double(), 0.9, 0.1);
}

/// 26 polls of 60 jobs as a file; `afterwards` stands in all columns that nobody knows at a poll.
std::string text_of_polls(const std::string& afterwards) {
  std::string text =
      "poll_wait_sec,poll_time,submit_time,eligible_time,partition_id_x,account_id,req_tres";
  for (const auto title : foresight::kKnownColumns) text.append(",").append(title);
  for (const auto title : foresight::kUnreadColumns) text.append(",").append(title);
  std::mt19937 random(5);
  for (int day = 1; day <= 26; ++day) {
    const std::string date = (day < 10 ? "2021-05-0" : "2021-05-") + std::to_string(day);
    for (int job = 0; job < 60; ++job) {
      const auto account = random() % 4;
      text += "\n" + std::to_string((account == 1 ? 90'000 : 900) + random() % 300);
      for (const char* time : {" 12:00:00", " 11:00:00", " 11:00:00"})
        text.append(",").append(date).append(time);
      text += "," + std::to_string(random() % 2) + "," + std::to_string(account) + ",node=1";
      for (std::size_t at = 0; at < foresight::kKnownColumns.size(); ++at)
        text += "," + std::to_string(random() % 9);
      for (std::size_t at = 0; at < foresight::kUnreadColumns.size(); ++at)
        text += "," + afterwards;
    }
  }
  return text + "\n";
}

TEST(ReplayOfPolls, ColumnsThatAreKnownOnlyAfterwardsChangeNothingThatIsTold) {
  const auto found_in = [](const std::string& text) {
    std::istringstream in(text);
    return boost::json::serialize(
        replayed(foresight::read_polls(in), learner_here("{num_round: 5, min_child_weight: 5}")));
  };
  EXPECT_EQ(found_in(text_of_polls("1")), found_in(text_of_polls("nonsense")));
}

TEST(ReplayOfPolls, WithoutAnEstimatorItsRowIsLeftOut) {
  const auto found = replayed(made_polls(26), {});
  EXPECT_TRUE(found.at("estimator").is_null());
  EXPECT_EQ(found.at("protocols").at(0).at("rows").as_array().size(), 3u);
}

TEST(ReplayOfPolls, AModelThatIsWorseThanMediansIsNotUsed) {
  class Liar final : public EstimatorModel {
    Result<std::vector<double>> predict(const FeatureTable& rows) const override {
      return std::vector<double>(rows.rows(), 1e6);
    }
  };
  const auto found = replayed(made_polls(26), [](const TrainingTable&) {
    return Result<std::unique_ptr<EstimatorModel>>(std::make_unique<Liar>());
  });
  const auto& rows = found.at("protocols").at(1).at("rows").as_array();
  EXPECT_EQ(rows[3].at("mean_square"), rows[1].at("mean_square"));
  EXPECT_THAT(boost::json::serialize(found.at("unused")), HasSubstr("on the newest days"));
}

TEST(ReplayOfPolls, TooFewDaysAreRefused) {
  EXPECT_THROW(replayed(made_polls(10), {}), std::invalid_argument);
}

}  // namespace
}  // namespace hpcbatch::estimate
