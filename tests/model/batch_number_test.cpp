// Numbers of tasks as batch systems have them, there and back.
#include "model/batch_number.hpp"

#include <gmock/gmock.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;

std::vector<IndexSteps> steps(const char* text) {
  return steps_of(*parse_index_set(text));
}

TEST(BatchNumberTest, ANumberStandsForAnIdOfOurs) {
  EXPECT_EQ(batch_number(ArrayId{12}), 2'000'000'012U);
  EXPECT_EQ(batch_number(ArrayId{12}, 3), 2'000'000'015U);
  EXPECT_EQ(id_of_batch_number(2'000'000'012), ArrayId{12});
  EXPECT_FALSE(id_of_batch_number(1'999'999'999));
  EXPECT_FALSE(id_of_batch_number(2'000'000'000)) << "ids begin at 1";
}

TEST(BatchNumberTest, NumbersEndBeforeThoseThatMeanSomethingElse) {
  const std::uint64_t most = kLastBatchNumber - kBatchNumbers;
  EXPECT_EQ(batch_number(ArrayId{most}), kLastBatchNumber);
  EXPECT_FALSE(batch_number(ArrayId{most + 1}));
  EXPECT_FALSE(batch_number(ArrayId{most}, 1));
  EXPECT_FALSE(batch_number(ArrayId{1}, ~std::uint64_t{0}));
  EXPECT_TRUE(id_of_batch_number(kLastBatchNumber));
  EXPECT_FALSE(id_of_batch_number(std::uint64_t{kLastBatchNumber} + 1));
  EXPECT_FALSE(id_of_batch_number(~std::uint64_t{0}));
}

TEST(BatchNumberTest, ANumberedArrayTakesAsManyIdsAsItHasTasks) {
  EXPECT_EQ(ids_taken(true, *parse_index_set("3,5-9")), 6U);
  EXPECT_EQ(ids_taken(false, *parse_index_set("3,5-9")), 1U);
  EXPECT_EQ(ids_taken(true, IndexRange{0, 0}), 1U);
}

TEST(BatchNumberTest, StepsAreShort) {
  EXPECT_THAT(steps("0-9:3"), ElementsAre(IndexSteps{0, 9, 3}));
  EXPECT_THAT(steps("0-7:2,20"), ElementsAre(IndexSteps{0, 6, 2}, IndexSteps{20, 20, 1}));
  EXPECT_THAT(steps("1-1000000"), ElementsAre(IndexSteps{1, 1'000'000, 1}));
  EXPECT_THAT(steps("0-900000:3"), ElementsAre(IndexSteps{0, 900'000, 3}));
  EXPECT_THAT(steps("5"), ElementsAre(IndexSteps{5, 5, 1}));
}

TEST(BatchNumberTest, PositionsAreThoseOfTheSortedIndices) {
  for (const char* text :
       {"0", "7", "0-9:3", "1,3,4,5,9,11,13", "1-5,7,100-90000:7", "3-4,6-7,9,12,15", "2,9,4"}) {
    const IndexSet indices = *parse_index_set(text);
    const auto all = steps_of(indices);
    std::uint64_t position = 0;
    for (std::uint32_t index = 0; index <= 90'001; ++index) {
      if (!indices.contains(index)) {
        EXPECT_FALSE(position_of(all, index)) << text << " " << index;
        continue;
      }
      EXPECT_EQ(position_of(all, index), position) << text << " " << index;
      EXPECT_EQ(index_at(all, position), index) << text;
      ++position;
    }
    EXPECT_EQ(position, indices.size());
    EXPECT_FALSE(index_at(all, position));
  }
}

}  // namespace
}  // namespace hpcbatch
