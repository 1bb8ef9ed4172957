// What comes out of guarded calls.
#include "plugin_host/guarded.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

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

}  // namespace
}  // namespace hpcbatch
