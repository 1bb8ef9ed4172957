// Sets of array indices behave like std::set, whatever is done to them, and cost what their gaps
// cost.
#include "model/index_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace hpcbatch {
namespace {

constexpr std::uint32_t kLargest = 0xFFFFFFFE;

std::set<std::uint32_t> members(const IndexSet& set) {
  std::set<std::uint32_t> all;
  for (const IndexRange& range : set.ranges()) {
    for (std::uint32_t i = range.first; i <= range.last; ++i) all.insert(i);
  }
  return all;
}

/// Sorted from back to front, disjoint, not touching.
bool is_tidy(const IndexSet& set) {
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < set.ranges().size(); ++i) {
    const IndexRange& range = set.ranges()[i];
    if (range.first > range.last) return false;
    if (i > 0 && std::uint64_t{range.last} + 1 >= set.ranges()[i - 1].first) return false;
    size += std::uint64_t{range.last} - range.first + 1;
  }
  return size == set.size();
}

class Pair {
 public:
  explicit Pair(std::uint32_t seed) : random_(seed) {}

  void change() {
    const IndexRange range = any_range();
    switch (below(6)) {
      case 0:
      case 1:
        set.add(range);
        for (std::uint32_t i = range.first; i <= range.last; ++i) naive.insert(i);
        break;
      case 2:
        set.remove(range);
        for (std::uint32_t i = range.first; i <= range.last; ++i) naive.erase(i);
        break;
      case 3:
        if (naive.empty()) return;
        EXPECT_EQ(set.pop_first(), *naive.begin());
        naive.erase(naive.begin());
        break;
      case 4: {
        const IndexSet other = any_set();
        set.add(other);
        naive.merge(members(other));
        break;
      }
      default: {
        const IndexSet other = any_set();
        set.remove(other);
        for (const std::uint32_t i : members(other)) naive.erase(i);
      }
    }
  }
  IndexSet any_set() {
    IndexSet some;
    for (std::uint32_t n = below(12); n > 0; --n) some.add(any_range());
    return some;
  }

  IndexSet set;
  std::set<std::uint32_t> naive;

 private:
  IndexRange any_range() {
    const std::uint32_t first = below(60);
    return {first, first + below(8)};
  }
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }

  std::mt19937 random_;
};

TEST(IndexSets, DoAsANaiveSetDoes) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Pair pair(seed);
    for (int step = 0; step < 60; ++step) {
      pair.change();
      ASSERT_TRUE(is_tidy(pair.set)) << to_string(pair.set);
      ASSERT_EQ(members(pair.set), pair.naive) << "seed " << seed << ", step " << step;
      const IndexSet other = pair.any_set();
      std::set<std::uint32_t> common;
      for (const std::uint32_t i : members(other)) {
        if (pair.naive.contains(i)) common.insert(i);
      }
      const IndexSet both = pair.set.intersection(other);
      ASSERT_TRUE(is_tidy(both));
      ASSERT_EQ(members(both), common);
      for (std::uint32_t i = 0; i < 70; ++i)
        ASSERT_EQ(pair.set.contains(i), pair.naive.contains(i));
      if (pair.set.empty()) continue;
      ASSERT_EQ(parse_index_set(to_string(pair.set)), pair.set);
    }
  }
}

TEST(IndexSets, AreValues) {
  for (const char* text : {"3", "3-9", "1,5,7-9"}) {
    const IndexSet set = *parse_index_set(text);
    IndexSet copy = set;
    copy.add(copy);
    EXPECT_EQ(copy, set);
    copy.remove(set.ranges().front().last);
    EXPECT_NE(copy, set);
    EXPECT_EQ(to_string(set), text);
    IndexSet moved = std::move(copy = set);
    EXPECT_EQ(moved, set);
    moved.remove(IndexSet(moved));
    EXPECT_TRUE(moved.empty());
    moved.add(4);
    EXPECT_EQ(to_string(moved), "4");
  }
}

TEST(IndexSets, OfFewRangesAndManyMeetTheSame) {
  IndexSet many;
  for (std::uint32_t i = 0; i < 1000; ++i) many.add(IndexRange{10 * i, 10 * i + 4});
  IndexSet few;
  few.add(IndexRange{3, 12});
  few.add(55);
  few.add(58);
  few.add(IndexRange{9994, 20'000});
  EXPECT_EQ(to_string(many.intersection(few)), "3-4,10-12,9994");
  EXPECT_EQ(few.intersection(many), many.intersection(few));
  EXPECT_TRUE(few.intersection({}).empty());
  EXPECT_EQ(many.intersection(IndexRange{0, 20'000}), many);
}

TEST(IndexSets, AreMadeOfRangesInAnyOrder) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::vector<IndexRange> ranges;
    IndexSet one_by_one;
    for (std::uint32_t n = 0; n < seed % 12; ++n) {
      const auto first = static_cast<std::uint32_t>(random() % 60);
      ranges.push_back({first, first + static_cast<std::uint32_t>(random() % 8)});
      one_by_one.add(ranges.back());
    }
    const IndexSet at_once = IndexSet::of(ranges);
    ASSERT_TRUE(is_tidy(at_once)) << "seed " << seed;
    ASSERT_EQ(at_once, one_by_one) << "seed " << seed;
  }
}

// Where each of a million ranges cost a walk over the others, this would not end.
TEST(IndexSets, OfAMillionGapsAreMadeReadJoinedAndParted) {
  const auto set_of = [](const std::string& text) { return parse_index_set(text).value(); };
  const IndexSet even = set_of("0-1999998:2");
  const IndexSet odd = set_of("1-1999999:2");
  IndexSet all = even;
  all.add(odd);
  EXPECT_EQ(all, IndexSet(IndexRange{0, 1'999'999}));
  all.remove(odd);
  EXPECT_EQ(all, even);
  EXPECT_EQ(parse_index_set(to_string(even)), even);
  all.remove(even);
  EXPECT_TRUE(all.empty());
}

TEST(IndexSets, ReachTheLargestIndex) {
  IndexSet all(IndexRange{0, kLargest});
  EXPECT_EQ(all.size(), std::uint64_t{kLargest} + 1);
  all.remove(kLargest);
  EXPECT_FALSE(all.contains(kLargest));
  all.add(kLargest);
  EXPECT_EQ(all.ranges().size(), 1U);
  const IndexSet ends = *parse_index_set("0,2,4,6,4294967292,4294967294");
  all.remove(ends);
  EXPECT_EQ(to_string(all), "1,3,5,7-4294967291,4294967293");
  all.add(ends);
  EXPECT_EQ(all, IndexSet(IndexRange{0, kLargest}));
}

TEST(IndexSets, ReadWhatPeopleWrite) {
  EXPECT_EQ(to_string(*parse_index_set("1-100")), "1-100");
  EXPECT_EQ(to_string(*parse_index_set("1-10:4")), "1,5,9");
  EXPECT_EQ(to_string(*parse_index_set("7-9,3")), "3,7-9");
  EXPECT_EQ(to_string(*parse_index_set("0-4294967294")), "0-4294967294");
  for (const char* text : {"", "-", "1-", "-1", "5-1", "1-5:0", "1-5:", "1,,2", "1,", "a", "1 2",
                           "4294967295", "1:2", "99999999999", "1-2-3", "+1"}) {
    EXPECT_EQ(parse_index_set(text), std::nullopt) << text;
  }
}

TEST(IndexSets, RefuseARangeThatWouldFillMemory) {
  EXPECT_EQ(parse_index_set("0-4294967294:2"), std::nullopt);
  EXPECT_EQ(parse_index_set("0-1999998:2")->size(), 1'000'000U);
  EXPECT_EQ(parse_index_set("0-999998:2,1-999999:2")->size(), 1'000'000U);
  EXPECT_EQ(parse_index_set("0-1999998:2,5-9:2"), std::nullopt);
}

}  // namespace
}  // namespace hpcbatch
