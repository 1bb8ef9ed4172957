// What this machine grants us: the least limit on our own path through the control groups, and the
// GPUs that we may see.
#include "sites/machine.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// What is found where the shell commands have made the network; they run in a namespace of their
/// own.
std::string outward_in_network(const std::string& commands) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text = "no namespace";
    if (::unshare(CLONE_NEWNET) == 0 && std::system(commands.c_str()) == 0) {
      text.clear();
      for (const std::string& address : outward_addresses()) text += address + " ";
    }
    ::_exit(::write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text(1000, ' ');
  const ssize_t size = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return text.substr(0, size < 0 ? 0 : static_cast<std::size_t>(size));
}

TEST(OutwardAddresses, AreFoundWithoutARouteToTheWorldAndAreNeverLoopback) {
  if (::geteuid() != 0) GTEST_SKIP() << "a network of its own takes root";
  const std::string lo = "ip link set lo up && ";
  const std::string lan =
      lo +
      "ip link add e0 type veth peer name e1 && ip addr add 10.77.0.1/24 dev e0 && "
      "ip link set e0 up && ip link set e1 up";
  EXPECT_EQ(outward_in_network(lo + "true"), "");
  EXPECT_EQ(outward_in_network(lan), "10.77.0.1 ");
  // A default route that leads out by another interface goes first.
  EXPECT_EQ(outward_in_network(lan + " && ip addr add 130.1.2.3/24 dev e1 && "
                                     "ip route add default via 130.1.2.4 dev e1"),
            "130.1.2.3 10.77.0.1 ");
}

}  // namespace
}  // namespace hpcbatch
