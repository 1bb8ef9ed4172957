// GPUs that break: set aside alone, with what ran on them; and what the helper's lines say.
#include "decide_fixture.hpp"
#include "pilot/policy/gpu_facts.hpp"

namespace hpcbatch::pilot {
namespace {

using Gpus = DecideTest;

TEST_F(Gpus, OneThatBreaksEndsWhatRanOnItAlone) {
  pilot({{"cpus", 80000}, {"gpus/a100", 20000}});
  lease(1, {{"gpus/a100", 10000}});
  lease(2, {{"gpus/a100", 10000}});
  lease(3, {{"gpus/a100", 10000}});
  expect("run 1 gpus 0; run 2 gpus 1");
  d().gpu_broke(0, "Xid 79", now_);
  expect("term 1 gpu_error");
  ended(1);
  expect("");
  ended(2);
  expect("run 3 gpus 1");
  EXPECT_EQ(d().capacity(), (Amounts{{"cpus", 80000}, {"gpus/a100", 10000}}));
}

std::vector<unsigned> gpus_given(const Amounts& capacity, const std::vector<std::string>& names,
                                 const std::string& kind) {
  Room room(capacity, {}, names);
  std::vector<unsigned> given;
  for (const auto& [name, total] : capacity) {
    if (name == kind) given = room.take(*room.needs_of({{name, total}}))->gpus;
  }
  return given;
}

TEST(GpusOfSeveralKinds, AreToldApartByTheirDriversNames) {
  const Amounts both{{"gpus/a100", 20000}, {"gpus/v100", 20000}};
  const std::vector<std::string> names{"Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-40GB",
                                       "Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-40GB"};
  EXPECT_EQ(gpus_given(both, names, "gpus/a100"), (std::vector{1U, 3U}));
  EXPECT_EQ(gpus_given(both, names, "gpus/v100"), (std::vector{0U, 2U}));
  EXPECT_EQ(gpus_given(both, {}, "gpus/v100"), (std::vector{2U, 3U})) << "nobody knows them";
  // What a site calls as no driver does gets what is left.
  const Amounts odd{{"gpus/big", 10000}, {"gpus/l4", 10000}, {"gpus/rtx3090", 10000}};
  const std::vector<std::string> others{"NVIDIA L40", "NVIDIA GeForce RTX 3090", "NVIDIA L4"};
  EXPECT_EQ(gpus_given(odd, others, "gpus/big"), std::vector{0U});
  EXPECT_EQ(gpus_given(odd, others, "gpus/l4"), std::vector{2U});
  EXPECT_EQ(gpus_given(odd, others, "gpus/rtx3090"), std::vector{1U});
  const Amounts alike{{"gpus/rtx_2080", 10000}, {"gpus/rtx_2080_ti", 10000}};
  const std::vector<std::string> two{"NVIDIA GeForce RTX 2080 Ti", "NVIDIA GeForce RTX 2080"};
  EXPECT_EQ(gpus_given(alike, two, "gpus/rtx_2080"), std::vector{1U});
  EXPECT_EQ(gpus_given(alike, two, "gpus/rtx_2080_ti"), std::vector{0U});
  const Amounts slices{{"gpus/a100", 10000}, {"gpus/a100_3g.20gb", 10000}};
  const std::vector<std::string> both_forms{"NVIDIA A100-SXM4-40GB MIG 3g.20gb",
                                            "NVIDIA A100-SXM4-40GB"};
  EXPECT_EQ(gpus_given(slices, both_forms, "gpus/a100"), std::vector{1U});
  EXPECT_EQ(gpus_given(slices, both_forms, "gpus/a100_3g.20gb"), std::vector{0U});
}

TEST_F(Gpus, WhatTakesMoreThanIsLeftGoesBack) {
  pilot({{"cpus", 80000}, {"gpus/a100", 20000}});
  lease(1, {{"gpus/a100", 5000}});
  lease(2, {{"gpus/a100", 20000}});
  expect("run 1 gpus 0");
  d().gpu_broke(1, "lost", now_);
  expect("return 2");
  lease(3, {{"gpus/a100", 10000}});
  lease(4, {{"gpus/a100", 20000}});
  expect("return 4");
  ended(1);
  expect("run 3 gpus 0");
}

TEST_F(Gpus, APartOfABrokenOneComesBackToNobody) {
  pilot({{"cpus", 80000}, {"gpus/a100", 20000}});
  for (unsigned n : {1U, 2U, 3U, 4U}) lease(n, {{"gpus/a100", 5000}});
  expect("run 1 gpus 0; run 2 gpus 0; run 3 gpus 1; run 4 gpus 1");
  d().gpu_broke(0, "lost", now_);
  expect_in_any_order({"term 1 gpu_error", "term 2 gpu_error"});
  for (unsigned n : {5U, 6U}) lease(n, {{"gpus/a100", 5000}});
  ended(1);
  ended(2);
  expect("");
  ended(3);
  expect("run 5 gpus 1");
  ended(4);
  expect("run 6 gpus 1");
}

TEST_F(Gpus, WithoutTheLastOneThePilotLeaves) {
  pilot({{"cpus", 80000}, {"gpus/a100", 10000}});
  lease(1, {{"gpus/a100", 10000}});
  lease(2);
  expect("run 1 gpus 0; run 2");
  d().gpu_broke(0, "lost", now_);
  expect("term 1 gpu_error; leaving its GPUs failed");
}

TEST_F(Gpus, WhoTakesMoreThanItsPartEndsAlone) {
  pilot({{"cpus", 80000}, {"gpus/a100", 10000}});
  lease(1, {{"gpus/a100", 5000}});
  lease(2, {{"gpus/a100", 5000}});
  expect("run 1 gpus 0; run 2 gpus 0");
  d().over_gpu_memory(id_of(1), "it had 9000 MiB");
  expect("kill 1 oom_gpu");
}

TEST(GpuFacts, AreReadFromTheHelpersLines) {
  const auto gpus = read_gpu_facts(
      "{\"index\":0,\"uuid\":\"GPU-aa\",\"name\":\"NVIDIA "
      "A100\",\"memory\":42949672960,\"capability\":\"8.0\"}\n"
      "a warning\n"
      "{\"index\":1,\"uuid\":\"GPU-bb\",\"trouble\":\"it computes wrong: 1 of 4\"}\n");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].memory, 42949672960U);
  EXPECT_EQ(gpus[0].capability, "8.0");
  EXPECT_EQ(gpus[1].trouble, "it computes wrong: 1 of 4");
  EXPECT_TRUE(read_gpu_facts("").empty());
}

TEST(GpuFacts, LinesOfOthersAreNone) {
  const std::vector<GpuFacts> ours{{"GPU-aa", "", 0, "", "", ""}, {"GPU-bb", "", 0, "", "", ""}};
  const auto seen = read_gpu_seen(
      R"({"index":4,"uuid":"GPU-bb","busy":37,"memory":1000,"energy_mj":12,"processes":[{"pid":7,"memory":900}]})",
      ours);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->device, 1U);
  EXPECT_EQ(seen->busy, 37U);
  EXPECT_EQ(seen->energy_mj, 12U);
  ASSERT_EQ(seen->processes.size(), 1U);
  EXPECT_EQ(seen->processes[0].pid, 7);
  EXPECT_FALSE(read_gpu_seen(R"({"uuid":"GPU-cc","trouble":"Xid 79"})", ours));
  EXPECT_FALSE(read_gpu_seen("{\"uuid\":\"GPU-aa\",", ours));
}

TEST(GpuUse, IsCountedOverDevicesAndSharers) {
  GpuUse use;
  EXPECT_FALSE(use.busy());
  GpuSeen seen;
  seen.busy = 80;
  use.add(seen, 100, 50, 1);
  seen.device = 1;
  use.add(seen, 200, 50, 2);
  EXPECT_EQ(use.busy(), 60U);
  EXPECT_EQ(use.peak(), 300U);
  EXPECT_EQ(use.energy_mj(), 75U);
}

TEST(GpuUse, APartOfADeviceIsAPartOfItsMemory) {
  EXPECT_EQ(gpu_memory_share(2500, 4000), 1000U);
  EXPECT_FALSE(gpu_memory_share(10000, 4000));
  EXPECT_FALSE(gpu_memory_share(2500, 0));
  EXPECT_FALSE(gpu_memory_share(0, 4000));
}

}  // namespace
}  // namespace hpcbatch::pilot
