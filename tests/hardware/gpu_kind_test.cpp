// What is known of a GPU by the names that batch systems and drivers have for it.
#include "hardware/gpu_kind.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;

TEST(GpuKind, IsKnownByManyNames) {
  for (const char* name :
       {"a100", "A100", "nvidia_a100", "NVIDIA A100-SXM4-40GB", "a100-sxm", "a100x"})
    EXPECT_EQ(gpu_kind(name), (GpuKind{40 * kGigabyte, 80})) << name;
  EXPECT_EQ(gpu_kind("a100_80gb"), (GpuKind{80 * kGigabyte, 80}));
  EXPECT_EQ(gpu_kind("NVIDIA H100 80GB HBM3"), (GpuKind{80 * kGigabyte, 90}));
  EXPECT_EQ(gpu_kind("NVIDIA GeForce RTX 3090"), (GpuKind{24 * kGigabyte, 86}));
  EXPECT_EQ(gpu_kind("Tesla V100-SXM2-32GB"), (GpuKind{32 * kGigabyte, 70}));
  EXPECT_EQ(gpu_kind("v100s")->capability, 70U);
}

TEST(GpuKind, APartOfOneHasTheMemoryOfItsSlices) {
  for (const char* name : {"a100_3g.20gb", "nvidia_a100_3g.20gb", "A100-SXM4-40GB MIG 3g.20gb",
                           "a100_1c.3g.20gb+me", "a100_3g20gb", "3g.20gb-a100"})
    EXPECT_EQ(gpu_kind(name)->memory, 20 * kGigabyte) << name;
  EXPECT_EQ(gpu_kind("a100_1g.5gb")->memory, 5 * kGigabyte);
  EXPECT_EQ(gpu_kind("h100_7g.80gb")->memory, 80 * kGigabyte);
  EXPECT_EQ(gpu_kind("a100_80g")->memory, 80 * kGigabyte);
}

TEST(GpuKind, OneWhoseNameOnlyBeginsAlikeIsAnother) {
  EXPECT_EQ(gpu_kind("l40s")->memory, 48 * kGigabyte);
  EXPECT_EQ(gpu_kind("l4")->memory, 24 * kGigabyte);
  EXPECT_EQ(gpu_kind("a10")->capability, 86U);
  EXPECT_FALSE(gpu_kind("a1000"));
  EXPECT_FALSE(gpu_kind("mi250"));
  EXPECT_FALSE(gpu_kind(""));
  EXPECT_FALSE(gpu_kind("nvidia"));
}

TEST(GpuKind, MeetsTerms) {
  const GpuKind kind = *gpu_kind("a100");
  EXPECT_TRUE(meets(kind, {40 * kGigabyte, 80}));
  EXPECT_FALSE(meets(kind, {41 * kGigabyte, 0}));
  EXPECT_FALSE(meets(kind, {0, 86}));
}

TEST(GpuKind, ACapabilityIsANumberWithOneDigit) {
  EXPECT_EQ(parse_capability("8.6"), 86U);
  EXPECT_EQ(parse_capability("9"), 90U);
  EXPECT_EQ(parse_capability("10.0"), 100U);
  for (const char* text : {"", "8.", ".6", "8.66", "sm_80", "8,6", "0", "8.6x"})
    EXPECT_FALSE(parse_capability(text)) << text;
  EXPECT_EQ(show_capability(86), "8.6");
}

}  // namespace
}  // namespace hpcbatch
