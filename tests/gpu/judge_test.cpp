// What speaks against a device while it works.
#include "gpu/devices/device.hpp"
#include "gpu/nvml.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::gpu {
namespace {

TEST(GpuJudge, ErrorsThatAreNewSpeakAgainstItOnce) {
  Judge judge(3);
  Sample sample;
  sample.broken_bits = 3;
  EXPECT_FALSE(judge.look(sample));
  sample.broken_bits = 4;
  EXPECT_NE(judge.look(sample).value_or("").find("ECC could not mend"), std::string::npos);
  sample.broken_bits = 5;
  EXPECT_FALSE(judge.look(sample));
}

TEST(GpuJudge, HeatSpeaksAgainstItWhereItStays) {
  Judge judge(0);
  Sample hot;
  hot.is_hot = true;
  for (int second = 0; second < 59; ++second) EXPECT_FALSE(judge.look(hot)) << second;
  EXPECT_FALSE(judge.look(Sample{}));
  for (int second = 0; second < 59; ++second) EXPECT_FALSE(judge.look(hot)) << second;
  EXPECT_TRUE(judge.look(hot));
}

TEST(GpuJudge, OneThatCannotBeAskedIsLost) {
  Judge judge(0);
  Sample sample;
  sample.trouble = "it cannot be asked any more: GPU is lost";
  EXPECT_EQ(judge.look(sample), sample.trouble);
}

TEST(GpuJudge, ErrorsOfProgramsAreNoneOfTheDevice) {
  for (const std::uint64_t program : {13U, 31U, 43U, 45U})
    EXPECT_FALSE(is_fault_of_device(program)) << program;
  for (const std::uint64_t device : {48U, 74U, 79U, 95U, 119U})
    EXPECT_TRUE(is_fault_of_device(device)) << device;
  EXPECT_EQ(xid_in_words(79), "Xid 79: it has fallen off the bus");
}

}  // namespace
}  // namespace hpcbatch::gpu
