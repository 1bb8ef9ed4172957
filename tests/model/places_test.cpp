// What stands for each task of an array.
#include "model/places.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(Places, PartsOfAnItemThatIsAPath) {
  const auto parts = [](const std::string& item) {
    return with_item("{} {.} {/} {//} {/.}", item);
  };
  EXPECT_EQ(parts("/data/a.b/x.tar.gz"),
            "/data/a.b/x.tar.gz /data/a.b/x.tar x.tar.gz /data/a.b x.tar");
  EXPECT_EQ(parts("x.bam"), "x.bam x x.bam . x");
  EXPECT_EQ(parts("a.b/x"), "a.b/x a.b/x x a.b x");
  EXPECT_EQ(parts("/x"), "/x /x x / x");
  EXPECT_EQ(parts("d/.profile"), "d/.profile d/.profile .profile d .profile");
  EXPECT_EQ(parts(""), "   . ");
}

TEST(Places, WhatAnItemHasOfPlacesStays) {
  EXPECT_EQ(with_item("{} {/}", "{/}/{.}"), "{/}/{.} {.}");
  EXPECT_EQ(with_item("{#}: {}", "{#}", 7), "7: {#}");
  EXPECT_EQ(with_places("{}.{id}", {ArrayId{12}, 3}, "{id}"), "{id}.12.3");
}

TEST(Places, OthersStayAsTheyAre) {
  for (const char* text : {"{", "}", "{x}", "{index}", "{ }", "{///}", "a{b", ""})
    EXPECT_EQ(with_item(text, "item", 3), text);
  EXPECT_FALSE(has_item("{index} {#} {id}"));
  EXPECT_FALSE(has_place("{x} {"));
}

TEST(Places, InPathsTheIndexStandsForAMissingItem) {
  const TaskId task{ArrayId{12}, 3};
  EXPECT_EQ(with_places("o.{}.{#}.{index}.{id}", task, std::nullopt), "o.3.3.3.12.3");
  EXPECT_EQ(with_places("{//}/out/{/.}.txt", task, "/in/a.wav"), "/in/out/a.txt");
  for (const char* path : {"{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{index}", "{id}"})
    EXPECT_TRUE(has_place(path)) << path;
}

}  // namespace
}  // namespace hpcbatch
