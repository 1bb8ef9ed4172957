// Thousands of short random histories: after each every task has ended exactly once, whatever went
// wrong.
#include "world.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace hpcbatch {
namespace {

std::uint32_t seed_now = 0;

/// The engine's own checks abort: say where.
void say_seed(int) {
  char text[64];
  const int length =
      std::snprintf(text, sizeof text, "in the random history of seed %u\n", seed_now);
  [[maybe_unused]] const auto written =
      write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

class RandomTest : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomTest, EveryTaskEndsExactlyOnce) {
  std::signal(SIGABRT, say_seed);
  std::uint64_t tasks = 0;
  for (std::uint32_t seed = GetParam() * 250; seed < (GetParam() + 1) * 250; ++seed) {
    seed_now = seed;
    World world(seed);
    world.run(400);
    ASSERT_EQ(world.wrong(), "") << "seed " << seed;
    tasks += world.saved().results();
  }
  EXPECT_GT(tasks, 1000U) << "they had something to do";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTest, ::testing::Range(0U, 8U));

TEST(RandomTest, LongCampaign) {
  if (!std::getenv("HPCBATCH_LONG")) return;  // ./dev test --long
  std::signal(SIGABRT, say_seed);
  for (std::uint32_t seed = 1'000'000; seed < 1'100'000; ++seed) {
    seed_now = seed;
    World world(seed);
    world.run(400 + static_cast<int>(seed % 7) * 200);
    ASSERT_EQ(world.wrong(), "") << "seed " << seed;
  }
}

TEST(RandomTest, TheSameSeedIsTheSameHistory) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    World first(seed);
    World second(seed);
    first.run(400);
    second.run(400);
    ASSERT_EQ(first.fingerprint(), second.fingerprint()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hpcbatch
