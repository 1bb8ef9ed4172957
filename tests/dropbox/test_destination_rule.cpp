// Where results may go: the table of the rule.
#include "dropbox/job_rights.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using Existing = DestinationFacts::Existing;

DestinationFacts facts(std::uint32_t owner, std::uint32_t mode,
                       Existing existing = Existing::Nothing, std::uint32_t existing_owner = 0) {
  return {.real_directory = "/data/out",
          .directory_owner = owner,
          .directory_mode = mode,
          .is_dropbox = false,
          .existing = existing,
          .existing_owner = existing_owner,
          .submitter_can_write = false,
          .is_engines_user = false};
}

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint32_t kBob = 1001;

TEST(DestinationRule, TheOwnersOwnFolder) {
  EXPECT_EQ(why_not_there(facts(kAlice, 0755), kAlice, {}), "");
  EXPECT_EQ(why_not_there(facts(kAlice, 0700, Existing::File, kAlice), kAlice, {}), "");
  EXPECT_NE(why_not_there(facts(kBob, 0755), kAlice, {}), "");
  EXPECT_NE(why_not_there(facts(0, 0755), kAlice, {}), "");
  EXPECT_NE(why_not_there(facts(kAlice, 0777), kAlice, {}), "");
  EXPECT_NE(why_not_there(facts(kAlice, 01777), kAlice, {}), "");
  EXPECT_NE(why_not_there(facts(kAlice, 0775), kAlice, {}), "");
}

TEST(DestinationRule, AFolderAllowedByName) {
  EXPECT_EQ(why_not_there(facts(kBob, 0777), kAlice, {"/data"}), "");
  EXPECT_EQ(why_not_there(facts(kBob, 0755), kAlice, {"/x", "/data/out/"}), "");
  EXPECT_NE(why_not_there(facts(kBob, 0755), kAlice, {"/dat"}), "");
  EXPECT_NE(why_not_there(facts(kBob, 0755), kAlice, {"/data/out/deeper"}), "");
}

TEST(DestinationRule, ReplacesInAnAllowedFolderWhatTheOwnerCouldReplaceHimself) {
  // Alice's job; the folder is Bob's or hers, the file Bob's.
  struct Row {
    std::uint32_t folder;
    std::uint32_t mode;
    bool she_can_write;
    bool may;
  };
  for (const Row& row :
       {Row{kBob, 0755, false, false}, Row{kBob, 0775, true, true}, Row{kBob, 0777, true, true},
        Row{kBob, 01777, true, false}, Row{kBob, 03770, true, false},
        Row{kBob, 01755, false, false}, Row{kAlice, 0755, true, true},
        Row{kAlice, 01777, true, true}, Row{kAlice, 0555, false, false}}) {
    DestinationFacts there = facts(row.folder, row.mode, Existing::File, kBob);
    there.submitter_can_write = row.she_can_write;
    EXPECT_EQ(why_not_there(there, kAlice, {"/data"}).empty(), row.may)
        << std::oct << row.mode << " of " << std::dec << row.folder;
    EXPECT_EQ(why_not_there(there, kBob, {"/data"}), "") << "his own he may always";
    EXPECT_EQ(why_not_there(there, 0, {"/data"}), "");
    there.is_engines_user = true;
    EXPECT_EQ(why_not_there(there, kAlice, {"/data"}), "") << "the kernel judges the engine";
  }
}

TEST(DestinationRule, WhatStandsThereAlready) {
  EXPECT_NE(why_not_there(facts(kAlice, 0755, Existing::File, kBob), kAlice, {}), "");
  EXPECT_NE(why_not_there(facts(kAlice, 0755, Existing::Link, kAlice), kAlice, {"/data"}), "");
  EXPECT_NE(why_not_there(facts(kAlice, 0755, Existing::Other, kAlice), kAlice, {"/data"}), "");
}

TEST(DestinationRule, NeverTheDropBox) {
  DestinationFacts box = facts(kAlice, 0755);
  box.is_dropbox = true;
  EXPECT_NE(why_not_there(box, kAlice, {"/"}), "");
}

TEST(DestinationRule, WhatIsNoDestination) {
  EXPECT_EQ(why_no_destination("/data/a.tsv"), "");
  EXPECT_EQ(why_no_destination("/a..b"), "");
  for (const char* bad : {"", "a", "/data/", "/", "/data/.", "/data/..", "/data/../a"}) {
    EXPECT_NE(why_no_destination(bad), "") << bad;
  }
}

TEST(DestinationRule, BelowMeansBelow) {
  EXPECT_TRUE(is_below("/a/b", "/a"));
  EXPECT_TRUE(is_below("/a", "/a/"));
  EXPECT_TRUE(is_below("/a", "/"));
  EXPECT_FALSE(is_below("/ab", "/a"));
}

}  // namespace
}  // namespace hpcbatch
