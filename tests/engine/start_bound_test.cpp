// Who says when an allocation starts: the queue as it is, else a model of the site's past, else the
// waits before it; each for as long as it has held.
#include "engine_test.hpp"

#include "engine/sites/site_forecast.hpp"

namespace hpcbatch {
namespace {

using By = StartBound::By;

class StartBoundTest : public EngineTest {
 protected:
  StartBoundTest() { given({site_of("here", {cpu_shape()})}); }

  static std::vector<Duration> up_to(Duration most) {
    std::vector<Duration> waits;
    for (int i = 0; i <= 20; ++i) waits.push_back(most * i / 20);
    return waits;
  }
  void told(QueueForeseen::Start start) {
    happens(QueueForeseen{.site = "here",
                          .looked = now_,
                          .shapes = {{"cpu", std::move(start)}},
                          .queued = {},
                          .model_waits = 500});
  }
  void told_by_model(Duration most) {
    told({.waits = {}, .blind = "who has GPUs is not seen", .learned = up_to(most)});
  }
  const ShapeState& shape() const { return engine_->sites().sites()[0].shapes[0]; }
  std::optional<StartBound> next() const {
    return SiteForecast(engine_->sites(), now_).next_start(shape());
  }
  std::optional<StartBound> of_queued() const {
    for (const auto& [id, entry] : engine_->sites().allocations())
      if (entry.facts.state == AllocationState::Queued)
        return SiteForecast(engine_->sites(), now_).start_bound(entry);
    return std::nullopt;
  }
};

TEST_F(StartBoundTest, WhereTheQueueSaysNothingTheModelDoes) {
  told_by_model(100min);
  const auto bound = next();
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->by, By::Model);
  EXPECT_EQ(bound->from, 500U);
  EXPECT_EQ(*bound->half - now_, 50min);
  EXPECT_EQ(bound->most - now_, 90min);
}

TEST_F(StartBoundTest, TheQueueAsItIsKnowsBetter) {
  told({.waits = up_to(20min), .learned = up_to(100min)});
  EXPECT_EQ(next()->by, By::Queue);
  EXPECT_EQ(*next()->half - now_, 10min);
  told({.waits = up_to(20h), .by_limits = true, .learned = up_to(100min)});
  EXPECT_EQ(next()->by, By::Model) << "what limits allow is no expectation";
  told({.waits = up_to(20h), .by_limits = true});
  EXPECT_EQ(next()->by, By::Queue);
  EXPECT_FALSE(next()->half);
}

TEST_F(StartBoundTest, OneThatWaitsIsToldWhatWasToldWhenItWasAskedFor) {
  told_by_model(100min);
  submit(New());
  accepts("A");
  forget_what_was_asked();
  const Time asked = now_;
  after(20min);
  told_by_model(10h);
  const auto bound = of_queued();
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->by, By::Model);
  EXPECT_GT(*bound->half - asked, 50min) << "those that are over count no more";
  EXPECT_LE(bound->most - asked, 100min);
  expect_explained(
      "1",
      "*expected to start in about * on here, with 90 % in * at most, from a model of 500 waits*");
  after(90min);
  EXPECT_FALSE(of_queued()) << "all that it told has passed";
}

TEST_F(StartBoundTest, WhereNothingStartsNoFigureIsTold) {
  told_by_model(100min);
  ASSERT_TRUE(next());
  submit(New());
  accepts("A");
  forget_what_was_asked();
  told({.waits = {},
        .blind = "partition cpu is down: it starts nothing now",
        .learned = up_to(100min),
        .is_closed = true});
  EXPECT_FALSE(next());
  EXPECT_FALSE(of_queued());
  expect_explained("1", "*no pilot of shape cpu of here starts now: partition cpu is down*");
  after(4min);
  EXPECT_TRUE(of_queued()) << "that look is old";
}

TEST_F(StartBoundTest, NoMomentThatIsOverIsTold) {
  told({.waits = up_to(2min)});
  after(90s);
  ASSERT_TRUE(next());
  EXPECT_GE(*next()->half, now_);
  EXPECT_GE(next()->most, *next()->half);
  after(40s);
  ASSERT_TRUE(next());
  EXPECT_EQ(*next()->half, now_) << "any moment";
  EXPECT_EQ(next()->most, now_);
  after(30s);
  EXPECT_FALSE(next()) << "it should long have started";
}

TEST_F(StartBoundTest, WhatWasToldIsScoredByWhoToldIt) {
  told({.waits = up_to(20min)});
  submit(New());
  accepts("A");
  forget_what_was_asked();
  happens(QueueForeseen{.site = "here",
                        .looked = now_,
                        .shapes = {},
                        .queued = {{allocation("A").name, {.waits = up_to(20min)}}}});
  ASSERT_EQ(of_queued()->by, By::Queue);
  after(2min);
  registers("A0");
  forget_what_was_asked();
  ASSERT_EQ(shape().told.size(), 1U);
  const foresight::WaitScore& score = shape().told.at(By::Queue);
  EXPECT_EQ(score.count, 1U);
  EXPECT_EQ(score.by_half, 1);
  EXPECT_EQ(score.by_most, 1);
}

TEST_F(StartBoundTest, AModelThatDoesNotHoldIsAskedNoMore) {
  for (int i = 0; i < 12; ++i) {
    const std::string letter(1, static_cast<char>('A' + i));
    told_by_model(1min);
    submit(New());
    accepts(letter);
    after(30min);
    registers(letter + "0");
    const std::string task = std::to_string(saved_.last_array().value);
    starts(task);
    ends(task);
    leaves(letter + "0");
    disconnects(letter + "0");
    batch_ended(letter, EndCause::Completed);
    after(16s);
    reads_outbox(letter);
    forget_what_was_asked();
  }
  told_by_model(1min);
  const auto bound = next();
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->by, By::Waits);
  EXPECT_GE(*bound->half - now_, 30min);
}

}  // namespace
}  // namespace hpcbatch
