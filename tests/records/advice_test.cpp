// Which changes of what people ask for would save most.
#include "records/advice.hpp"

#include "records/estimate.hpp"

#include <gmock/gmock.h>

#include <chrono>

namespace hpcbatch::records {
namespace {

constexpr double kMegabyte = 1 << 20;

KindUse kind(const std::string& name, double runs, double memory_asked, double memory_used) {
  KindUse use;
  use.kind = name;
  use.usage.memory_asked = runs * memory_asked * 100;
  use.usage.cpu_asked = runs * 100;
  use.profile.memory_asked = memory_asked;
  use.profile.cpus_asked = 1;
  for (int i = 0; i < runs; ++i) use.profile.memory.add(memory_used);
  return use;
}

TEST(Advice, WhatSavesMostComesFirst) {
  const auto advice = advice_for({kind("small", 100, 100 * kMegabyte, 20 * kMegabyte),
                                  kind("large", 100, 8000 * kMegabyte, 900 * kMegabyte)},
                                 5);
  ASSERT_EQ(advice.size(), 2U);
  EXPECT_EQ(advice[0].kind, "large");
  EXPECT_GE(advice[0].enough, 1.1 * 900 * kMegabyte) << "with head-room";
  EXPECT_LE(advice[0].enough, 1.5 * 900 * kMegabyte);
  EXPECT_NEAR(advice[0].saves, 100 * 100 * (advice[0].asked - advice[0].enough), 1e6);
}

TEST(Advice, FewRunsSayNothing) {
  EXPECT_TRUE(advice_for({kind("few", 9, 8000 * kMegabyte, kMegabyte)}, 5).empty());
  EXPECT_FALSE(advice_for({kind("ten", 10, 8000 * kMegabyte, kMegabyte)}, 5).empty());
}

TEST(Advice, AFewLongRunsSayNothingOfManyShortOnes) {
  KindUse use = kind("sweep", 0, 0, 0);
  use.usage.cpu_asked = 1000;
  for (int i = 0; i < 1000; ++i) use.profile.run.add(0.1);
  for (int i = 0; i < 30; ++i) use.profile.run.add(10);
  for (int i = 0; i < 30; ++i) use.profile.cpus.add(0.1);
  EXPECT_TRUE(advice_for({use}, 5).empty());
  for (int i = 0; i < 1000; ++i) use.profile.cpus.add(0.1);
  EXPECT_FALSE(advice_for({use}, 5).empty());
}

TEST(Advice, WhatIsNearlyRightIsLeftAlone) {
  EXPECT_TRUE(advice_for({kind("good", 100, 1024 * kMegabyte, 800 * kMegabyte)}, 5).empty());
}

KindUse gpu_kind_use(double busy, double memory) {
  KindUse use;
  use.kind = "infer";
  use.usage.gpu_asked = 3600;
  use.profile.gpus_asked = 1;
  for (int i = 0; i < 20; ++i) {
    use.profile.gpu_busy.add(busy);
    use.profile.gpu_memory.add(memory * 1024 * kMegabyte);
    broker::learn(use.profile.on["gpus/v100"], std::chrono::seconds{100});
  }
  return use;
}

TEST(Advice, APartOfAGpuIsEnoughForWhatKeepsItIdle) {
  // A V100 has 16 GB.
  const auto half = advice_for({gpu_kind_use(70, 3)}, 5);
  ASSERT_EQ(half.size(), 1U);
  EXPECT_EQ(half[0].what, Advice::What::Gpus);
  EXPECT_EQ(half[0].enough, 0.5);
  EXPECT_NEAR(half[0].saves, 1800, 1);
  EXPECT_EQ(gpus_enough(gpu_kind_use(10, 3).profile), 0.25) << "an eighth has too little memory";
  EXPECT_EQ(gpus_enough(gpu_kind_use(10, 1).profile), 0.125);
  EXPECT_EQ(gpus_enough(gpu_kind_use(90, 1).profile), 0);
  EXPECT_EQ(gpus_enough(gpu_kind_use(40, 12).profile), 0);
}

TEST(Advice, WhatIsSlowBesideOthersIsPackedNoMore) {
  KindUse use = gpu_kind_use(40, 3);
  for (int i = 0; i < 10; ++i)
    broker::learn(use.profile.on[packed_on("gpus/v100", 0.5)], std::chrono::seconds{170});
  EXPECT_EQ(gpus_enough(use.profile), 0.5);
  for (int i = 0; i < 40; ++i)
    broker::learn(use.profile.on[packed_on("gpus/v100", 0.5)], std::chrono::seconds{190});
  EXPECT_EQ(gpus_enough(use.profile), 0);
}

TEST(Advice, APartThatIsKeptBusyIsNotTooMuch) {
  // Two of them together keep it busy all the time.
  KindUse use = gpu_kind_use(50, 1);
  use.profile.gpus_asked = 0.5;
  EXPECT_EQ(gpus_enough(use.profile), 0);
  use = gpu_kind_use(25, 1);
  use.profile.gpus_asked = 0.5;
  EXPECT_EQ(gpus_enough(use.profile), 0.25);
}

TEST(Advice, OfADeviceThatNobodyKnowsAndOfSeveralNothingIsSaid) {
  KindUse use = gpu_kind_use(10, 1);
  use.profile.on["gpus/special"] = use.profile.on["gpus/v100"];
  EXPECT_EQ(gpus_enough(use.profile), 0);
  use = gpu_kind_use(10, 1);
  use.profile.gpus_asked = 2;
  EXPECT_EQ(gpus_enough(use.profile), 0);
}

TEST(Advice, NoMoreThanWereAskedFor) {
  std::vector<KindUse> kinds;
  kinds.reserve(20);
  for (int i = 0; i < 20; ++i)
    kinds.push_back(kind("k" + std::to_string(i), 50, 8000 * kMegabyte, kMegabyte));
  EXPECT_EQ(advice_for(kinds, 5).size(), 5U);
}

TEST(Advice, WhatIsEnoughIsEnoughForAll) {
  KindUse use = kind("mixed", 9970, 8000 * kMegabyte, 100 * kMegabyte);
  for (int i = 0; i < 30; ++i) use.profile.memory.add(7000 * kMegabyte);
  EXPECT_GE(memory_enough(use.profile), 7000 * kMegabyte);
}

TEST(Advice, CpusAreWholeOnesAboveOne) {
  Profile profile;
  for (int i = 0; i < 20; ++i) profile.cpus.add(2.3);
  EXPECT_EQ(cpus_enough(profile), 3);
  profile = {};
  for (int i = 0; i < 20; ++i) profile.cpus.add(0.01);
  EXPECT_EQ(cpus_enough(profile), 0.25);
  profile = {};
  for (int i = 0; i < 20; ++i) profile.cpus.add(1.04);
  EXPECT_EQ(cpus_enough(profile), 1) << "the last tenth is noise";
}

TEST(Advice, WhatWasKilledForItsMemoryNeededMoreThanItHad) {
  KindUse use = kind("killed", 60, 4000 * kMegabyte, 1000 * kMegabyte);
  records::Run killed;
  killed.failure = Failure::OomTask;
  killed.started = Time{};
  killed.ended = Time{} + std::chrono::minutes(1);
  killed.peak_memory = std::uint64_t{3990} << 20;
  Needs needs;
  needs.amounts.set(kMemory, Amount::of(std::int64_t{4000} << 20));
  for (int i = 0; i < 40; ++i) add(use.profile, killed, needs);
  EXPECT_GE(memory_enough(use.profile), 4000 * kMegabyte);
  EXPECT_TRUE(advice_for({use}, 5).empty());
}

TEST(Advice, KindsThatAreOneTogetherGetNone) {
  EXPECT_TRUE(
      advice_for({kind(std::string(kOtherKinds), 100, 8000 * kMegabyte, kMegabyte)}, 5).empty());
}

}  // namespace
}  // namespace hpcbatch::records
