// What fits into what, and how often; GPUs of any kind take one kind.
#include "model/resources.hpp"
#include "model/needs.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hpcbatch {
namespace {

Resources of(std::initializer_list<std::pair<const char*, double>> amounts) {
  Resources resources;
  for (const auto& [name, amount] : amounts) resources.set(name, Amount::of_fraction(amount));
  return resources;
}

TEST(ResourcesTest, StaySortedAndHoldNoZeros) {
  Resources some = of({{"memory", 5}, {"cpus", 1}, {"licence", 2}});
  ASSERT_EQ(some.entries().size(), 3U);
  EXPECT_EQ(some.entries()[0].first, "cpus");
  EXPECT_EQ(some.entries()[2].first, "memory");
  some.set("licence", {});
  EXPECT_EQ(some, of({{"cpus", 1}, {"memory", 5}}));
  some.subtract(of({{"cpus", 1}}));
  EXPECT_EQ(some, of({{"memory", 5}}));
  EXPECT_EQ(some.get("cpus"), Amount{});
}

TEST(ResourcesTest, AddFractionsExactly) {
  Resources sum;
  for (int i = 0; i < 10; ++i) sum.add(of({{"cpus", 0.1}}));
  EXPECT_EQ(sum, of({{"cpus", 1}}));
}

TEST(ResourcesTest, HoldTheMemoryOfLargeNodes) {
  const std::int64_t bytes = std::int64_t{512} << 40;
  EXPECT_EQ(Amount::of(bytes).whole(), bytes);
}

TEST(ResourcesTest, NoAmountTurnsRound) {
  EXPECT_EQ(Amount::of(INT64_MAX).ticks, Amount::kMost);
  EXPECT_EQ(Amount::of(INT64_MIN).ticks, -Amount::kMost);
  EXPECT_EQ(Amount::of_fraction(9.3e14).ticks, Amount::kMost);
  EXPECT_EQ(Amount::of_fraction(1e300).ticks, Amount::kMost);
  EXPECT_EQ(Amount::of_fraction(-1e300).ticks, -Amount::kMost);
  EXPECT_EQ(Amount::of_fraction(1e-9).ticks, 1) << "who asks for a little asks for something";
  EXPECT_EQ(Amount::of_fraction(0).ticks, 0);
  std::mt19937_64 random(20);
  const std::int64_t edges[] = {0,        1, 16, 9999, 10'000, INT64_MAX / 10'000, INT64_MAX / 2,
                                INT64_MAX};
  const auto any = [&] {
    const std::int64_t edge = edges[random() % std::size(edges)];
    const auto near = static_cast<std::int64_t>(random() % 3);
    return Amount{edge > INT64_MAX - near ? edge : edge + near};
  };
  for (int i = 0; i < 100'000; ++i) {
    const Amount a = any(), b = any();
    EXPECT_GE(a + b, std::max(a, b));
    EXPECT_LE(a - b, a);
    EXPECT_EQ(a - b < Amount{}, a < b);
    Resources demand, supply;
    demand.set("cpus", a);
    supply.set("cpus", b);
    EXPECT_EQ(how_often(demand, supply) > 0, a <= b);
    Needs needs;
    needs.amounts.set(kMemory, a);
    EXPECT_GE(class_of(needs).amounts.get(kMemory), a);
  }
}

TEST(Fits, ComparesEachName) {
  const Resources supply = of({{"cpus", 4}, {"memory", 8}});
  EXPECT_TRUE(fits(of({{"cpus", 4}, {"memory", 8}}), supply));
  EXPECT_TRUE(fits({}, supply));
  EXPECT_FALSE(fits(of({{"cpus", 4.0001}}), supply));
  EXPECT_FALSE(fits(of({{"cpus", 1}, {"licence", 1}}), supply));
}

TEST(Fits, EitherOfSomeKindsTakesOneOfThem) {
  const Resources supply = of({{"gpus/a100", 2}, {"gpus/v100", 4}, {"gpus/t4", 8}});
  EXPECT_TRUE(fits(of({{"gpus/a100|h100", 2}}), supply));
  EXPECT_FALSE(fits(of({{"gpus/a100|h100", 3}}), supply));
  EXPECT_TRUE(fits(of({{"gpus/h100|v100|a100", 4}}), supply));
  EXPECT_FALSE(fits(of({{"gpus/h100|a10", 1}}), supply)) << "a10 is not the beginning of a100";
  EXPECT_EQ(resolve(of({{"gpus/a100|v100", 1}}), supply), of({{"gpus/v100", 1}}));
  EXPECT_EQ(resolve(of({{"gpus/a100|v100", 1}, {"gpus/v100", 3}}), supply),
            of({{"gpus/a100", 1}, {"gpus/v100", 3}}));
  EXPECT_EQ(how_often(of({{"gpus/a100|v100", 2}}), supply), 3U);
  EXPECT_EQ(show(of({{"gpus/a100|v100", 2}})), "2 a100 or v100");
}

TEST(Fits, AnyGpuTakesOneKindNotAMixture) {
  const Resources supply = of({{"gpus/a100", 2}, {"gpus/v100", 1}});
  EXPECT_TRUE(fits(of({{"gpus", 2}}), supply));
  EXPECT_FALSE(fits(of({{"gpus", 3}}), supply));
  EXPECT_TRUE(fits(of({{"gpus/v100", 1}}), supply));
  EXPECT_FALSE(fits(of({{"gpus/v100", 2}}), supply));
  EXPECT_FALSE(fits(of({{"gpus", 1}}), of({{"cpus", 8}})));
  EXPECT_TRUE(fits(of({{"gpus", 1}, {"gpus/a100", 2}}), supply)) << "the other kind is left";
  EXPECT_FALSE(fits(of({{"gpus", 2}, {"gpus/a100", 1}}), supply));
}

TEST(Resolve, GivesTheKindOfWhichMostIsLeft) {
  EXPECT_EQ(resolve(of({{"gpus", 1}}), of({{"gpus/a100", 1}, {"gpus/v100", 3}})),
            of({{"gpus/v100", 1}}));
  EXPECT_EQ(resolve(of({{"cpus", 2}}), of({{"cpus", 3}})), of({{"cpus", 2}}));
  EXPECT_EQ(resolve(of({{"gpus", 1}, {"gpus/v100", 3}}), of({{"gpus/a100", 1}, {"gpus/v100", 3}})),
            of({{"gpus/a100", 1}, {"gpus/v100", 3}}));
}

TEST(HowOften, IsBoundByTheScarcest) {
  EXPECT_EQ(how_often(of({{"cpus", 1}, {"memory", 4}}), of({{"cpus", 8}, {"memory", 17}})), 4U);
  EXPECT_EQ(how_often(of({{"cpus", 0.5}}), of({{"cpus", 8}})), 16U);
  EXPECT_EQ(how_often(of({{"cpus", 9}}), of({{"cpus", 8}})), 0U);
  EXPECT_EQ(how_often(of({{"gpus", 2}}), of({{"gpus/a100", 3}, {"gpus/v100", 5}})), 3U);
}

TEST(Show, NamesAmountsForPeople) {
  EXPECT_EQ(show(of({{"cpus", 4}, {"memory", 8589934592.0}, {"gpus/a100", 2}})),
            "4 cpus, 2 a100, 8G memory");
  EXPECT_EQ(show(of({{"gpus", 1}})), "1 gpu of any kind");
  EXPECT_EQ(show(Resources{}), "nothing");
}

}  // namespace
}  // namespace hpcbatch
