// Training in a process of its own.
#include "estimate/training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::estimate {
namespace {

using testing::HasSubstr;

TrainingTable hundred_waits() {
  TrainingTable table;
  table.inputs.features = {"nodes", "hour"};
  for (int row = 0; row < 100; ++row) {
    table.inputs.values.push_back(static_cast<float>(row % 10));
    table.inputs.values.push_back(static_cast<float>(row % 24));
    table.waited.push_back(60 * (row % 10 + 1));
  }
  return table;
}

TEST(TableBytes, ComeBackAsTheyWere) {
  Lesson lesson{"num_round: 3", hundred_waits()};
  lesson.table.weights = {1, 2, 3};
  lesson.table.is_pending = {0, 1};
  const std::string bytes = to_bytes(lesson);
  const Lesson back = lesson_of(bytes);
  EXPECT_EQ(back.config_yaml, "num_round: 3");
  EXPECT_EQ(back.table.inputs.features, lesson.table.inputs.features);
  EXPECT_EQ(back.table.inputs.values, lesson.table.inputs.values);
  EXPECT_EQ(back.table.waited, lesson.table.waited);
  EXPECT_EQ(back.table.weights, lesson.table.weights);
  EXPECT_EQ(back.table.is_pending, lesson.table.is_pending);
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, bytes.size() - 1})
    EXPECT_THROW((void)lesson_of(bytes.substr(0, size)), std::exception) << size;
  EXPECT_THROW((void)lesson_of(bytes + "x"), std::exception);
}

TEST(TrainApart, GivesTheModelThatTheEstimatorItselfGives) {
  const auto apart = train_apart({PROGRAM, "xgboost"}, {"num_round: 5", hundred_waits()});
  ASSERT_TRUE(apart) << apart.error().text;
  const auto here = PluginHost({PLUGINS}).estimator("xgboost", "num_round: 5");
  ASSERT_TRUE(here) << here.error().text;
  EXPECT_EQ(*apart, *(*here)->train(hundred_waits()));
}

TEST(TrainApart, HandsOnWhyThereIsNoModel) {
  EXPECT_EQ(train_apart({PROGRAM, "xgboost"}, {"", {}}).error().text, "the table has no columns");
  EXPECT_THAT(train_apart({PROGRAM, "xgboost"}, {"num_rond: 5", hundred_waits()}).error().text,
              HasSubstr("unknown key 'num_rond'"));
  EXPECT_THAT(train_apart({PROGRAM, "nobody"}, {"", hundred_waits()}).error().text,
              HasSubstr("there is no estimator plugin 'nobody'"));
  EXPECT_THAT(train_apart({"/no/such/program", "xgboost"}, {"", hundred_waits()}).error().text,
              HasSubstr("cannot start /no/such/program to train a model"));
}

/// A program that does something else in the place of the training.
class TrainingStandIn : public testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }
  std::string that_does(const std::string& script) {
    std::ofstream(path_) << "#!/bin/sh\n" << script << "\n";
    ::chmod(path_.c_str(), 0755);
    return path_;
  }
  std::string path_ = testing::TempDir() + "stand-in-" + std::to_string(::getpid());
};

TEST_F(TrainingStandIn, OneThatDiesOrNeverEndsIsAnError) {
  const Lesson lesson{"", hundred_waits()};
  const auto died = train_apart({that_does("kill -SEGV $$"), "xgboost"}, lesson);
  ASSERT_FALSE(died);
  EXPECT_EQ(died.error().text, "training with xgboost was ended by SIGSEGV");
  const auto endless =
      train_apart({that_does("exec sleep 600"), "xgboost", std::chrono::seconds(1)}, lesson);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().kind, Error::Kind::Transient);
  EXPECT_EQ(endless.error().text, "training with xgboost took over 1 s and was ended");
}

}  // namespace
}  // namespace hpcbatch::estimate
