// Whatever a task leaves is removed, and nothing behind a link.
#include "pilot/base/files.hpp"

#include "posix/files.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <filesystem>
#include <fstream>

namespace hpcbatch::pilot {
namespace {

namespace fs = std::filesystem;

struct RemoveTreeTest : testing::Test {
  RemoveTreeTest() {
    std::string name = testing::TempDir() + "/hpcbatch-remove-XXXXXX";
    root = ::mkdtemp(name.data());
    fs::create_directory(root + "/out");
    std::ofstream(root + "/out/safe") << "safe";
    fs::create_directory(root + "/tree");
  }
  ~RemoveTreeTest() override {
    EXPECT_TRUE(fs::exists(root + "/out/safe"));
    fs::remove_all(root);
  }
  std::string root;
};

TEST_F(RemoveTreeTest, TakesAllKindsOfThings) {
  ASSERT_EQ(::mkfifo((root + "/tree/fifo").c_str(), 0), 0);
  fs::create_directory_symlink(root + "/out", root + "/tree/link");
  fs::create_symlink("/dev/zero", root + "/tree/zero");
  fs::create_directories(root + "/tree/closed/inside");
  fs::permissions(root + "/tree/closed/inside", fs::perms::none);
  fs::permissions(root + "/tree/closed", fs::perms::none);
  EXPECT_TRUE(remove_tree(root + "/tree"));
  EXPECT_FALSE(fs::exists(root + "/tree"));
}

TEST_F(RemoveTreeTest, DoesNotFollowALinkInItsPlace) {
  fs::remove(root + "/tree");
  fs::create_directory_symlink(root + "/out", root + "/tree");
  EXPECT_FALSE(remove_tree(root + "/tree"));
}

TEST_F(RemoveTreeTest, GoesDeeperThanItHasDescriptors) {
  constexpr int kDepth = 5000;
  Fd at(::open((root + "/tree").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < kDepth; ++depth) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0700), 0);
    // Names that it would use itself.
    if (depth < 3)
      ASSERT_EQ(::mkdirat(at.get(), (".hpcbatch-deep-" + std::to_string(depth)).c_str(), 0), 0);
    at = Fd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  at.reset();
  EXPECT_TRUE(remove_tree(root + "/tree"));
  EXPECT_FALSE(fs::exists(root + "/tree"));
}

}  // namespace
}  // namespace hpcbatch::pilot
