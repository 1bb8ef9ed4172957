// What a task asks for, as the store keeps it.
#include "store/encoding.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hpcbatch::store {
namespace {

TEST(Encoding, NeedsComeBackAsTheyWere) {
  Needs guessed;
  guessed.guess = Guess{.runs = 12, .memory = true, .time = true, .memory_asked = Amount::of(7)};
  EXPECT_EQ(decode_needs(encode(guessed)), guessed);
  guessed.guess->gpus = true;
  guessed.guess->gpus_asked = Amount::of(1);
  EXPECT_EQ(decode_needs(encode(guessed)), guessed);
  EXPECT_EQ(decode_needs(encode(Needs{})), Needs{});
  Needs needs;
  needs.amounts.set(kCpus, Amount::of_fraction(1.5));
  needs.amounts.set("gpus/a100 80g", Amount::of(2));
  needs.time = std::chrono::minutes{90};
  needs.time_request = std::chrono::minutes{20};
  needs.site = "far away";
  needs.not_on = {"farther", "farthest of all"};
  needs.tags = {"partition=long", "ssd"};
  needs.nodes = 3;
  needs.service = "preloaded python";
  needs.device.edit().kind = "train a net";
  needs.device.edit().instead.resize(2);
  needs.device.edit().instead[0].set(kCpus, Amount::of(16));
  needs.device.edit().instead[0].set(kMemory, Amount::of(123));
  EXPECT_EQ(decode_needs(encode(needs)), needs);
}

TEST(Encoding, NeedsOfAStoreThatKnewNoExcludedSitesExcludeNone) {
  EXPECT_TRUE(decode_needs("a10000 cpus\nshere\n").not_on.empty());
}

TEST(Encoding, ANeedThatIsNotUnderstoodIsNotDropped) {
  EXPECT_THROW(decode_needs("a10000 cpus\nZnew\n"), std::runtime_error);
  EXPECT_THROW(decode_needs("\n"), std::runtime_error);
  for (const char* damaged : {"i10000 cpus\n", "a10000\n", "w\ni1\n", "p10000\n"})
    EXPECT_THROW(decode_needs(damaged), std::runtime_error) << damaged;
}

}  // namespace
}  // namespace hpcbatch::store
