// What a task asks for, as the store keeps it.
#include "store/encoding.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hpcbatch::store {
namespace {

TEST(Encoding, NeedsComeBackAsTheyWere) {
  Needs guessed;
  guessed.guess = Guess{.runs = 12, .memory = true, .memory_asked = Amount::of(7), .time = true};
  EXPECT_EQ(decode_needs(encode(guessed)), guessed);
  EXPECT_EQ(decode_needs(encode(Needs{})), Needs{});
  Needs needs;
  needs.amounts.set(kCpus, Amount::of_fraction(1.5));
  needs.amounts.set("gpus/a100 80g", Amount::of(2));
  needs.time = std::chrono::minutes{90};
  needs.site = "far away";
  needs.not_on = {"farther", "farthest of all"};
  needs.tags = {"partition=long", "ssd"};
  needs.nodes = 3;
  needs.service = "preloaded python";
  EXPECT_EQ(decode_needs(encode(needs)), needs);
}

TEST(Encoding, NeedsOfAStoreThatKnewNoExcludedSitesExcludeNone) {
  EXPECT_TRUE(decode_needs("a10000 cpus\nshere\n").not_on.empty());
}

TEST(Encoding, ANeedThatIsNotUnderstoodIsNotDropped) {
  EXPECT_THROW(decode_needs("a10000 cpus\nZnew\n"), std::runtime_error);
  EXPECT_THROW(decode_needs("\n"), std::runtime_error);
}

}  // namespace
}  // namespace hpcbatch::store
