// Where no library tells of devices, programs do.
#include "gpu/told_by_programs.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::gpu {
namespace {

TEST(NvidiaSmi, IsReadLineByLine) {
  const auto devices = from_nvidia_smi(
      "0, GPU-5f2e, 81559, 4, 9.0, 535.161.08, 00000000:18:00.0, NVIDIA H100 80GB HBM3\n"
      "some warning\n"
      "1, GPU-77aa, [N/A], [N/A], [N/A], 535.161.08, 00000000:2A:00.0, NVIDIA A100, of 40 GB\n");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].uuid, "GPU-5f2e");
  EXPECT_EQ(devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(devices[0].memory, std::uint64_t{81559} << 20);
  EXPECT_EQ(devices[0].capability, "9.0");
  EXPECT_TRUE(devices[0].trouble.empty());
  EXPECT_EQ(devices[1].name, "NVIDIA A100, of 40 GB");
  EXPECT_EQ(devices[1].capability, "");
  EXPECT_FALSE(devices[1].trouble.empty());
  EXPECT_TRUE(from_nvidia_smi(
                  "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
                  .empty());
  EXPECT_TRUE(from_nvidia_smi("").empty());
}

TEST(RocmSmi, IsReadByCard) {
  const auto devices = from_rocm_smi(R"x({
    "card1": {"Unique ID": "0x8f01", "Card Series": "AMD Instinct MI250X", "VRAM Total Memory (B)": "68702699520",
              "VRAM Total Used Memory (B)": "11550720"},
    "card0": {"Unique ID": "0x8f00", "Card series": "AMD Instinct MI250X", "VRAM Total Memory (B)": "68702699520"},
    "system": {"Driver version": "6.3.6"}})x");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].uuid, "0x8f00");
  EXPECT_EQ(devices[1].name, "AMD Instinct MI250X");
  EXPECT_EQ(devices[1].memory, 68702699520U);
  EXPECT_EQ(devices[1].memory_used, 11550720U);
  EXPECT_TRUE(from_rocm_smi("{\"card0\": 3}").empty());
  EXPECT_TRUE(from_rocm_smi("cannot open /dev/kfd").empty());
}

}  // namespace
}  // namespace hpcbatch::gpu
