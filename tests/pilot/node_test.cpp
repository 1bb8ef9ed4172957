// What a pilot finds on its node.
#include "pilot/node.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>

namespace hpcbatch::pilot {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Scratch, IsLeftOverWhenItIsOldAndNobodyHoldsIt) {
  std::string base = testing::TempDir() + "scratch-XXXXXX";
  ASSERT_NE(::mkdtemp(base.data()), nullptr);
  const std::string left = base + "/hpcbatch-pilot-Hb1.0-abc";
  ASSERT_EQ(::mkdir(left.c_str(), 0700), 0);
  EXPECT_THAT(left_over_scratch(base), IsEmpty()) << "its pilot may be about to lock it";
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, left.c_str(), old, 0), 0);
  EXPECT_THAT(left_over_scratch(base), ElementsAre(left));
  const Fd holder(::open(left.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(holder.get(), LOCK_EX), 0);
  EXPECT_THAT(left_over_scratch(base), IsEmpty());
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace hpcbatch::pilot
