// What tasks needed that have ended, where a retry has changed what their array needs since.
#include "store/salvage.hpp"
#include "store_in_folder.hpp"

namespace hpcbatch::store {
namespace {

using NeedsThenTest = StoreInFolder;

TEST_F(NeedsThenTest, NeedsThatChangeTwiceBeforeAnythingEndsAreTheFirstOfThoseThatEnded) {
  save({array(1, IndexRange{1, 3}), result(1, 1, Failure::OomTask), result(1, 2, Failure::OomTask),
        result(1, 3, Failure::OomTask)});
  for (std::uint32_t index : {1U, 2U}) {
    Needs more = store->history().array(ArrayId{1})->needs;
    more.amounts.set(kMemory, Amount::of(std::int64_t{1000} * index));
    save({{SaveRevived{
        .array = ArrayId{1}, .indices = IndexSet(IndexRange{index, index}), .needs = more}}});
  }
  const ArrayRow row = *store->history().array(ArrayId{1});
  EXPECT_EQ(store->history()
                .needs_then(row, *store->history().result({ArrayId{1}, 3}))
                .amounts.get(kMemory),
            Amount{});
}

/// It keeps what it was given.
TEST_F(NeedsThenTest, WhatRunsWhileNeedsChangeHadTheOldOnes) {
  save({array(1, IndexRange{1, 2}),
        {SaveLeases{pilot(), {attempt(1, 1), attempt(1, 2, 1, 6)}}, {}},
        result(1, 1, Failure::OomTask)});
  Needs more = store->history().array(ArrayId{1})->needs;
  more.amounts.set(kMemory, Amount::of(1000));
  save({{SaveRevived{.array = ArrayId{1}, .indices = IndexSet(IndexRange{1, 1}), .needs = more}}});
  const ArrayRow changed = *store->history().array(ArrayId{1});
  EXPECT_EQ(store->history().needs_then(changed, 6).amounts.get(kMemory), Amount{});
  EXPECT_EQ(store->history().needs_then(changed, 7).amounts.get(kMemory), Amount::of(1000));
  EXPECT_EQ(store->history().needs_then(changed, 0).amounts.get(kMemory), Amount::of(1000));
  SaveResult late{attempt(1, 2, 1, 6), pilot(), "node7", {}};
  SaveResult again{attempt(1, 1, 2, 7), pilot(), "node7", {}};
  save({{late, {}}, {again, {}}});
  const ArrayRow row = *store->history().array(ArrayId{1});
  const auto memory_of = [&](std::uint32_t index) {
    return store->history()
        .needs_then(row, *store->history().result({ArrayId{1}, index}))
        .amounts.get(kMemory);
  };
  EXPECT_EQ(memory_of(2), Amount{});
  EXPECT_EQ(memory_of(1), Amount::of(1000));
}

/// The newest result goes with it.
TEST_F(NeedsThenTest, WhatARetryWithdrawsChangesNothingOfOthers) {
  const auto with_epoch = [](std::uint32_t index, std::uint64_t epoch) {
    return Write{SaveResult{attempt(1, index, 1, epoch), pilot(), "node7", {}}, {}};
  };
  const auto revive = [&](std::uint32_t index, std::int64_t memory) {
    Needs needs = store->history().array(ArrayId{1})->needs;
    needs.amounts.set(kMemory, Amount::of(memory));
    save({{SaveRevived{
        .array = ArrayId{1}, .indices = IndexSet(IndexRange{index, index}), .needs = needs}}});
  };
  save({array(1, IndexRange{1, 3}), with_epoch(1, 5), with_epoch(3, 6), with_epoch(2, 7)});
  revive(2, 8000);
  save({{SaveLeases{pilot(), {attempt(1, 2, 2, 300)}}, {}}});
  revive(3, 16000);
  const ArrayRow row = *store->history().array(ArrayId{1});
  EXPECT_EQ(store->history()
                .needs_then(row, *store->history().result({ArrayId{1}, 1}))
                .amounts.get(kMemory),
            Amount{});
  EXPECT_EQ(store->history().needs_then(row, 300).amounts.get(kMemory), Amount::of(8000));
}

TEST_F(NeedsThenTest, ASalvagedStoreKnowsThem) {
  save({array(1, IndexRange{1, 2}), result(1, 1, Failure::Ok), result(1, 2, Failure::OomTask)});
  Needs more = store->history().array(ArrayId{1})->needs;
  more.amounts.set(kMemory, Amount::of(1000));
  save({{SaveRevived{.array = ArrayId{1}, .indices = IndexSet(IndexRange{2, 2}), .needs = more}}});
  store.reset();
  const std::string saved = folder + "/saved.db";
  const auto report =
      salvage(folder + "/store.db", saved, [](const std::string&) { return false; });
  ASSERT_TRUE(report) << report.error().text;
  auto opened = Store::open(saved);
  ASSERT_TRUE(opened) << opened.error().text;
  History& history = (*opened)->history();
  const ArrayRow row = *history.array(ArrayId{1});
  EXPECT_EQ(row.needs.amounts.get(kMemory), Amount::of(1000));
  EXPECT_EQ(history.needs_then(row, *history.result({ArrayId{1}, 1})).amounts.get(kMemory),
            Amount{});
}

TEST_F(NeedsThenTest, NeedsAreThoseThatATaskHadWhenItEnded) {
  save({array(1, IndexRange{1, 2}), result(1, 1, Failure::Ok), result(1, 2, Failure::OomTask)});
  Needs more = store->history().array(ArrayId{1})->needs;
  more.amounts.set(kMemory, Amount::of(1000));
  save({{SaveRevived{.array = ArrayId{1}, .indices = IndexSet(IndexRange{2, 2}), .needs = more}}});
  save({result(1, 2, Failure::Ok)});
  const ArrayRow row = *store->history().array(ArrayId{1});
  const auto memory_of = [&](std::uint32_t index) {
    return store->history()
        .needs_then(row, *store->history().result({ArrayId{1}, index}))
        .amounts.get(kMemory);
  };
  EXPECT_EQ(memory_of(1), Amount{});
  EXPECT_EQ(memory_of(2), Amount::of(1000));
}

}  // namespace
}  // namespace hpcbatch::store
