// Submissions as a whole.
#include "store_in_folder.hpp"

namespace hpcbatch::store {
namespace {

class OverviewTest : public StoreInFolder {
 protected:
  static Write named(std::uint64_t id, const std::string& name, const std::string& client = "me") {
    Write write = array(id, IndexRange{1, 3});
    std::get<SaveArrays>(write.what).client = client;
    std::get<SaveArrays>(write.what).submitted =
        from_microseconds(static_cast<std::int64_t>(id) * 1000);
    write.recipes.front().words.edit().name = name;
    return write;
  }
  std::string ids(const ArrayFilter& filter) {
    std::string all;
    for (const ArrayOverview& one : store->history().arrays(filter).arrays)
      all += (all.empty() ? "" : " ") + std::to_string(one.row.id.value);
    return all;
  }
};

TEST_F(OverviewTest, CountsHowTasksHaveEnded) {
  Write first = result(1, 1, Failure::Ok), last = result(1, 3, Failure::Cancelled);
  std::get<SaveResult>(first.what).outcome.started = from_microseconds(3000);
  std::get<SaveResult>(last.what).outcome.ended = from_microseconds(9000);
  save({named(1, "sweep"), first, result(1, 2, Failure::OomTask), last});
  const auto whole = store->history().overview(ArrayId{1});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->done, 1U);
  EXPECT_EQ(whole->failed, 1U);
  EXPECT_EQ(whole->cancelled, 1U);
  EXPECT_EQ(whole->started, from_microseconds(3000));
  EXPECT_EQ(whole->last_ended, from_microseconds(9000));
  EXPECT_FALSE(store->history().overview(ArrayId{2}));
}

TEST_F(OverviewTest, AreChosenNewestFirst) {
  save({named(1, "sweep"), named(2, "other", "you"), named(3, "sweep-2"),
        result(1, 1, Failure::OomTask), result(2, 1, Failure::Ok),
        result(3, 1, Failure::Cancelled)});
  EXPECT_EQ(ids({}), "3 2 1");
  EXPECT_EQ(ids({.client = "me"}), "3 1");
  EXPECT_EQ(ids({.name = "sweep"}), "1");
  EXPECT_EQ(ids({.name = "sweep*"}), "3 1");
  EXPECT_EQ(ids({.before = ArrayId{3}}), "2 1");
  EXPECT_EQ(ids({.since = from_microseconds(2000)}), "3 2");
  EXPECT_EQ(ids({.state = TaskState::Failed}), "1");
  EXPECT_EQ(ids({.state = TaskState::Cancelled}), "3");
  EXPECT_EQ(ids({.failure = FailureChoice{.failure = Failure::OomTask}}), "1");
  EXPECT_EQ(ids({.among = std::vector<ArrayId>{ArrayId{1}, ArrayId{3}}}), "3 1");
}

TEST_F(OverviewTest, WhereTasksEndedIsKnownByTheirPilots) {
  save({named(1, ""),
        named(2, ""),
        named(3, ""),
        result(1, 1, Failure::Ok),
        {SaveAllocation{Allocation{.id = pilot().allocation, .site = "quartz"}}, {}}});
  EXPECT_EQ(ids({.site = "quartz"}), "1");
  EXPECT_EQ(ids({.site = "quartz", .at_site = {ArrayId{3}}}), "3 1");
  EXPECT_EQ(ids({.site = "basalt"}), "");
}

TEST_F(OverviewTest, APageSaysWhereTheNextBegins) {
  std::vector<Write> writes;
  for (std::uint64_t id = 1; id <= 7000; ++id) writes.push_back(named(id, id == 5 ? "rare" : ""));
  save(writes);
  ArrayFilter filter{.limit = 2};
  ArrayPage page = store->history().arrays(filter);
  EXPECT_EQ(page.arrays.size(), 2U);
  EXPECT_EQ(page.next, ArrayId{6999});
  filter.name = "rare";
  page = store->history().arrays(filter);
  EXPECT_TRUE(page.arrays.empty());
  ASSERT_EQ(page.next, ArrayId{2001}) << "nobody waits while all are looked at";
  filter.before = page.next;
  page = store->history().arrays(filter);
  ASSERT_EQ(page.arrays.size(), 1U);
  EXPECT_EQ(page.arrays[0].row.id, ArrayId{5});
  EXPECT_FALSE(page.next) << "that was all";
}

TEST_F(OverviewTest, WhatCameInOneSubmitCanBeOne) {
  std::vector<Write> writes{named(1, "alone")};
  for (std::uint64_t id = 2; id <= 4; ++id) {
    writes.push_back(named(id, id == 4 ? "fit" : "prepare"));
    std::get<SaveArrays>(writes.back().what).key = "file";
  }
  writes.push_back(result(2, 1, Failure::Ok));
  writes.push_back(result(4, 3, Failure::OomTask));
  save(writes);
  ArrayFilter filter{.whole_submits = true};
  ArrayPage page = store->history().arrays(filter);
  ASSERT_EQ(page.arrays.size(), 2U);
  const ArrayOverview& file = page.arrays[0];
  EXPECT_EQ(file.submit_first, ArrayId{2});
  EXPECT_EQ(file.submit_last, ArrayId{4});
  EXPECT_EQ(file.names, (std::vector<std::string>{"prepare", "fit"}));
  EXPECT_EQ(file.tasks, 9U);
  EXPECT_EQ(file.done, 1U);
  EXPECT_EQ(file.failed, 1U);
  EXPECT_EQ(page.arrays[1].row.id, ArrayId{1});
  EXPECT_FALSE(page.arrays[1].names);
  filter.limit = 1;
  EXPECT_EQ(store->history().arrays(filter).next, ArrayId{2}) << "below all of it";
  filter.failure = FailureChoice{.failure = Failure::OomTask};
  EXPECT_EQ(store->history().arrays(filter).arrays.size(), 1U);
  EXPECT_EQ(ids({.limit = 100}), "4 3 2 1");
}

/// What a page or a list shows of large submissions each second.
std::string told_of(Store& store) {
  std::string all;
  const auto add = [&](const ArrayOverview& one) {
    const auto time = [](const std::optional<Time>& at) { return at ? to_microseconds(*at) : -1; };
    all += std::to_string(one.row.id.value) + ": " + std::to_string(one.tasks) + " " +
           std::to_string(one.done) + "/" + std::to_string(one.failed) + "/" +
           std::to_string(one.cancelled) + " " + std::to_string(time(one.started)) + "-" +
           std::to_string(time(one.last_ended));
    if (one.names)
      for (const std::string& name : *one.names) all += " " + name;
    all += "\n";
  };
  for (const ArrayOverview& one : store.history().arrays({.whole_submits = true}).arrays) add(one);
  for (const ArrayOverview& one : store.history().arrays({}).arrays) add(one);
  return all;
}

TEST_F(OverviewTest, WhatIsKnownOfLargeOnesIsWhatTheFileSays) {
  constexpr std::uint32_t kTasks = 600;
  std::vector<Write> writes;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    writes.push_back(
        array(id, IndexRange{1, id == 4 ? 3 * kTasks : kTasks}, {}, id < 4 ? "k" : ""));
    writes.back().recipes.front().words.edit().name = "n" + std::to_string(id);
  }
  save(writes);
  const auto expect_truth = [&](const char* what) {
    const std::string known = told_of(*store);
    EXPECT_EQ(known, told_of(*store)) << what;
    reopen();
    EXPECT_EQ(known, told_of(*store)) << what;
  };
  expect_truth("nothing has ended");
  Write early = result(2, 7, Failure::ToolFailed), late = result(4, 1, Failure::Ok);
  std::get<SaveResult>(early.what).outcome.started = from_microseconds(3000);
  std::get<SaveResult>(late.what).outcome.ended = from_microseconds(9000);
  save({early, late, result(1, 1, Failure::Cancelled)});
  expect_truth("some have");
  SaveResults rest{ArrayId{1}, IndexRange{2, kTasks}, {}};
  rest.outcome.failure = Failure::Cancelled;
  rest.outcome.ended = from_microseconds(10'000);
  save({{rest, {}}});
  expect_truth("many at once");
  save({{SaveRevived{.array = ArrayId{1}, .indices = IndexRange{5, 9}}, {}}});
  expect_truth("some run again");
  SaveTerms terms{.array = ArrayId{3}};
  terms.terms.needs.amounts.set(kCpus, Amount::of(1));
  terms.name = "renamed";
  save({{terms, {}}});
  expect_truth("another name");
  save({result(1, 5, Failure::Ok), {SaveArrayEnded{ArrayId{1}}, {}}});
  EXPECT_FALSE(store->prune(from_microseconds(1'000'000), 10));
  expect_truth("one is forgotten");
}

TEST_F(OverviewTest, WhatWasNotWrittenIsNotKnown) {
  save({array(1, IndexRange{1, 2000})});
  const std::string before = told_of(*store);
  // The same array again: refused, and what came before it with it.
  const SaveResults some{ArrayId{1}, IndexRange{1, 5}, {}};
  EXPECT_FALSE(store->commit({{some, {}}, array(1, IndexRange{1, 2})}, false));
  EXPECT_EQ(told_of(*store), before);
}

TEST_F(OverviewTest, ALargeSubmitHidesNothingThatIsOlder) {
  std::vector<Write> writes{named(1, "alone")};
  for (std::uint64_t id = 2; id <= 2 + History::kArraysLookedAt; ++id) {
    writes.push_back(named(id, ""));
    std::get<SaveArrays>(writes.back().what).key = "file";
  }
  save(writes);
  const ArrayPage page = store->history().arrays({.whole_submits = true});
  ASSERT_EQ(page.arrays.size(), 2U);
  EXPECT_EQ(page.arrays[1].row.id, ArrayId{1});
  EXPECT_FALSE(page.next);
  ArrayFilter first{.whole_submits = true, .limit = 1};
  EXPECT_EQ(store->history().arrays(first).next, ArrayId{2});
}

TEST_F(OverviewTest, FailuresAreGroupedByTheirWay) {
  Write killed = result(1, 2, Failure::ToolSignal);
  std::get<SaveResult>(killed.what).outcome.signal = 9;
  Write other = array(1, IndexRange{1, 9});
  save({other, killed});
  for (const std::uint32_t index : {7U, 4U, 5U}) {
    Write failed = result(1, index, Failure::ToolFailed);
    std::get<SaveResult>(failed.what).outcome.exit_code = index == 5 ? 1 : 3;
    save({failed});
  }
  const auto groups = store->history().failures(ArrayId{1});
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].exit_code, 3);
  EXPECT_EQ(groups[0].tasks, 2U);
  EXPECT_EQ(groups[0].first, 4U);
}

TEST_F(OverviewTest, BySignalsOnlySignalsAreTold) {
  save({array(1, IndexRange{1, 9})});
  for (const std::uint32_t index : {1U, 2U, 3U}) {
    Write killed = result(1, index, Failure::OomTask);
    std::get<SaveResult>(killed.what).outcome.signal = index == 1 ? 9 : index == 2 ? 15 : 0;
    std::get<SaveResult>(killed.what).outcome.exit_code = index == 3 ? 137 : 0;
    save({killed});
  }
  const auto groups = store->history().failures(ArrayId{1});
  ASSERT_EQ(groups.size(), 1U) << "it was their memory, however they ended";
  EXPECT_EQ(groups[0].tasks, 3U);
  EXPECT_EQ(groups[0].signal, 0);
}

}  // namespace
}  // namespace hpcbatch::store
