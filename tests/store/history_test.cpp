// What clients are told of tasks that have ended.
#include "store_in_folder.hpp"

namespace hpcbatch::store {
namespace {

TEST_F(StoreInFolder, SharesOneEnvironmentAmongAllThatHaveIt) {
  save({array(1, IndexRange{0, 0}), array(2, IndexRange{0, 0})});
  const auto first = store->history().recipe(ArrayId{1});
  const auto second = store->history().recipe(ArrayId{2});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes, "recipe 1");
  EXPECT_EQ(first->environment, second->environment);
  EXPECT_EQ(store->history().environment(first->environment), "shared surroundings");
  EXPECT_FALSE(store->history().recipe(ArrayId{3}));
}

TEST_F(StoreInFolder, FindsTheResultOfOneTaskInARange) {
  SaveResults cancelled{ArrayId{1}, IndexRange{10, 19}, {}};
  cancelled.outcome.failure = Failure::Cancelled;
  save({array(1, IndexRange{1, 30}),
        result(1, 5, Failure::Ok),
        {cancelled, {}},
        result(1, 25, Failure::OomTask)});
  EXPECT_EQ(store->history().result({ArrayId{1}, 5})->outcome.failure, Failure::Ok);
  EXPECT_EQ(store->history().result({ArrayId{1}, 5})->epoch, 5U);
  EXPECT_EQ(store->history().result({ArrayId{1}, 19})->outcome.failure, Failure::Cancelled);
  EXPECT_EQ(store->history().result({ArrayId{1}, 25})->outcome.failure, Failure::OomTask);
  EXPECT_FALSE(store->history().result({ArrayId{1}, 20}));
  EXPECT_FALSE(store->history().result({ArrayId{1}, 4}));
  const auto totals = store->history().totals(ArrayId{1});
  EXPECT_EQ(totals.done, 1U);
  EXPECT_EQ(totals.failed, 1U);
  EXPECT_EQ(totals.cancelled, 10U);
}

TEST_F(StoreInFolder, NeighboursThatEndWellShareARowAndKeepWhatIsTheirOwn) {
  const auto well = [](std::uint32_t index) {
    SaveResult save{attempt(1, index, index % 3, 1000 + index), pilot(), "node7", {}};
    save.outcome.started = from_microseconds(1'000'000 + 7 * index);
    save.outcome.ended = from_microseconds(2'000'000 - 3 * index);
    save.outcome.peak_memory = std::uint64_t{100} * index;
    save.outcome.cpu_time = Duration{index};
    save.outcome.read_bytes = std::uint64_t{512} * (index - 4);
    save.outcome.written_bytes = 4096;
    save.outcome.log = {"logs/one", index, index + 1, index + 2, index + 3, index % 2 == 0};
    return Write{save, {}};
  };
  save({array(1, IndexRange{1, 100}), well(8), well(5), well(7), well(6), well(10),
        result(1, 9, Failure::ToolFailed), well(4)});
  const auto rows = store->history().results({});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2].indices, (IndexRange{4, 8}));
  EXPECT_EQ(rows[2].outcome.started, from_microseconds(1'000'000 + 7 * 4));
  EXPECT_EQ(rows[2].outcome.ended, from_microseconds(2'000'000 - 3 * 4));
  for (const std::uint32_t index : {4U, 6U, 8U, 10U}) {
    const auto row = store->history().result({ArrayId{1}, index});
    ASSERT_TRUE(row);
    EXPECT_EQ(row->indices, (IndexRange{index, index}));
    EXPECT_EQ(row->attempt, index % 3);
    EXPECT_EQ(row->epoch, 1000 + index);
    EXPECT_EQ(row->pilot, to_string(pilot()));
    EXPECT_EQ(row->outcome.started, from_microseconds(1'000'000 + 7 * index));
    EXPECT_EQ(row->outcome.ended, from_microseconds(2'000'000 - 3 * index));
    EXPECT_EQ(row->outcome.peak_memory, 100 * index);
    EXPECT_EQ(row->outcome.cpu_time, Duration{index});
    EXPECT_EQ(row->outcome.read_bytes, 512 * (index - 4));
    EXPECT_EQ(row->outcome.written_bytes, 4096);
    EXPECT_EQ(row->outcome.log.file, "logs/one");
    EXPECT_EQ(row->outcome.log.last_out, index);
    EXPECT_EQ(row->outcome.log.err_bytes, index + 3);
    EXPECT_EQ(row->outcome.log.truncated, index % 2 == 0);
  }
  EXPECT_EQ(store->history().result({ArrayId{1}, 9})->outcome.failure, Failure::ToolFailed);
  EXPECT_EQ(store->history().totals(ArrayId{1}).done, 6U);
  // What runs again leaves the others as they are, also where it is cut out of their row.
  save({{SaveRevived{ArrayId{1}, IndexRange{6, 6}}, {}}});
  EXPECT_FALSE(store->history().result({ArrayId{1}, 6}));
  EXPECT_EQ(store->history().result({ArrayId{1}, 5})->epoch, 1005U);
  EXPECT_EQ(store->history().result({ArrayId{1}, 8})->epoch, 1008U);
}

TEST_F(StoreInFolder, KeepsTheOrderOfWhatEndedInOneCommit) {
  save({array(1, IndexRange{1, 9}), array(2, IndexRange{0, 0}), result(2, 0, Failure::Ok),
        result(1, 7, Failure::ToolFailed), result(1, 3, Failure::OomTask)});
  EXPECT_EQ(store->history().ended(ArrayId{1})->first_cause,
            first_cause({ArrayId{1}, 7}, Failure::ToolFailed, ""));
  const auto feed = store->history().changes("", 0, 10);
  ASSERT_EQ(feed.rows.size(), 3U);
  EXPECT_EQ(feed.rows[0].array, ArrayId{2});
  EXPECT_EQ(feed.rows[1].indices.first, 7U);
  EXPECT_EQ(feed.rows[2].indices.first, 3U);
}

TEST_F(StoreInFolder, FiltersResultsByState) {
  save({array(1, IndexRange{1, 3}), result(1, 1, Failure::Ok), result(1, 2, Failure::TimeTask),
        result(1, 3, Failure::Cancelled)});
  const auto of_state = [&](TaskState state) {
    Filter filter;
    filter.state = state;
    std::vector<std::uint32_t> found;
    for (const ResultRow& row : store->history().results(filter))
      found.push_back(row.indices.first);
    return found;
  };
  EXPECT_EQ(of_state(TaskState::Done), std::vector{1U});
  EXPECT_EQ(of_state(TaskState::Failed), std::vector{2U});
  EXPECT_EQ(of_state(TaskState::Cancelled), std::vector{3U});
}

TEST_F(StoreInFolder, FindsWhatEndedSinceHoweverLateOthersWereTold) {
  const auto ended = [](std::uint64_t id, std::uint32_t index, int at) {
    Write write = result(id, index, Failure::ToolFailed);
    std::get<SaveResult>(write.what).outcome.ended = from_microseconds(at);
    return write;
  };
  std::vector<Write> writes{array(1, IndexRange{1, 1}), array(2, IndexRange{1, 2}),
                            array(3, IndexRange{1, 1500}), ended(1, 1, 9000), ended(2, 1, 9000)};
  // Of a pilot that was away.
  for (std::uint32_t index = 1; index <= 1500; ++index) writes.push_back(ended(3, index, 100));
  save(std::move(writes));
  Filter filter;
  filter.ended_since = from_microseconds(5000);
  const auto rows = store->history().results(filter);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].array, ArrayId{2}) << "of an array that has not ended";
  EXPECT_EQ(rows[1].array, ArrayId{1});
  filter.array = ArrayId{1};
  EXPECT_EQ(store->history().results(filter).size(), 1U);
  filter.array = ArrayId{3};
  EXPECT_TRUE(store->history().results(filter).empty());
}

TEST_F(StoreInFolder, ListsResultsPageByPageWhateverTheOrderInWhichTheyCame) {
  SaveResults cancelled{ArrayId{2}, IndexRange{10, 19}, {}};
  cancelled.outcome.failure = Failure::Cancelled;
  save({array(1, IndexRange{1, 3}),
        array(2, IndexRange{1, 20}),
        array(3, IndexRange{0, 0}),
        result(3, 0, Failure::Ok),
        result(2, 20, Failure::Ok),
        {cancelled, {}},
        result(1, 2, Failure::Ok),
        result(2, 4, Failure::Ok),
        result(1, 1, Failure::Ok)});
  Filter filter;
  filter.limit = 2;
  std::vector<std::string> found;
  for (auto page = store->history().results(filter); !page.empty();
       page = store->history().results(filter)) {
    EXPECT_LE(page.size(), 2U);
    for (const ResultRow& row : page) {
      filter.before = TaskId{row.array, row.indices.first};
      found.push_back(to_string(*filter.before));
    }
  }
  EXPECT_EQ(found, (std::vector<std::string>{"3", "2.20", "2.10", "2.4", "1.2", "1.1"}));
  filter.array = ArrayId{2};
  filter.before.reset();
  EXPECT_EQ(store->history().results(filter).at(0).indices.first, 20U);
  filter.before = TaskId{ArrayId{2}, 10};
  ASSERT_EQ(store->history().results(filter).size(), 1U);
  EXPECT_EQ(store->history().results(filter).at(0).indices.first, 4U);
}

TEST_F(StoreInFolder, CountsSomeTasksOfAnArray) {
  SaveResults cancelled{ArrayId{1}, IndexRange{10, 19}, {}};
  cancelled.outcome.failure = Failure::Cancelled;
  save({array(1, IndexRange{1, 30}),
        result(1, 5, Failure::Ok),
        {cancelled, {}},
        result(1, 25, Failure::OomTask)});
  const auto count = [&](const std::string& indices) {
    const auto totals = store->history().totals(ArrayId{1}, *parse_index_set(indices));
    return std::vector<std::uint64_t>{totals.done, totals.failed, totals.cancelled};
  };
  EXPECT_EQ(count("1-4"), (std::vector<std::uint64_t>{0, 0, 0}));
  EXPECT_EQ(count("5"), (std::vector<std::uint64_t>{1, 0, 0}));
  EXPECT_EQ(count("12-15"), (std::vector<std::uint64_t>{0, 0, 4}));
  EXPECT_EQ(count("5,15-26"), (std::vector<std::uint64_t>{1, 1, 5}));
  EXPECT_EQ(count("1-30"), (std::vector<std::uint64_t>{1, 1, 10}));
}

TEST_F(StoreInFolder, KeepsCountOfAllThatEnded) {
  SaveResults failed{ArrayId{1}, IndexRange{10, 19}, {}};
  failed.outcome.failure = Failure::DependencyFailed;
  const auto count = [&] {
    const auto& totals = store->totals();
    return std::vector<std::uint64_t>{totals.done, totals.failed, totals.cancelled};
  };
  save({array(1, IndexRange{1, 30}),
        result(1, 5, Failure::Ok),
        {failed, {}},
        result(1, 25, Failure::Cancelled)});
  EXPECT_EQ(count(), (std::vector<std::uint64_t>{1, 10, 1}));
  save({{SaveRevived{ArrayId{1}, IndexRange{12, 14}}, {}}});
  EXPECT_EQ(count(), (std::vector<std::uint64_t>{1, 7, 1}));
  EXPECT_FALSE(store->commit({result(1, 12, Failure::Ok), array(1, IndexRange{1, 1})}, false))
      << "the array is there already";
  EXPECT_EQ(count(), (std::vector<std::uint64_t>{1, 7, 1})) << "nothing of it counts";
  reopen();
  EXPECT_EQ(count(), (std::vector<std::uint64_t>{1, 7, 1}));
}

TEST_F(StoreInFolder, FeedsChangesInOrderAndSaysWhatWasPruned) {
  save({array(1, IndexRange{1, 2}), result(1, 1, Failure::Ok)});
  save({result(1, 2, Failure::Ok), {SaveArrayEnded{ArrayId{1}}, {}}});
  const ChangeFeed all = store->history().changes("tester", 0, 100);
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_FALSE(all.pruned);
  EXPECT_TRUE(store->history().changes("tester", all.cursor, 100).rows.empty());
  EXPECT_TRUE(store->history().changes("somebody else", 0, 100).rows.empty());

  store->prune(from_microseconds(1'000'000), 100);
  const ChangeFeed later = store->history().changes("tester", 0, 100);
  EXPECT_TRUE(later.rows.empty());
  EXPECT_TRUE(later.pruned);
  EXPECT_FALSE(store->history().changes("tester", all.cursor, 100).pruned);
  EXPECT_FALSE(store->history().array(ArrayId{1}));
  EXPECT_EQ(store->begin().next_array, 2U) << "ids of what was pruned are not given again";
}

TEST_F(StoreInFolder, PruneLeavesWhatLives) {
  save({array(1, IndexRange{1, 2}), result(1, 1, Failure::Ok)});
  store->prune(from_microseconds(1'000'000), 100);
  EXPECT_TRUE(store->history().array(ArrayId{1}));
  EXPECT_TRUE(store->history().result({ArrayId{1}, 1}));
}

TEST_F(StoreInFolder, PrunesSoManyArraysAtATime) {
  for (std::uint64_t id = 1; id <= 5; ++id) {
    save({array(id, IndexRange{1, 2}),
          result(id, 1, Failure::Ok),
          result(id, 2, Failure::ToolFailed),
          {SaveArrayEnded{ArrayId{id}}, {}}});
  }
  const auto environment = store->history().recipe(ArrayId{1})->environment;
  EXPECT_FALSE(store->prune(from_microseconds(5000), 2)) << "none ended before that";
  EXPECT_TRUE(store->prune(from_microseconds(5001), 2));
  EXPECT_EQ(store->totals().done, 3U);
  EXPECT_TRUE(store->prune(from_microseconds(5001), 2));
  EXPECT_FALSE(store->history().environment(environment).empty());
  EXPECT_FALSE(store->prune(from_microseconds(5001), 2));
  EXPECT_EQ(store->totals().failed, 0U);
  EXPECT_TRUE(store->history().environment(environment).empty()) << "nobody needs it any more";
  EXPECT_EQ(store->begin().next_array, 6U);
}

TEST_F(StoreInFolder, RevivesSomeTasksOfARangeAndTheirDependants) {
  SaveResults failed{ArrayId{2}, IndexRange{1, 10}, {}};
  failed.outcome.failure = Failure::DependencyFailed;
  save({array(1, IndexRange{0, 0}),
        array(2, IndexRange{1, 10}, {{ArrayId{1}, std::nullopt, Dependency::Kind::Success}}),
        result(1, 0, Failure::ToolFailed),
        {failed, {}},
        {SaveArrayEnded{ArrayId{1}}, {}},
        {SaveArrayEnded{ArrayId{2}}, {}}});
  const auto revived = store->history().revivable({{ArrayId{1}, std::nullopt}}).arrays;
  ASSERT_EQ(revived.size(), 2U);
  EXPECT_EQ(revived[0].id, ArrayId{1});
  EXPECT_EQ(to_string(revived[0].array.indices), "0");
  EXPECT_EQ(to_string(revived[1].array.indices), "1-10");

  save({{SaveRevived{ArrayId{2}, IndexRange{4, 6}}, {}}});
  EXPECT_TRUE(store->history().result({ArrayId{2}, 3}));
  EXPECT_FALSE(store->history().result({ArrayId{2}, 4}));
  EXPECT_FALSE(store->history().result({ArrayId{2}, 6}));
  EXPECT_EQ(store->history().result({ArrayId{2}, 7})->outcome.failure, Failure::DependencyFailed);
  EXPECT_FALSE(store->history().array(ArrayId{2})->ended);
}

TEST_F(StoreInFolder, RevivesAllTasksOfAnArrayThatAreNamedOneByOne) {
  save({array(1, IndexRange{1, 9}), result(1, 2, Failure::OomTask), result(1, 5, Failure::OomTask),
        result(1, 7, Failure::OomTask)});
  const auto revived =
      store->history()
          .revivable({{ArrayId{1}, IndexRange{7, 7}}, {ArrayId{1}, IndexRange{2, 2}}})
          .arrays;
  ASSERT_EQ(revived.size(), 1U);
  EXPECT_EQ(to_string(revived[0].array.indices), "2,7");
  EXPECT_EQ(to_string(revived[0].not_ok), "5");
}

TEST_F(StoreInFolder, RevivesOnlyWhatFailedAsIsSaid) {
  Write seven = result(1, 5, Failure::ToolFailed);
  std::get<SaveResult>(seven.what).outcome.exit_code = 7;
  save({array(1, IndexRange{1, 9}), result(1, 2, Failure::OomTask), seven,
        result(1, 7, Failure::Cancelled), result(1, 8, Failure::TimeTask)});
  const auto again = [&](const AgainOnly& only) {
    return to_string(
        store->history().revivable({{ArrayId{1}, std::nullopt}}, only).arrays.at(0).array.indices);
  };
  EXPECT_EQ(again({}), "2,5,7-8");
  EXPECT_EQ(again({.failed = true}), "2,5,8");
  const auto so = [](const char* words) { return *parse_failure_choice(words); };
  EXPECT_EQ(again({.failures = {so("oom_task"), so("time_task")}}), "2,8");
  EXPECT_EQ(again({.failures = {so("exit:7"), so("time_task")}}), "5,8");
  EXPECT_TRUE(store->history()
                  .revivable({{ArrayId{1}, std::nullopt}}, {.failures = {so("exit:8")}})
                  .arrays.empty());
}

TEST_F(StoreInFolder, OfThoseThatEndedItFindsWhatPrinted) {
  Write loud = result(1, 2, Failure::ToolFailed), cut = result(1, 3, Failure::Ok);
  std::get<SaveResult>(loud.what).outcome.log.file = "A0.1.log";
  std::get<SaveResult>(cut.what).outcome.log.truncated = true;
  save({array(1, IndexRange{1, 3}), result(1, 1, Failure::Ok), loud, cut});
  std::string found;
  for (const ResultRow& row : store->history().results({.array = ArrayId{1}, .printed = true}))
    found += std::to_string(row.indices.first) + " ";
  EXPECT_EQ(found, "3 2 ");
}

TEST_F(StoreInFolder, RevivesWhatWaitedForAnArrayThatIsPruned) {
  const auto each = Dependency::Kind::EachSuccess;
  save({array(1, IndexRange{1, 9}), result(1, 1, Failure::Ok), {SaveArrayEnded{ArrayId{1}}, {}}});
  store->prune(from_microseconds(1'000'000), 100);
  save({array(2, IndexRange{1, 2}, {{ArrayId{1}, std::nullopt, each}}),
        result(2, 1, Failure::ToolFailed),
        array(3, IndexRange{5, 6}, {{ArrayId{1}, std::nullopt, each}}),
        result(3, 5, Failure::ToolFailed)});
  const Revivable found =
      store->history().revivable({{ArrayId{2}, std::nullopt}, {ArrayId{3}, std::nullopt}});
  EXPECT_EQ(found.arrays.size(), 2U);
  ASSERT_EQ(found.ended.size(), 1U);
  EXPECT_EQ(found.ended[0].id, ArrayId{1});
  EXPECT_EQ(to_string(found.ended[0].ok), "1-2,5-6");
  EXPECT_EQ(found.live, (std::vector{ArrayId{2}, ArrayId{3}}));
  reopen();
  const Snapshot snapshot = store->begin();
  ASSERT_EQ(snapshot.ended.size(), 1U);
  EXPECT_EQ(to_string(snapshot.ended[0].ok), "1-2,5-6");
}

}  // namespace
}  // namespace hpcbatch::store
