// Clients, pilots and the engine itself each have descriptors of their own, however few there are.
#include "loop/descriptors.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace hpcbatch {
namespace {

TEST(Descriptors, EachHasSomeAndTheEngineKeepsSome) {
  for (const std::size_t limit : {16U, 64U, 256U, 1024U, 20'000U, 65'536U}) {
    const DescriptorBudget budget = budget_of(limit);
    EXPECT_GT(budget.clients, 0U) << limit;
    EXPECT_GT(budget.pilots, budget.clients) << limit;
    const std::size_t own = limit - budget.clients - budget.pilots;
    EXPECT_GE(own, std::min<std::size_t>(limit / 2, 256)) << limit;
  }
}

}  // namespace
}  // namespace hpcbatch
