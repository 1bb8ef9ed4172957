#include "model/site.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

const PathMap kMap{{"/home", "/home"}, {"/data", "/gpfs/data"}, {"/data/own", "/scratch"}};

TEST(PathMap, TheInnermostFolderSaysTheName) {
  EXPECT_EQ(seen_as(kMap, "/home/me/a"), "/home/me/a");
  EXPECT_EQ(seen_as(kMap, "/data/x/y"), "/gpfs/data/x/y");
  EXPECT_EQ(seen_as(kMap, "/data"), "/gpfs/data");
  EXPECT_EQ(seen_as(kMap, "/data/own/z"), "/scratch/z");
}

TEST(PathMap, WhatLiesElsewhereIsNotSeen) {
  EXPECT_FALSE(seen_as(kMap, "/database/x"));
  EXPECT_FALSE(seen_as(kMap, "/"));
  EXPECT_FALSE(seen_as(kMap, "relative"));
  EXPECT_FALSE(seen_as(kMap, ""));
  EXPECT_FALSE(seen_as({}, "/home/me"));
}

TEST(PathMap, NoWayLeadsOutOfAFolder) {
  EXPECT_FALSE(seen_as(kMap, "/home/../etc/passwd"));
  EXPECT_EQ(seen_as(kMap, "/home/a/../b"), "/home/b");
  EXPECT_EQ(seen_as(kMap, "/etc/../data/x"), "/gpfs/data/x");
}

TEST(PathMap, TheRootHoldsEverything) {
  EXPECT_EQ(seen_as(everything_shared(), "/any/thing"), "/any/thing");
  EXPECT_EQ(seen_as({{"/", "/net/engine"}}, "/any/thing"), "/net/engine/any/thing");
  EXPECT_EQ(seen_as({{"/", "/net/engine"}}, "/"), "/net/engine");
  EXPECT_EQ(seen_as({{"/mnt", "/"}}, "/mnt/a"), "/a");
  EXPECT_EQ(seen_as({{"/mnt", "/"}}, "/mnt"), "/");
}

}  // namespace
}  // namespace hpcbatch
