// What the mark says, and what is concluded from it.
#include "store/file/mark.hpp"
#include "store/file/page_sums.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::store {
namespace {

MarkText full_mark() {
  return {.boot = "b00t",
          .salts = {7, 8},
          .synced = 2,
          .written = 3,
          .synced_sum = {21, 22},
          .written_sum = {31, 32},
          .has_sums = false,
          .highest = 12,
          .starts = 4};
}

FoundFiles found() {
  FoundFiles files{.has_database = true, .has_mark = true, .mark = full_mark(), .boot = "b00t"};
  files.first_page.assign(kPageSize, '\2');
  files.log = {.bytes = 20'000,
               .has_header = true,
               .salts = {7, 8},
               .sums = {{11, 12}, {21, 22}, {31, 32}},
               .behind = 0,
               .has_first_page = true};
  return files;
}

TEST(Mark, IsOneSectorAndComesBackAsItWas) {
  MarkText mark = full_mark();
  mark.damage = "row 5 is out of order\nand more " + std::string(1000, 'x');
  const std::string text = to_text(mark);
  EXPECT_EQ(text.size(), 512U);
  const auto read = parse_mark(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->boot, "b00t");
  EXPECT_EQ(read->salts, (Salts{7, 8}));
  EXPECT_EQ(read->synced_sum, (Sum{21, 22}));
  EXPECT_EQ(read->written, 3U);
  EXPECT_EQ(read->starts, 4U);
  EXPECT_EQ(read->damage.substr(0, 30), "row 5 is out of order and more");
  for (std::size_t at = 0; at < text.find_last_not_of(" \n"); ++at) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    EXPECT_FALSE(parse_mark(flipped)) << at;
  }
  EXPECT_FALSE(parse_mark(""));
}

TEST(Damage, WhatWasWrittenOutlivesAKillAndWhatWasSyncedTheMachine) {
  EXPECT_FALSE(damage_of(found()));
  FoundFiles files = found();
  files.log.sums.pop_back();
  EXPECT_TRUE(damage_of(files));
  files.boot = "another";
  EXPECT_FALSE(damage_of(files)) << "nobody was told of the third frame";
  files.log.sums.pop_back();
  EXPECT_TRUE(damage_of(files));
  files = found();
  files.log.sums.back() = {1, 1};
  EXPECT_TRUE(damage_of(files)) << "another log";
}

TEST(Damage, ALogThatMustBeThereIsMissed) {
  FoundFiles files = found();
  files.log = {};
  EXPECT_TRUE(damage_of(files));
  files.mark->moved = true;
  EXPECT_FALSE(damage_of(files)) << "it is all in the database";
  files = found();
  files.log.salts = {8, 99};
  EXPECT_TRUE(damage_of(files));
  files.mark->moved = true;
  EXPECT_FALSE(damage_of(files)) << "it has begun anew";
  files.log.salts = {17, 99};
  EXPECT_TRUE(damage_of(files));
  files.mark->closed = true;
  EXPECT_FALSE(damage_of(files));
  files = found();
  files.log.has_header = false;
  files.mark->moved = true;
  EXPECT_TRUE(damage_of(files)) << "a kill tears no head";
  files.boot = "another";
  EXPECT_FALSE(damage_of(files));
}

TEST(Damage, WithoutAMarkGoodFramesBehindABadOneTell) {
  FoundFiles files = found();
  files.mark.reset();
  files.has_mark = false;
  EXPECT_FALSE(damage_of(files));
  files.log.behind = 1;
  EXPECT_TRUE(damage_of(files));
  files.has_database = false;
  EXPECT_TRUE(damage_of(files));
  EXPECT_FALSE(damage_of({})) << "a first start";
}

TEST(Damage, ACopyIsTakenWhereNoOtherLogLiesBesideIt) {
  FoundFiles files = found();
  files.first_page[18] = 1;
  EXPECT_TRUE(damage_of(files));
  files.log = {};
  EXPECT_FALSE(damage_of(files));
}

TEST(Damage, TheFirstPageIsComparedUnlessTheLogHasIt) {
  FoundFiles files = found();
  files.mark->has_sums = true;
  EXPECT_FALSE(damage_of(files));
  files.log.has_first_page = false;
  EXPECT_TRUE(damage_of(files));
  put_sum(files.first_page, 1);
  EXPECT_FALSE(damage_of(files));
  files.has_database = false;
  EXPECT_TRUE(damage_of(files));
}

}  // namespace
}  // namespace hpcbatch::store
