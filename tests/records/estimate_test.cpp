// What a task is expected to need, from runs of its kind.
#include "records/estimate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch::records {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kGigabyte = std::int64_t{1} << 30;

class EstimateTest : public testing::Test {
 protected:
  EstimateTest() {
    Shape shape{.name = "cpu", .walltime = 2h};
    shape.capacity.set(kCpus, Amount::of(4));
    shape.capacity.set(kMemory, Amount::of(16 * kGigabyte));
    site_.name = "here";
    site_.shapes = {shape};
    needs_.amounts.set(kCpus, Amount::of(1));
  }
  Estimated made(EstimateMode mode = EstimateMode::Use) const {
    return estimated(needs_, estimate_, "bwa", mode, {&site_});
  }
  void ask_for(std::int64_t memory) { needs_.amounts.set(kMemory, Amount::of(memory)); }
  static std::int64_t memory(const Needs& needs) { return needs.amounts.get(kMemory).whole(); }

  Site site_;
  Needs needs_;
  Estimate estimate_{.runs = 312, .memory = kGigabyte, .time = 10min};
};

TEST_F(EstimateTest, NothingIsGuessedFromFewerThanTenRuns) {
  Profile profile;
  for (int run = 0; run < 9; ++run) {
    profile.memory.add(1e9);
    profile.run.add(60);
  }
  EXPECT_FALSE(estimate_of(profile));
  profile.run.add(60);
  const auto times = estimate_of(profile);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->memory, 0);
  EXPECT_GT(times->time, 60s);
  EXPECT_LT(times->time, 90s);
  profile.memory.add(1e9);
  EXPECT_GT(estimate_of(profile)->memory, 1'100'000'000);
  EXPECT_LT(estimate_of(profile)->memory, 1'500'000'000);
}

TEST_F(EstimateTest, WhatIsNotSaidIsANeedAndNoLimit) {
  const Needs needs = made().needs;
  EXPECT_EQ(memory(needs), kGigabyte);
  EXPECT_EQ(needs.time, Duration{10min});
  ASSERT_TRUE(needs.guess);
  EXPECT_EQ(needs.guess->runs, 312U);
  EXPECT_EQ(as_asked(needs), needs_);
}

TEST_F(EstimateTest, MuchMoreThanIsUsedIsPackedByUse) {
  ask_for(8 * kGigabyte);
  needs_.time = 1h;
  const Estimated one = made();
  EXPECT_EQ(memory(one.needs), kGigabyte);
  EXPECT_EQ(one.needs.time, Duration{1h}) << "what is said of time is a limit";
  EXPECT_EQ(as_asked(one.needs), needs_);
  EXPECT_THAT(one.advice, ElementsAre(HasSubstr("the 312 runs of bwa")));
}

TEST_F(EstimateTest, ALittleMoreThanIsUsedStaysAsItIs) {
  ask_for(kGigabyte + kGigabyte / 2);
  needs_.time = 1h;
  EXPECT_EQ(made().needs, needs_);
  EXPECT_TRUE(made().advice.empty());
  ask_for(kGigabyte / 2);
  EXPECT_EQ(made().needs, needs_) << "less is the user's business";
}

TEST_F(EstimateTest, AdviceChangesNothing) {
  ask_for(8 * kGigabyte);
  EXPECT_EQ(made(EstimateMode::Advise).needs, needs_);
  const Estimated advised = made(EstimateMode::Advise);
  ASSERT_EQ(advised.advice.size(), 1U);
  EXPECT_THAT(advised.advice.front(),
              testing::ContainsRegex("^[0-9.]+G memory is asked for, and "));
  EXPECT_EQ(made(EstimateMode::Off).advice.size(), 0U);
}

TEST_F(EstimateTest, AGuessThatFitsNowhereIsNone) {
  estimate_.time = 30h;
  EXPECT_EQ(made().needs, needs_);
}

TEST_F(EstimateTest, WhatIsSaidAnewIsGuessedNoLonger) {
  NeedsChange more;
  more.amounts.set(kMemory, Amount::of(2 * kGigabyte));
  Needs needs = changed(made().needs, more);
  EXPECT_EQ(memory(needs), 2 * kGigabyte);
  ASSERT_TRUE(needs.guess);
  EXPECT_FALSE(needs.guess->memory);
  EXPECT_TRUE(needs.guess->time);
  more.time = 1h;
  EXPECT_FALSE(changed(needs, more).guess);
}

TEST_F(EstimateTest, AWholeGpuIsPackedWhereAPartDid) {
  site_.shapes.front().capacity.set("gpus/v100", Amount::of(2));
  estimate_ = {.runs = 40, .gpus = 0.25};
  needs_.amounts.set("gpus", Amount::of(1));
  const Estimated advised = made(EstimateMode::Advise);
  EXPECT_THAT(advised.advice, ElementsAre(HasSubstr("1 of a GPU is asked for, and 0.25 did")));
  EXPECT_EQ(advised.needs, needs_);
  const Needs packed = made().needs;
  EXPECT_EQ(packed.amounts.gpus(), Amount::of_fraction(0.25));
  ASSERT_TRUE(packed.guess && packed.guess->gpus);
  EXPECT_EQ(as_asked(packed), needs_);
  // Beside others it may take longer than its limit.
  needs_.time = 10min;
  estimate_.time = 6min;
  EXPECT_FALSE(made().needs.guess);
  needs_.time = 12min;
  EXPECT_TRUE(made().needs.guess && made().needs.guess->gpus);
  needs_.time.reset();
  estimate_.time = {};
  needs_.amounts.set("gpus", Amount::of_fraction(0.25));
  EXPECT_FALSE(made().needs.guess);
}

}  // namespace
}  // namespace hpcbatch::records
