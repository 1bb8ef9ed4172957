// Needs are rounded up to classes in steps of about a tenth, never down.
#include "model/needs.hpp"

#include <gtest/gtest.h>

#include <set>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

Needs needing(std::int64_t memory, std::optional<Duration> time) {
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(1));
  needs.amounts.set(kMemory, Amount::of(memory));
  needs.time = time;
  return needs;
}

TEST(NeedsTest, LessIsWhatATaskMightNotDoWith) {
  using namespace std::chrono_literals;
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(2));
  const auto with = [&](const NeedsChange& change) {
    return gets_less(needs, changed(needs, change));
  };
  EXPECT_FALSE(with({}));
  EXPECT_TRUE(with({{}, 10s})) << "there was no limit";
  NeedsChange memory;
  memory.amounts.set(kMemory, Amount::of(1 << 30));
  EXPECT_FALSE(with(memory)) << "what was too little for one";
  needs.amounts.set(kMemory, Amount::of(1 << 29));
  needs.time = 10s;
  EXPECT_FALSE(with(memory));
  memory.amounts.set(kMemory, Amount::of(1 << 28));
  EXPECT_TRUE(with(memory));
  EXPECT_FALSE(with({{}, 20s}));
  EXPECT_TRUE(with({{}, 5s}));
  NeedsChange cpus;
  cpus.amounts.set(kCpus, Amount::of(1));
  EXPECT_TRUE(with(cpus));
  needs.amounts.set("gpus/v100", Amount::of(2));
  NeedsChange gpus;
  gpus.amounts.set("gpus/a100", Amount::of(1));
  EXPECT_TRUE(with(gpus));
  gpus.amounts.set("gpus/a100", Amount::of(2));
  EXPECT_FALSE(with(gpus)) << "of another kind";
}

TEST(NeedsTest, OtherGpusTakeThePlaceOfThoseBefore) {
  NeedsChange change;
  change.amounts.set("gpus/a100", Amount::of(2));
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(4));
  EXPECT_EQ(changed(needs, change).amounts.get("gpus/a100"), Amount::of(2)) << "had none";
  needs.amounts.set("gpus/k80|v100", Amount::of(1));
  Resources cpus_alone;
  cpus_alone.set(kCpus, Amount::of(16));
  needs.device.edit().instead = {cpus_alone};
  const Needs after = changed(needs, change);
  EXPECT_EQ(after.amounts.gpus(), Amount::of(2));
  EXPECT_EQ(after.amounts.get("gpus/a100"), Amount::of(2));
  EXPECT_EQ(after.device->instead.front(), cpus_alone) << "a way without stays one";
}

TEST(Classes, RoundUpByLittle) {
  for (std::int64_t memory = 1000; memory < 1'000'000'000'000; memory += memory / 7) {
    const Needs exact = needing(memory, Duration{memory});
    const Needs rounded = class_of(exact);
    const auto ratio = [](auto a, auto b) {
      return static_cast<double>(a) / static_cast<double>(b);
    };
    EXPECT_GE(rounded.amounts.get(kMemory), exact.amounts.get(kMemory));
    EXPECT_LE(ratio(rounded.amounts.get(kMemory).ticks, exact.amounts.get(kMemory).ticks), 1.13);
    EXPECT_GE(*rounded.time, *exact.time);
    EXPECT_LE(ratio(rounded.time->count(), exact.time->count()), 1.13);
    EXPECT_EQ(class_of(rounded), rounded) << "a class is of itself";
  }
}

TEST(Classes, KeepFewForMany) {
  std::set<Needs> classes;
  for (int i = 0; i < 10'000; ++i)
    classes.insert(class_of(needing(std::int64_t{1} << 30, 1h + i * 1s)));
  EXPECT_LE(classes.size(), 30U);
}

TEST(Classes, LeaveTheRestExact) {
  Needs needs = needing(1000, std::nullopt);
  needs.amounts.set(kCpus, Amount::of(17));
  needs.amounts.set("gpus/a100", Amount::of(17));
  needs.site = "cluster";
  needs.not_on = {"far", "slow"};
  needs.tags = {"fast"};
  const Needs rounded = class_of(needs);
  EXPECT_EQ(rounded.amounts.get(kCpus), Amount::of(17));
  EXPECT_EQ(rounded.amounts.get("gpus/a100"), Amount::of(17));
  EXPECT_EQ(rounded.site, "cluster");
  EXPECT_EQ(rounded.not_on, needs.not_on);
  EXPECT_EQ(rounded.tags, needs.tags);
  EXPECT_FALSE(rounded.time);
}

TEST(Classes, TellTimeFromNone) {
  EXPECT_NE(class_of(needing(1000, std::nullopt)), class_of(needing(1000, Duration{})));
}

TEST(Classes, HaveTheTimeThatMustBeLeft) {
  Needs needs = needing(1000, 10h);
  needs.time_request = 1h;
  EXPECT_EQ(class_of(needs), class_of(needing(1000, 1h)));
  needs.time.reset();
  EXPECT_EQ(class_of(needs), class_of(needing(1000, 1h)));
}

TEST(Classes, TellThoseThatMayNotRunAtASiteFromOthers) {
  Needs excluding = needing(1000, std::nullopt);
  excluding.not_on = {"far"};
  EXPECT_NE(class_of(excluding), class_of(needing(1000, std::nullopt)));
}

TEST(MayRunAt, LooksAtTheSiteThatIsNamedAndAtThoseThatAreNot) {
  Needs needs;
  EXPECT_TRUE(may_run_at(needs, "here"));
  needs.not_on = {"far", "there"};
  EXPECT_TRUE(may_run_at(needs, "here"));
  EXPECT_FALSE(may_run_at(needs, "far"));
  EXPECT_FALSE(may_run_at(needs, "there"));
  needs.site = "here";
  EXPECT_TRUE(may_run_at(needs, "here"));
  EXPECT_FALSE(may_run_at(needs, "elsewhere"));
}

TEST(ShowNeeds, SaysAllThatWasAsked) {
  Needs needs = needing(std::int64_t{8} << 30, 90min);
  needs.site = "cluster";
  needs.tags = {"big", "fast"};
  EXPECT_EQ(show(needs), "1 cpu, 8G memory, 1h30m, site cluster, tags big fast");
  needs.site.clear();
  needs.not_on = {"far", "there"};
  EXPECT_EQ(show(needs), "1 cpu, 8G memory, 1h30m, not on far there, tags big fast");
}

}  // namespace
}  // namespace hpcbatch
