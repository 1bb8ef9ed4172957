// Whether the workspace can be written, as time passes.
#include "pilot/node.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include <stdlib.h>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

class WorkspaceWatchTest : public testing::Test {
 public:
  ~WorkspaceWatchTest() override { std::filesystem::remove_all(folder); }

 protected:
  WorkspaceWatchTest() {
    std::string path = testing::TempDir() + "/hpcbatch-watch-XXXXXX";
    folder = ::mkdtemp(path.data());
    std::filesystem::create_directory(folder + "/work");
  }
  static Time at(std::chrono::seconds since) { return Time{} + 1h + since; }

  std::string folder;
};

TEST_F(WorkspaceWatchTest, IsWellAgainWhenASmallFileCanBeWritten) {
  WorkspaceWatch watch(folder, "A0");
  watch.failed("full", at(0s));
  watch.tick(at(0s));
  EXPECT_EQ(watch.trouble(), "full") << "not yet";
  watch.tick(at(1s));
  EXPECT_EQ(watch.trouble(), "");
  EXPECT_FALSE(watch.next());
}

TEST_F(WorkspaceWatchTest, IsHopelessAfterTenMinutes) {
  WorkspaceWatch watch(folder + "/gone", "A0");
  watch.failed("gone", at(0s));
  for (auto t = 1s; t < 10min; ++t) watch.tick(at(t));
  EXPECT_FALSE(watch.is_hopeless(at(599s)));
  EXPECT_TRUE(watch.is_hopeless(at(600s)));
}

TEST_F(WorkspaceWatchTest, IsHopelessWhereSmallFilesAloneCanBeWritten) {
  WorkspaceWatch watch(folder, "A0");
  bool hopeless = false;
  auto t = 0s;
  for (; t < 1h && !hopeless; ++t) {
    watch.failed("cannot make the folder of out", at(t));
    hopeless = watch.is_hopeless(at(t));
    watch.tick(at(t + 1s));
  }
  EXPECT_EQ(t, 601s);
}

TEST_F(WorkspaceWatchTest, BeginsAnewWhenItHasBeenWell) {
  WorkspaceWatch watch(folder, "A0");
  watch.failed("full", at(0s));
  watch.tick(at(1s));
  watch.failed("full", at(900s));
  EXPECT_FALSE(watch.is_hopeless(at(900s)));
}

}  // namespace
}  // namespace hpcbatch::pilot
