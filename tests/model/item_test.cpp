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

TEST(ItemTest, IsTheSameByItsColumns) {
  const auto row = [](std::string text, std::string a, std::string b) {
    Item item(std::move(text));
    item.add_column("1", std::move(a));
    item.add_column("2", std::move(b));
    return same_item(item);
  };
  EXPECT_EQ(row("a b", "a", "b"), row("b a", "a", "b"));
  EXPECT_NE(row("a b c", "a b", "c"), row("a b c", "a", "b c"));
  EXPECT_NE(same_item(Item("a b c")), row("a b c", "a b", "c"));
  EXPECT_EQ(same_item(Item("a")), same_item(Item("a")));
}

TEST(ItemTest, WhatSeparatesIsNoPartOfOne) {
  EXPECT_TRUE(can_be_packed("a\tb\nc"));
  EXPECT_FALSE(can_be_packed("a\x1e"));
  EXPECT_FALSE(can_be_packed("\x1f"));
}

}  // namespace
}  // namespace hpcbatch
