// What comes out of guarded calls, and when a plugin's object is set aside.
#include "plugin_host/guarded.hpp"
#include "plugin_host/quarantine.hpp"

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

TEST(Quarantine, ThreeFailuresInARowSetAside) {
  Quarantine plugin;
  plugin.failed("one");
  plugin.failed("two");
  plugin.succeeded();
  plugin.failed("three");
  plugin.failed("four");
  EXPECT_FALSE(plugin.reason());
  plugin.failed("five");
  EXPECT_EQ(plugin.reason(), "five");
  plugin.failed("six");
  EXPECT_EQ(plugin.reason(), "five");
}

}  // namespace
}  // namespace hpcbatch
