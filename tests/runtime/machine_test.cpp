// What this machine grants us: the least limit on our own path through the control groups, and the
// GPUs that we may see.
#include "runtime/machine.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace hpcbatch {
namespace {

class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "cgroup-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  std::filesystem::path root_;
};

TEST_F(MemoryLimit, IsTheLeastOnOurOwnPath) {
  write("user.slice/memory.max", "8000");
  write("user.slice/session/memory.max", "max");
  write("other.slice/memory.max", "5");
  EXPECT_EQ(memory_limit("0::/user.slice/session\n", root_), 8000);
  EXPECT_EQ(memory_limit("0::/\n", root_), std::nullopt);
}

TEST_F(MemoryLimit, OfTheFirstVersionStandsInItsOwnHierarchy) {
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  write("memory/slurm/job_7/memory.limit_in_bytes", "4096");
  EXPECT_EQ(memory_limit("9:cpu,cpuacct:/slurm\n5:memory:/slurm/job_7/step_0\n0::/x\n", root_),
            4096);
}

TEST_F(MemoryLimit, OfAContainerIsThatOfTheTop) {
  write("memory.max", "1000");
  EXPECT_EQ(memory_limit("0::/of/the/host\n", root_), 1000);
}

TEST(LocalSite, HandsItsVisibleDevicesOn) {
  ::setenv("CUDA_VISIBLE_DEVICES", "GPU-1,3", 1);
  Site site{.name = "here", .scheduler = "local"};
  site.setup = {"its own"};
  complete_local_site(site, "/home");
  EXPECT_EQ(site.setup,
            (std::vector<std::string>{"export CUDA_VISIBLE_DEVICES='GPU-1,3'", "its own"}));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  Site other{.name = "there", .scheduler = "local"};
  complete_local_site(other, "/home");
  EXPECT_TRUE(other.setup.empty());
}

}  // namespace
}  // namespace hpcbatch
