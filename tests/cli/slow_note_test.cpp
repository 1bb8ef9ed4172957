// What hangs is named, what does not is not.
#include "cli/process/process.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

TEST(SlowNote, SaysWhatIsWaitedForOnceItTakesLong) {
  std::promise<std::string> told;
  const SlowNote note("the file system of /home", 1ms,
                      [&](const std::string& text) { told.set_value(text); });
  EXPECT_EQ(told.get_future().get(), "the file system of /home");
}

TEST(SlowNote, SaysNothingOfWhatIsQuick) {
  std::atomic<int> told{0};
  for (int i = 0; i < 100; ++i) const SlowNote note("x", 1h, [&](const std::string&) { ++told; });
  EXPECT_EQ(told, 0);
}

TEST(SlowNote, SaysItAgainWhereThatIsAskedFor) {
  std::promise<void> thrice;
  int told = 0;
  const SlowNote note(
      "x", 1ms,
      [&](const std::string&) {
        if (++told == 3) thrice.set_value();
      },
      1ms);
  thrice.get_future().get();
}

}  // namespace
}  // namespace hpcbatch
