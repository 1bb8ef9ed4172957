// Which of a node's cpus tasks get: close together, scattered, on one node of memory, near a GPU.
#include "decide_fixture.hpp"
#include "pilot/policy/room.hpp"
#include "pilot/processes/surroundings.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace hpcbatch::pilot {
namespace {

using testing::ElementsAre;

/// Two nodes of eight cores with two threads each, numbered as most machines do: first one thread of
/// each core, then the others.
Topology machine() {
  Topology all;
  for (unsigned cpu = 0; cpu < 32; ++cpu) all.push_back({cpu, cpu % 16 / 8, cpu % 16});
  return all;
}

std::set<unsigned> nodes_of(const std::vector<unsigned>& cpus) {
  std::set<unsigned> nodes;
  for (const unsigned cpu : cpus) nodes.insert(cpu % 16 / 8);
  return nodes;
}

std::set<unsigned> cores_of(const std::vector<unsigned>& cpus) {
  std::set<unsigned> cores;
  for (const unsigned cpu : cpus) cores.insert(cpu % 16);
  return cores;
}

class Cpus : public testing::Test {
 protected:
  CpuSet take(std::size_t count, CpuWish wish = {}) {
    const auto chosen = free_.choose(count, wish);
    if (!chosen) return {};
    free_.take(*chosen);
    return *chosen;
  }
  FreeCpus free_{machine()};
};

TEST_F(Cpus, SixteenPairsStayOnANodeAndACoreEach) {
  std::set<unsigned> all;
  for (int task = 0; task < 16; ++task) {
    const CpuSet pair = take(2);
    ASSERT_EQ(pair.bound.size(), 2U);
    EXPECT_EQ(nodes_of(pair.bound).size(), 1U) << task;
    EXPECT_EQ(cores_of(pair.bound).size(), 1U) << task;
    all.insert(pair.bound.begin(), pair.bound.end());
  }
  EXPECT_EQ(all.size(), 32U);
  EXPECT_FALSE(free_.choose(1, {}));
}

TEST_F(Cpus, ScatteredOnesAreOnDifferentNodesAndCores) {
  for (int task = 0; task < 8; ++task)
    EXPECT_EQ(nodes_of(take(2, {CpuBind::Scatter}).bound).size(), 2U) << task;
  const CpuSet rest = take(16, {CpuBind::Scatter});
  EXPECT_EQ(rest.bound.size(), 16U);
  EXPECT_EQ(cores_of(rest.bound).size(), 16U);
}

TEST_F(Cpus, SingleOnesFillWhatIsBegun) {
  EXPECT_EQ(cores_of(take(1).bound), cores_of(take(1).bound));
  take(1);
  EXPECT_EQ(cores_of(take(2).bound).size(), 1U) << "whole cores are left for pairs";
}

TEST_F(Cpus, OneNodeOfMemoryOrLater) {
  take(12, {CpuBind::Numa, 0, 0});
  take(10, {CpuBind::Numa, 0, 1});
  EXPECT_FALSE(free_.choose(8, {CpuBind::Numa}));
  EXPECT_EQ(nodes_of(take(8).bound).size(), 2U) << "who does not insist gets parts of both";
  FreeCpus fresh(machine());
  EXPECT_EQ(fresh.choose(20, {CpuBind::Numa})->bound.size(), 20U) << "no node has so many";
}

TEST_F(Cpus, OneThreadOfACoreLeavesTheOtherIdle) {
  const CpuSet eight = take(8, {CpuBind::Compact, 1});
  EXPECT_EQ(cores_of(eight.bound).size(), 8U);
  EXPECT_EQ(eight.idle.size(), 8U);
  EXPECT_EQ(nodes_of(eight.bound).size(), 1U);
  EXPECT_EQ(take(16).bound.size(), 16U);
  EXPECT_FALSE(free_.choose(1, {}));
  free_.give_back(eight);
  EXPECT_EQ(take(16).bound.size(), 16U);
  FreeCpus fresh(machine());
  EXPECT_EQ(fresh.choose(20, {CpuBind::Compact, 1})->bound.size(), 20U)
      << "so many cores there are not";
}

TEST_F(Cpus, NearAGpuTheyAreOnItsNode) {
  Room room({{"cpus", 320000}, {"gpus/a100", 20000}}, machine());
  room.gpu_is_near(0, 1);
  room.gpu_is_near(1, 0);
  const auto needs = room.needs_of({{"cpus", 20000}, {"gpus/a100", 10000}});
  const auto first = room.take(*needs);
  const auto second = room.take(*needs);
  EXPECT_THAT(nodes_of(first->cpus), ElementsAre(1));
  EXPECT_THAT(nodes_of(second->cpus), ElementsAre(0));
}

TEST_F(Cpus, WhoWantsNoneIsBoundToNone) {
  Room room({{"cpus", 320000}}, machine());
  const auto needs = room.needs_of({{"cpus", 20000}});
  EXPECT_TRUE(room.take(*needs, {CpuBind::None})->cpus.empty());
  EXPECT_EQ(room.take(*needs)->cpus.size(), 2U);
}

TEST(ReadTopology, ComesFromTheKernelsFiles) {
  char path[] = "/tmp/hb-sys-XXXXXX";
  const std::string root = ::mkdtemp(path);
  const auto write = [&](const std::string& name, const std::string& text) {
    const std::filesystem::path file = root + "/devices/system/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  };
  write("node/online", "0-1");
  write("node/node0/cpulist", "0-1,4-5");
  write("node/node1/cpulist", "2-3,6-7");
  for (unsigned cpu = 0; cpu < 8; ++cpu) {
    write("cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  }
  EXPECT_EQ(read_topology({1, 6, 7}, root), (Topology{{1, 0, 1}, {6, 1, 2}, {7, 1, 3}}));
  EXPECT_EQ(read_topology({3}, root + "/nowhere"), (Topology{{3, 0, 3}}));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace hpcbatch::pilot
