// Several sites as one room: work goes where it is expected to start first, and a site that fails
// keeps none of it.
#include "engine_test.hpp"

#include "engine/sites/site_forecast.hpp"

namespace hpcbatch {
namespace {

class SitesTest : public EngineTest {
 protected:
  SitesTest() { given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})}); }

  /// An allocation of a site that waited so long before it ran, and that is over.
  void waited(const std::string& site, const std::string& letter, Duration wait) {
    submit(New().on(site));
    const std::string task = std::to_string(saved_.last_array().value);
    accepts(letter);
    after(wait);
    registers(letter + "0");
    starts(task);
    ends(task);
    leaves(letter + "0");
    disconnects(letter + "0");
    batch_ended(letter, EndCause::Completed);
    after(16s);
    reads_outbox(letter);
    forget_what_was_asked();
  }
  const ShapeState& shape_at(std::size_t site) const {
    return engine_->sites().sites()[site].shapes[0];
  }
  std::optional<Duration> expected_at(std::size_t site) const {
    return SiteForecast(engine_->sites(), now_)
        .expected_wait(engine_->sites().sites()[site], shape_at(site));
  }
};

TEST_F(SitesTest, WorkGoesWhereItIsExpectedToStartFirst) {
  waited("here", "A", 10min);
  EXPECT_EQ(expected_at(0), Duration{10min});
  EXPECT_FALSE(expected_at(1));
  submit(New());
  expect({"accept 2", "open B: cpu of there"});  // unknown: it gets tried
  accepts("B");
  after(20min);
  EXPECT_EQ(expected_at(1), Duration{20min}) << "as one that waits still says";
  submit(New().array(1, 300));
  expect({"accept 3", "open C: cpu of here"});
}

TEST_F(SitesTest, AboutTheSameWaitsLeaveTheConfigurationsOrder) {
  waited("here", "A", 11min);
  waited("there", "B", 10min);
  submit(New());
  expect({"accept 3", "open C: cpu of here"});
}

TEST_F(SitesTest, WaitsAreKnownAfterARestart) {
  waited("here", "A", 10min);
  waited("there", "B", 1min);
  restarts();
  EXPECT_EQ(expected_at(0), Duration{10min});
  EXPECT_EQ(expected_at(1), Duration{1min});
  submit(New());
  expect({"accept 3", "open C: cpu of there"});
}

TEST_F(SitesTest, AWaitOfADayAgoIsForgotten) {
  waited("here", "A", 10min);
  waited("there", "B", 1min);
  after(25h);
  EXPECT_FALSE(expected_at(0));
  submit(New());
  expect({"accept 3", "open C: cpu of here"});
}

TEST_F(SitesTest, AWaitingTaskIsToldWhenItIsExpectedToStart) {
  waited("here", "A", 10min);
  submit(New().on("here"));
  accepts("B");
  after(4min);
  expect_explained("2", "*expected to start in about 6m on here");
  after(9min);
  expect_explained("2", "*was expected to start on here 3m ago, and has not");
  submit(New().not_on("here"));
  expect_explained("3", "*allocation * on there is submitting since 0s");
  forget_what_was_asked();
}

class FailingSiteTest : public SitesTest {};

TEST_F(FailingSiteTest, ASiteThatCannotTakeItIsLeftAloneWhileTheOtherGetsTheWork) {
  submit(New());
  refuses("A", Refusal::Transient, "no contact");
  expect({"accept 1", "open A: cpu of here", "forget A", "open B: cpu of there"});
  submit(New().array(1, 400));
  expect({"accept 2"});  // the answer about B is waited for
  accepts("B");
  expect({"open C: cpu of there"});
  after(9s);
  expect_nothing();
}

TEST_F(FailingSiteTest, ASiteWhosePollsFailIsAskedForNothingThoughItsPilotsWork) {
  given_pilot();
  submit(New().array(1, 4));
  starts("2.1-4");
  forget_what_was_asked();
  polls_succeed_ = false;
  after(40s);
  expect_nothing();
  submit(New().array(1, 4).time(50min));
  expect({"accept 3", "open B: cpu of there"});
  accepts("B");
  registers("B0");
  expect({"welcome B0", "lease 3.1-4 to B0"});
  after(1min);
  expect_nothing();
  polls_succeed_ = true;
  after(5min);
  submit(New().array(1, 4).time(50min).not_on("there"));
  expect({"accept 4", "open C: cpu of here"});
}

TEST_F(FailingSiteTest, WhatWasQueuedThereCountsAgainWhenItIsBack) {
  submit(New());
  accepts("A");
  submit(New().array(1, 1000));
  forget_what_was_asked();
  const std::size_t before = engine_->sites().allocations().size();
  ASSERT_GT(before, 1U);
  for (std::size_t i = 1; i < before; ++i) accepts(std::string(1, static_cast<char>('A' + i)));
  polls_succeed_ = false;
  after(20s);
  // All of it is asked for once more, from the other; the first of a shape goes alone.
  const std::string first(1, static_cast<char>('A' + before));
  expect({"open " + first + ": cpu of there"});
  accepts(first);
  const std::size_t both = engine_->sites().allocations().size();
  EXPECT_EQ(both, 2 * before);
  forget_what_was_asked();
  polls_succeed_ = true;
  after(10min);
  expect_nothing();
  EXPECT_EQ(engine_->sites().allocations().size(), both);
}

TEST_F(FailingSiteTest, ASiteThatNobodyAsksAnyMoreIsTriedAgain) {
  submit(New().on("here"));
  polls_succeed_ = false;
  after(40s);
  refuses("A", Refusal::Transient, "no contact");
  forget_what_was_asked();
  after(11s);
  expect({"open B: cpu of here"});
  expect_explained("1", "*is submitting since*");
}

TEST_F(FailingSiteTest, WhatTheOthersDidIsNotDoneAgainThere) {
  submit(New());
  accepts("A");
  polls_succeed_ = false;
  after(20s);
  expect({"accept 1", "open A: cpu of here", "open B: cpu of there"});
  accepts("B");
  registers("B0");
  starts("1");
  ends("1");
  forget_what_was_asked();
  polls_succeed_ = true;
  after(5min);
  registers("A0");
  expect({"welcome A0"});  // its pilot finds nothing to do and ends by itself
  leaves("A0");
  expect({"end A0"});
}

TEST_F(SitesTest, AListThatIsLateIsToldBeforeItIsGivenUp) {
  submit(New());
  accepts("A");
  forget_what_was_asked();
  polls_hang_ = true;
  after(Site{}.poll_every);
  const SiteState& here = engine_->sites().sites()[0];
  EXPECT_TRUE(here.poll_in_flight);
  EXPECT_EQ(here.trouble, "");
  after(20s);
  EXPECT_NE(here.trouble.find("has not answered"), std::string::npos) << here.trouble;
  expect_explained("1", "*site here has not answered for *");
  happens(SitePolled{"here", {}, now_});
  EXPECT_EQ(here.trouble, "");
}

}  // namespace
}  // namespace hpcbatch
