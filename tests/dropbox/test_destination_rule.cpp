// Where results may go: the table of the rule.
#include "dropbox/destination_rule.hpp"

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
          .existing_owner = existing_owner};
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
  EXPECT_EQ(why_not_there(facts(kBob, 0755, Existing::File, kBob), kAlice, {"/data"}), "");
  EXPECT_NE(why_not_there(facts(kBob, 0755), kAlice, {"/dat"}), "");
  EXPECT_NE(why_not_there(facts(kBob, 0755), kAlice, {"/data/out/deeper"}), "");
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
