// What comes out of guarded calls.
#include "plugin_host/guarded.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <signal.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

TEST(Guarded, HandsOnValuesAndResults) {
  EXPECT_EQ(*guarded("p", [] { return 7; }), 7);
  EXPECT_TRUE(guarded("p", [] {}));
  const Result<int> result = guarded("p", [] {
    return Result<int>(Error{Error::Kind::Transient, "later"});
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::Transient);
}

TEST(Guarded, NamesThePluginThatThrew) {
  const auto result = guarded("slurm", []() -> Result<void> { throw std::runtime_error("bad"); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().text, "plugin slurm: bad");
  EXPECT_EQ(guarded("slurm", []() -> int { throw 1; }).error().text,
            "plugin slurm: it threw something that is no std::exception");
}

TEST(GuardedDeathTest, ACallThatEndsTheProcessIsNamed) {
  const std::string doing = "submitting a batch job at site here";
  EXPECT_EXIT(
      {
        name_crashes();
        const Doing named(doing);
        (void)guarded("slurm", [] { std::abort(); });
      },
      testing::KilledBySignal(SIGABRT),
      "this process ends by SIGABRT, by a fault in a plugin, while calling plugin slurm, while "
      "submitting a batch job at site here\n");
  EXPECT_EXIT(
      {
        name_crashes();
        const Doing named(doing);
        (void)guarded("slurm", [] { return 7; });
        std::abort();
      },
      testing::KilledBySignal(SIGABRT),
      "this process ends by SIGABRT, while submitting a batch job at site here\n");
  EXPECT_EXIT(
      {
        name_crashes();
        ::kill(::getpid(), SIGABRT);
      },
      testing::KilledBySignal(SIGABRT), "this process ends by SIGABRT\n");
}

}  // namespace
}  // namespace hpcbatch
