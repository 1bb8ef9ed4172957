// Which task is to end for its memory, as a table, and whose memory it was.
#include "pilot/policy/tree_memory.hpp"
#include "pilot/processes/control_group.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

namespace hpcbatch::pilot {
namespace {

MemoryUse use(unsigned n, std::uint64_t used, std::uint64_t granted, bool is_limit = false) {
  return {AttemptId{n, 0, 1, 1}, used, granted, is_limit ? granted : 0};
}

std::string victims(const std::vector<MemoryUse>& uses, std::uint64_t capacity) {
  std::string text;
  for (const MemoryVictim& victim : memory_victims(uses, capacity))
    text += std::to_string(victim.id.array) + " ";
  return text;
}

TEST(MemoryWatch, EndsWhoIsOverItsLimitAndElseTheFurthestAboveItsShare) {
  EXPECT_EQ(victims({}, 100), "");
  EXPECT_EQ(victims({use(1, 60, 50), use(2, 10, 50)}, 100), "") << "there is room";
  EXPECT_EQ(victims({use(1, 51, 50, true), use(2, 10, 50)}, 100), "1 ");
  EXPECT_EQ(victims({use(1, 50, 50, true)}, 100), "");
  EXPECT_EQ(victims({use(1, 60, 50), use(2, 45, 20), use(3, 5, 30)}, 100), "2 ");
  EXPECT_EQ(victims({use(1, 60, 0), use(2, 45, 40)}, 100), "1 ")
      << "without a share all of it is too much";
  EXPECT_EQ(victims({use(1, 51, 50, true), use(2, 90, 50)}, 100), "1 ")
      << "with the first gone there is room";
  EXPECT_EQ(victims({use(1, 60, 50, true), use(2, 101, 50)}, 100), "1 2 ");
  EXPECT_EQ(victims({use(1, 1000, 50)}, 0), "") << "the node's memory is not known";
  EXPECT_EQ(victims({use(1, 60, 60), use(2, 60, 60)}, 100), "")
      << "nobody has more than was promised";
}

TEST(MemoryWatch, AGuessIsNotToldAsAShare) {
  MemoryUse guessed = use(1, 70, 20);
  guessed.told = 80;
  MemoryUse share = use(2, 70, 10);
  share.told = 10;
  EXPECT_NE(memory_victims({guessed, use(2, 40, 50)}, 100)
                .at(0)
                .message.find("it used 70 bytes, more than its kind did before"),
            std::string::npos);
  EXPECT_NE(memory_victims({share, use(1, 40, 50)}, 100)
                .at(0)
                .message.find("it used 70 bytes of 10 bytes"),
            std::string::npos);
}

TEST(OwnMemory, WhatAChildBorrowedIsNoPeakOfItsOwn) {
  constexpr std::uint64_t kMiB = 1 << 20;
  EXPECT_EQ(own_peak_of(5 * kMiB, 5 * kMiB), 5 * kMiB) << "so little does no harm";
  EXPECT_EQ(own_peak_of(20 * kMiB, 20 * kMiB), 0U);
  EXPECT_EQ(own_peak_of(20 * kMiB + 4096, 20 * kMiB), 0U) << "counted late";
  EXPECT_EQ(own_peak_of(30 * kMiB, 20 * kMiB), 30 * kMiB);
}

TEST(OwnMemory, OneThatHasGrownCountsAnew) {
  OwnMemory own;
  constexpr std::size_t kLarge = 64 << 20;
  void* room = ::mmap(nullptr, kLarge, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  ::munmap(room, kLarge);
  const std::uint64_t before = OwnMemory::high_water();
  ASSERT_GT(before, kLarge);
  own.keep_small();
  EXPECT_LT(OwnMemory::high_water(), before);
}

}  // namespace
}  // namespace hpcbatch::pilot
