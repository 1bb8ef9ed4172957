// An item with columns is kept as one text and is the same afterwards.
#include "model/item.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(ItemTest, IsTheSameAfterItWasPacked) {
  Item item("a b");
  item.add_column("1", "a");
  item.add_column("sample", "");
  item.add_column("last", "x=y\tz\n");
  const Item again = Item::unpacked(item.packed());
  EXPECT_EQ(again.text(), "a b");
  EXPECT_EQ(again.columns(), item.columns());
  EXPECT_EQ(*again.column("2"), "");
  EXPECT_EQ(*again.column("last"), "x=y\tz\n");
  EXPECT_EQ(again.column("4"), nullptr);
  EXPECT_EQ(again.column("0"), nullptr);
  EXPECT_EQ(again.column(""), nullptr);
}

TEST(ItemTest, WhatSeparatesIsNoPartOfOne) {
  EXPECT_TRUE(can_be_packed("a\tb\nc"));
  EXPECT_FALSE(can_be_packed("a\x1e"));
  EXPECT_FALSE(can_be_packed("\x1f"));
}

}  // namespace
}  // namespace hpcbatch
