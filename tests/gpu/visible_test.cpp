// Which devices a batch job was given, whatever words it is told by.
#include "gpu/devices/device.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::gpu {
namespace {

std::vector<Device> node(unsigned count) {
  std::vector<Device> devices(count);
  for (unsigned i = 0; i < count; ++i) {
    devices[i].index = i;
    devices[i].uuid = "GPU-" + std::string(4, static_cast<char>('a' + i)) + "-0000";
  }
  return devices;
}

std::string names(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) text += device.uuid.substr(4, 1);
  return text;
}

TEST(VisibleGpus, AreAllWhereNothingIsSaid) {
  EXPECT_EQ(names(visible(node(3), std::nullopt)), "abc");
  EXPECT_EQ(names(visible(node(3), "")), "");
}

TEST(VisibleGpus, AreThoseOfTheNumbersInTheirOrder) {
  EXPECT_EQ(names(visible(node(4), "2, 0")), "ca");
  EXPECT_EQ(names(visible(node(4), "1,-1,2")), "b");
  EXPECT_EQ(names(visible(node(4), "1,none")), "b");
}

TEST(VisibleGpus, AreThoseOfTheUuids) {
  EXPECT_EQ(names(visible(node(3), "GPU-bbbb-0000,GPU-aaaa-0000")), "ba");
  EXPECT_EQ(names(visible(node(3), "GPU-cc")), "c");
  EXPECT_EQ(names(visible(node(3), "GPU-")), "") << "which one is not said";
  EXPECT_EQ(names(visible(node(3), "GPU-zz,GPU-aaaa-0000")), "");
}

TEST(VisibleGpus, OfAControlGroupGoByTheirOrder) {
  EXPECT_EQ(names(visible(node(2), "5,7")), "ab");
  EXPECT_EQ(names(visible(node(2), "3")), "a");
  EXPECT_EQ(names(visible(node(2), "0,1,2")), "ab") << "more than there are is none of it";
}

TEST(VisibleGpus, OfASplitOneHaveNamesAlone) {
  std::vector<Device> devices = node(2);
  devices[0].uuid = "MIG-aaaa";
  devices[0].is_slice = true;
  devices[1].uuid = "MIG-bbbb";
  devices[1].is_slice = true;
  devices[1].index = 0;
  EXPECT_EQ(visible(devices, "MIG-bbbb").front().uuid, "MIG-bbbb");
  EXPECT_TRUE(visible(devices, "0").empty());
}

}  // namespace
}  // namespace hpcbatch::gpu
