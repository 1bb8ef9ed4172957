// What an engine finds when it starts again.
#include "store/salvage.hpp"
#include "store_in_folder.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include <sys/resource.h>
#include <sys/stat.h>

namespace hpcbatch::store {
namespace {

TEST_F(StoreInFolder, CountsItsStartsAndKeepsItsName) {
  const Snapshot first = store->begin();
  const std::string secret = store->secret();
  reopen();
  const Snapshot second = store->begin();
  EXPECT_EQ(second.engine_start, first.engine_start + 1);
  EXPECT_EQ(second.engine_name, first.engine_name);
  EXPECT_EQ(first.engine_name.size(), 5U);
  EXPECT_EQ(store->secret(), secret);
  EXPECT_EQ(secret.size(), 32U);
}

TEST_F(StoreInFolder, GivesBackWhatWasAlive) {
  SaveHold hold{ArrayId{1}, IndexRange{90, 100}};
  SaveResults cancelled{ArrayId{1}, IndexRange{20, 29}, {}};
  cancelled.outcome.failure = Failure::Cancelled;
  save({array(1, IndexRange{1, 100}, {}, "key"),
        array(2, IndexRange{0, 0}, {{ArrayId{1}, std::nullopt, Dependency::Kind::AnyEnd}}),
        {hold, {}},
        {SaveLeases{pilot(), {attempt(1, 3), attempt(1, 4)}}, {}},
        result(1, 3, Failure::Ok),
        {cancelled, {}}});
  reopen();
  const Snapshot snapshot = store->begin();
  const std::vector<LiveArray> arrays = live_arrays();
  ASSERT_EQ(arrays.size(), 2U);
  const LiveArray& live = arrays[0];
  EXPECT_EQ(live.client, "tester");
  EXPECT_EQ(live.array.indices.size(), 100U);
  EXPECT_EQ(to_string(live.ok), "3");
  EXPECT_EQ(to_string(live.not_ok), "20-29");
  EXPECT_EQ(to_string(live.held), "90-100");
  EXPECT_EQ(arrays[1].array.after.size(), 1U);
  ASSERT_EQ(snapshot.leases.size(), 1U) << "the lease of a task with a result is over";
  EXPECT_EQ(snapshot.leases[0].attempt, attempt(1, 4));
  EXPECT_EQ(snapshot.leases[0].pilot, pilot());
  ASSERT_EQ(snapshot.keys.size(), 1U);
  EXPECT_EQ(snapshot.keys[0].ids, std::vector{ArrayId{1}});
  EXPECT_EQ(snapshot.next_array, 3U);
}

TEST_F(StoreInFolder, WhatIsRevivedMayNeedSomethingElse) {
  save({array(1, IndexRange{1, 2}), result(1, 1, Failure::OomTask)});
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(4));
  needs.time = std::chrono::hours{2};
  save({{SaveRevived{ArrayId{1}, IndexRange{1, 1}, needs}, {}}});
  reopen();
  EXPECT_EQ(live_arrays().at(0).array.needs, needs);
  save({{SaveRevived{ArrayId{1}, IndexRange{1, 1}, {}}, {}}});
  EXPECT_EQ(live_arrays().at(0).array.needs, needs) << "it said nothing of needs";
}

TEST_F(StoreInFolder, KnowsHowThePredecessorsOfLiveTasksEnded) {
  save({array(1, IndexRange{1, 2}),
        result(1, 1, Failure::Ok),
        result(1, 2, Failure::ToolFailed),
        {SaveArrayEnded{ArrayId{1}}, {}},
        array(2, IndexRange{1, 2}, {{ArrayId{1}, std::nullopt, Dependency::Kind::EachSuccess}})});
  reopen();
  const Snapshot snapshot = store->begin();
  ASSERT_EQ(live_arrays().size(), 1U);
  ASSERT_EQ(snapshot.ended.size(), 1U);
  EXPECT_EQ(to_string(snapshot.ended[0].ok), "1");
  EXPECT_EQ(to_string(snapshot.ended[0].not_ok), "2");
}

TEST_F(StoreInFolder, KeepsWhichLeasedTasksAreCancelled) {
  save({array(1, IndexRange{1, 9}),
        {SaveLeases{pilot(), {attempt(1, 3), attempt(1, 4)}}, {}},
        {SaveCancelled{{attempt(1, 4).task}}, {}}});
  reopen();
  const Snapshot snapshot = store->begin();
  ASSERT_EQ(snapshot.leases.size(), 2U);
  EXPECT_FALSE(snapshot.leases[0].cancelled);
  EXPECT_TRUE(snapshot.leases[1].cancelled);
  save({{DropLeases{{attempt(1, 4).task}}, {}}, {SaveLeases{pilot(), {attempt(1, 4, 2)}}, {}}});
  EXPECT_FALSE(store->begin().leases.at(1).cancelled) << "a new lease begins anew";
}

TEST_F(StoreInFolder, KeepsAllPilotsOfATaskOverSeveralNodes) {
  save({array(1, IndexRange{1, 9}),
        {SaveLeases{pilot(), {attempt(1, 3)}, {2, 13}}, {}},
        {SaveLeases{pilot(), {attempt(1, 4)}}, {}}});
  reopen();
  const Snapshot snapshot = store->begin();
  ASSERT_EQ(snapshot.leases.size(), 2U);
  EXPECT_EQ(snapshot.leases[0].pilot, pilot());
  EXPECT_EQ(snapshot.leases[0].members, (std::vector<std::uint32_t>{2, 13}));
  EXPECT_TRUE(snapshot.leases[1].members.empty());
}

TEST_F(StoreInFolder, ALeaseIsOverWhenItsResultIsThere) {
  const auto leased = [this] {
    reopen();
    std::vector<std::string> names;
    for (const StoredLease& lease : store->begin().leases) {
      names.push_back(to_string(lease.attempt.task) + " " + std::to_string(lease.attempt.epoch) +
                      (lease.cancelled ? " cancelled" : "") +
                      (lease.permitted ? " permitted" : ""));
    }
    return names;
  };
  const auto lease = [](std::uint32_t first, std::uint32_t last, std::uint64_t epoch) {
    SaveLeases save{pilot(), {}};
    for (std::uint32_t i = first; i <= last; ++i)
      save.attempts.push_back(attempt(1, i, 1, epoch + i));
    return Write{save, {}};
  };
  const auto ended = [](std::uint32_t index, std::uint64_t epoch, Failure failure = Failure::Ok) {
    SaveResult save{attempt(1, index, 1, epoch + index), pilot(), "", {}};
    save.outcome.failure = failure;
    save.outcome.started = save.outcome.ended = from_microseconds(1000);
    return Write{save, {}};
  };
  save({array(1, IndexRange{1, 20}), lease(1, 6, 100)});
  save({ended(2, 100), ended(3, 100), ended(5, 100, Failure::ToolFailed)});
  EXPECT_EQ(leased(), (std::vector<std::string>{"1.1 101", "1.4 104", "1.6 106"}));
  save({{SavePermitted{{ArrayId{1}, 1}}, {}}});
  EXPECT_EQ(leased(), (std::vector<std::string>{"1.1 101 permitted", "1.4 104", "1.6 106"}));
  save({{SaveCancelled{{{ArrayId{1}, 4}}}, {}}, {DropLeases{{{ArrayId{1}, 6}}}, {}}});
  EXPECT_EQ(leased(), (std::vector<std::string>{"1.1 101 permitted", "1.4 104 cancelled"}));
  // A result that is withdrawn does not bring the lease back.
  save({{SaveRevived{ArrayId{1}, IndexRange{5, 5}}, {}}});
  EXPECT_EQ(leased(), (std::vector<std::string>{"1.1 101 permitted", "1.4 104 cancelled"}));
  save({lease(5, 6, 200)});
  EXPECT_EQ(leased(), (std::vector<std::string>{"1.1 101 permitted", "1.4 104 cancelled", "1.5 205",
                                                "1.6 206"}));
  SaveFailedAttempt failed{.attempt = attempt(1, 5, 1, 205), .pilot = pilot()};
  save({{failed, {}}, ended(1, 100), ended(4, 100), ended(6, 200)});
  EXPECT_EQ(leased(), std::vector<std::string>{});
  // An old result says nothing of a new lease.
  save({lease(1, 1, 300)});
  EXPECT_EQ(leased(), std::vector<std::string>{"1.1 301"});
}

TEST_F(StoreInFolder, WhatCouldNotBeCommittedIsAsIfItHadNotBeenTried) {
  SaveLeases leases{pilot(), {}};
  for (std::uint32_t i = 1; i <= 6; ++i) leases.attempts.push_back(attempt(1, i, 1, 100 + i));
  save({array(1, IndexRange{1, 9}), {leases, {}}});
  SaveResult well{attempt(1, 2, 1, 102), pilot(), "", {}};
  well.outcome.started = well.outcome.ended = from_microseconds(1000);
  std::vector<Write> writes{{well, {}}, {DropLeases{{{ArrayId{1}, 4}}}, {}}};
  SaveResult large{attempt(1, 5, 1, 105), pilot(), "", {}};
  large.outcome.failure = Failure::ToolFailed;
  large.outcome.message = std::string(1 << 20, 'x');
  writes.push_back({large, {}});

  // As a full disk: no file may grow.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{64 << 10, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto refused = store->commit(writes, true);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::Transient) << refused.error().text;
  EXPECT_THAT(refused.error().text, testing::HasSubstr("no file larger than 64 KiB (ulimit -f)"));
  EXPECT_FALSE(store->history().result({ArrayId{1}, 2}));

  save(writes);
  SaveResult last{attempt(1, 1, 1, 101), pilot(), "", well.outcome};
  save({{last, {}}});
  reopen();
  std::vector<std::string> left;
  for (const StoredLease& lease : store->begin().leases)
    left.push_back(to_string(lease.attempt.task));
  EXPECT_EQ(left, (std::vector<std::string>{"1.3", "1.6"}));
  EXPECT_EQ(store->history().totals(ArrayId{1}).done, 2U);
}

TEST_F(StoreInFolder, ARetryLeavesWhatElseIsHeld) {
  save({array(1, IndexRange{1, 9}),
        {SaveHold{ArrayId{1}, IndexRange{5, 9}}, {}},
        result(1, 1, Failure::ToolFailed)});
  save({{SaveRevived{ArrayId{1}, IndexRange{1, 1}}, {}}});
  reopen();
  EXPECT_EQ(to_string(live_arrays().at(0).held), "5-9");
  save({{SaveArrayEnded{ArrayId{1}}, {}}, {SaveRevived{ArrayId{1}, IndexRange{5, 5}}, {}}});
  reopen();
  EXPECT_TRUE(live_arrays().at(0).held.empty())
      << "who retries what had ended does not mean to hold it";
}

TEST_F(StoreInFolder, KeepsAreKeptAlsoInASalvagedStore) {
  const Keep keep{.site = "near",
                  .shape = "gpu",
                  .allocations = 2,
                  .until = from_microseconds(9'000'000),
                  .since = from_microseconds(1'000'000),
                  .missing = Duration{5},
                  .beyond = Duration{7}};
  Keep over = keep;
  over.shape = "cpu";
  save({{SaveKeep{over}, {}}, {SaveKeep{keep}, {}}});
  over.allocations = 0;
  save({{SaveKeep{over}, {}}});
  const auto expect_it = [&](const Snapshot& snapshot) {
    ASSERT_EQ(snapshot.keeps.size(), 1U);
    const Keep& kept = snapshot.keeps.front();
    EXPECT_EQ(kept.site + "/" + kept.shape, "near/gpu");
    EXPECT_EQ(kept.allocations, 2U);
    EXPECT_EQ(kept.until, keep.until);
    EXPECT_EQ(kept.since, keep.since);
    EXPECT_EQ(kept.missing, keep.missing);
    EXPECT_EQ(kept.beyond, keep.beyond);
  };
  reopen();
  expect_it(store->begin());
  store.reset();
  const std::string saved = folder + "/saved.db";
  const auto report =
      salvage(folder + "/store.db", saved, [](const std::string&) { return false; });
  ASSERT_TRUE(report) << report.error().text;
  auto opened = Store::open(saved);
  ASSERT_TRUE(opened) << opened.error().text;
  expect_it((*opened)->begin());
}

TEST_F(StoreInFolder, KeepsWhoWaitsNowForWhatIsSentOrRunsAgain) {
  for (std::uint64_t id = 1; id <= 3; ++id) {
    Write write = array(id, IndexRange{0, 0});
    std::get<SaveArrays>(write.what).read_by = ReadBy{"one", std::chrono::seconds{60}};
    save({write});
  }
  const ReadBy other{"other", std::chrono::seconds{5}};
  save({{SaveReader{{ArrayId{1}}, other}, {}},
        {SaveReader{{ArrayId{2}}, std::nullopt}, {}},
        result(3, 0, Failure::Cancelled),
        {SaveArrayEnded{ArrayId{3}}, {}},
        {SaveRevived{ArrayId{3}, IndexSet{IndexRange{0, 0}}, std::nullopt}, {}}});
  reopen();
  const Snapshot snapshot = store->begin();
  ASSERT_EQ(snapshot.readers.size(), 1U);
  EXPECT_EQ(snapshot.readers[0].array, ArrayId{1});
  EXPECT_EQ(snapshot.readers[0].by.reader, "other");
  EXPECT_EQ(snapshot.readers[0].by.lease, std::chrono::seconds{5});
}

TEST_F(StoreInFolder, KnowsWhatFailedAttemptsHaveTaughtUntilTheTaskIsRevived) {
  SaveFailedAttempt cut{attempt(1, 2), pilot(), "node7", {}, true, true};
  cut.outcome.failure = Failure::PilotWalltime;
  cut.outcome.started = from_microseconds(2000);
  cut.outcome.ended = from_microseconds(5000);
  save({array(1, IndexRange{1, 3}), {cut, {}}});
  reopen();
  const Snapshot snapshot = store->begin();
  ASSERT_EQ(snapshot.failed_attempts.size(), 1U);
  EXPECT_EQ(snapshot.failed_attempts[0].outcome.started, cut.outcome.started);
  EXPECT_EQ(snapshot.failed_attempts[0].outcome.ended, cut.outcome.ended);
  EXPECT_TRUE(snapshot.failed_attempts[0].charged);

  save({result(1, 2, Failure::ToolFailed), {SaveRevived{ArrayId{1}, IndexRange{1, 2}}, {}}});
  reopen();
  EXPECT_TRUE(store->begin().failed_attempts.empty());
  EXPECT_EQ(store->history().attempts({ArrayId{1}, 2}).size(), 1U) << "it can still be looked at";
}

TEST_F(StoreInFolder, AResultThatIsWithdrawnIsThereAsAnEarlierAttempt) {
  SaveFailedAttempt first{attempt(1, 2, 1, 10), pilot(), "node7", {}, true, false};
  first.outcome.failure = Failure::ToolFailed;
  first.outcome.exit_code = 3;
  first.outcome.started = from_microseconds(1000);
  first.outcome.ended = from_microseconds(2000);
  first.outcome.log = {"h1.0.log", 7, 8, 9, 10, true};
  SaveResult second{attempt(1, 2, 2, 11), pilot(), "node8", first.outcome};
  second.outcome.exit_code = 4;
  second.outcome.ended = from_microseconds(3000);
  second.outcome.log.last_out = 17;
  save({array(1, IndexRange{1, 3}),
        {first, {}},
        {second, {}},
        result(1, 3, Failure::DependencyFailed)});
  save({{SaveRevived{ArrayId{1}, IndexRange{1, 3}}, {}}});
  reopen();
  const auto attempts = store->history().attempts({ArrayId{1}, 2});
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].attempt, 1U);
  EXPECT_EQ(attempts[0].epoch, 10U);
  EXPECT_EQ(shell_exit_code(attempts[0].outcome), 3);
  EXPECT_EQ(attempts[0].outcome.log.file, "h1.0.log");
  EXPECT_EQ(attempts[0].outcome.log.out_bytes, 9U);
  EXPECT_TRUE(attempts[0].outcome.log.truncated);
  EXPECT_EQ(attempts[1].attempt, 2U);
  EXPECT_EQ(shell_exit_code(attempts[1].outcome), 4);
  EXPECT_EQ(attempts[1].outcome.log.last_out, 17U);
  EXPECT_EQ(attempts[1].node, "node8");
  EXPECT_TRUE(store->begin().failed_attempts.empty()) << "they count for nothing any more";
}

TEST_F(StoreInFolder, KeepsWhenAnArrayIsGivenUpAndWhatHasFailedOfIt) {
  Write write = array(1, IndexRange{1, 9});
  NewArray& facts = std::get<SaveArrays>(write.what).arrays.at(0);
  facts.give_up_at = 4;
  facts.gives_up_running = true;
  save({write, result(1, 1, Failure::Ok), result(1, 2, Failure::ToolFailed),
        result(1, 3, Failure::Cancelled), result(1, 4, Failure::DependencyFailed)});
  reopen();
  const auto live = live_arrays();
  EXPECT_EQ(live.at(0).array.give_up_at, 4U);
  EXPECT_TRUE(live.at(0).array.gives_up_running);
  EXPECT_EQ(to_string(live.at(0).not_ok), "2-4");
  EXPECT_EQ(to_string(live.at(0).failed), "2");
  const auto again = store->history().revivable({{ArrayId{1}, IndexRange{3, 3}}}).arrays;
  EXPECT_EQ(again.at(0).array.give_up_at, 4U);
  EXPECT_EQ(to_string(again.at(0).not_ok), "2,4");
  EXPECT_EQ(to_string(again.at(0).failed), "2");
}

TEST_F(StoreInFolder, IdsThatANumberedArrayHasTakenAreNotGivenAgain) {
  Write many = array(3, IndexRange{1, 4});
  std::get<SaveArrays>(many.what).arrays.front().numbered = true;
  save({std::move(many)});
  reopen();
  EXPECT_EQ(store->begin().next_array, 7U);
  reopen();
  EXPECT_EQ(store->begin().next_array, 7U) << "and the mark says the same";
  save({array(7, IndexRange{0, 0})});
  reopen();
  EXPECT_EQ(store->begin().next_array, 8U);
}

TEST_F(StoreInFolder, AnIdThatANumberedArrayHasTakenIsThatOfItsTask) {
  Write many = array(3, *parse_index_set("2-8:2"));
  std::get<SaveArrays>(many.what).arrays.front().numbered = true;
  save({std::move(many), array(7, IndexRange{1, 9}), result(3, 2, Failure::Ok)});
  EXPECT_EQ(store->history().task_of_id(ArrayId{4}), (TaskId{ArrayId{3}, 4}));
  EXPECT_EQ(store->history().task_of_id(ArrayId{6}), (TaskId{ArrayId{3}, 8}));
  for (const std::uint64_t other : {1U, 2U, 3U, 7U, 8U})
    EXPECT_FALSE(store->history().task_of_id(ArrayId{other})) << other;
}

TEST_F(StoreInFolder, KeepsWhichTaskSubmittedAnArray) {
  Write inner = array(2, IndexRange{1, 3});
  std::get<SaveArrays>(inner.what).arrays.at(0).within = TaskId{ArrayId{1}, 4};
  save({array(1, IndexRange{1, 9}), inner});
  reopen();
  EXPECT_EQ(live_arrays().at(0).array.within, std::nullopt);
  EXPECT_EQ(live_arrays().at(1).array.within, (TaskId{ArrayId{1}, 4}));
  store.reset();
  {
    sqlite::Connection connection(folder + "/store.db");
    connection.execute("PRAGMA locking_mode=EXCLUSIVE");
    connection.execute("DROP TABLE submitted_within");
  }
  reopen();
  EXPECT_EQ(live_arrays().at(1).array.within, std::nullopt) << "a store from before";
}

TEST_F(StoreInFolder, KeepsWhoWaitsForWhatHasNotEnded) {
  Write write = array(1, IndexRange{0, 0});
  auto& arrays = std::get<SaveArrays>(write.what);
  arrays.arrays.push_back(arrays.arrays.front());
  arrays.read_by = ReadBy{"one", std::chrono::seconds{60}};
  write.recipes.push_back(write.recipes.front());
  save({write, array(3, IndexRange{0, 0}), result(1, 0, Failure::Ok),
        Write{SaveArrayEnded{ArrayId{1}}, {}}});
  const auto expect_it = [](const Snapshot& snapshot) {
    ASSERT_EQ(snapshot.readers.size(), 1U);
    EXPECT_EQ(snapshot.readers[0].array, ArrayId{2});
    EXPECT_EQ(snapshot.readers[0].by.reader, "one");
    EXPECT_EQ(snapshot.readers[0].by.lease, std::chrono::seconds{60});
  };
  reopen();
  expect_it(store->begin());
  store.reset();
  const std::string saved = folder + "/saved.db";
  ASSERT_TRUE(salvage(folder + "/store.db", saved, [](const std::string&) { return false; }));
  auto opened = Store::open(saved);
  ASSERT_TRUE(opened) << opened.error().text;
  expect_it((*opened)->begin());
}

TEST_F(StoreInFolder, AStoreWhoseArraysAreNeverGivenUpIsTaken) {
  save({array(1, IndexRange{1, 3})});
  store.reset();
  {
    sqlite::Connection connection(folder + "/store.db");
    connection.execute("PRAGMA locking_mode=EXCLUSIVE");
    connection.execute("DROP INDEX arrays_that_give_up");
    for (const char* column : {"give_up_at", "gives_up_running"})
      connection.execute(std::string("ALTER TABLE arrays DROP COLUMN ") + column);
    connection.execute("UPDATE meta SET value=CAST('6' AS BLOB) WHERE key=CAST('version' AS BLOB)");
  }
  for (int i = 0; i < 2; ++i) {
    reopen();
    EXPECT_EQ(live_arrays().at(0).array.give_up_at, 0U);
    EXPECT_EQ(store->history().array(ArrayId{1})->give_up_at, 0U);
    save({array(2 + static_cast<std::uint64_t>(i), IndexRange{1, 3})});
  }
}

TEST_F(StoreInFolder, AStoreOfTheVersionBeforeIsTakenAndSaysNoExitCodeThatItDoesNotKnow) {
  SaveFailedAttempt first{attempt(1, 2), pilot(), "node7", {}, true, false};
  first.outcome.failure = Failure::ToolFailed;
  first.outcome.exit_code = 3;
  first.outcome.started = from_microseconds(1000);
  first.outcome.ended = from_microseconds(2000);
  save({array(1, IndexRange{1, 3}), {first, {}}});
  store.reset();
  {
    sqlite::Connection connection(folder + "/store.db");
    connection.execute("PRAGMA locking_mode=EXCLUSIVE");
    for (const char* column : {"exit_code", "signal", "peak", "cpu", "log", "last_out", "last_err",
                               "out_bytes", "err_bytes", "truncated"})
      connection.execute(std::string("ALTER TABLE attempts DROP COLUMN ") + column);
    connection.execute("DROP INDEX arrays_that_give_up");
    for (const char* column : {"give_up_at", "gives_up_running"})
      connection.execute(std::string("ALTER TABLE arrays DROP COLUMN ") + column);
    connection.execute("UPDATE meta SET value=CAST('4' AS BLOB) WHERE key=CAST('version' AS BLOB)");
  }
  for (int i = 0; i < 2; ++i) {
    reopen();
    ASSERT_TRUE(store);
    const auto attempts = store->history().attempts({ArrayId{1}, 2});
    ASSERT_EQ(attempts.size(), 1U);
    EXPECT_EQ(attempts[0].outcome.failure, Failure::ToolFailed);
    EXPECT_EQ(shell_exit_code(attempts[0].outcome), std::nullopt);
    EXPECT_EQ(attempts[0].outcome.log.file, "");
  }
}

TEST_F(StoreInFolder, KeepsAllocationsThatHaveNotEnded) {
  Allocation running{.id = AllocationId{"habcde123456789"},
                     .site = "cluster",
                     .shape = "cpu",
                     .state = AllocationState::Running,
                     .number = "42"};
  running.opened = from_microseconds(10);
  running.running_since = from_microseconds(20);
  running.pilots_seen = 2;
  running.asked = AskedFor{3, {}, std::chrono::hours{2}};
  running.asked->capacity.set("gpus/a100", Amount::of(4));
  running.fenced = {0, 2};
  Allocation over = running;
  over.id.name = "habcde000000000";
  over.state = AllocationState::Ended;
  over.running_since = from_microseconds(15);
  Allocation waiting = over;
  waiting.id.name = "habcde000000001";
  waiting.running_since.reset();
  save({{SaveAllocation{running}, {}}, {SaveAllocation{over}, {}}, {SaveAllocation{waiting}, {}}},
       false);
  reopen();
  const Snapshot snapshot = store->begin();
  ASSERT_EQ(snapshot.allocations.size(), 1U);
  EXPECT_EQ(snapshot.allocations[0].id, running.id);
  EXPECT_EQ(snapshot.allocations[0].number, "42");
  EXPECT_EQ(snapshot.allocations[0].running_since, running.running_since);
  EXPECT_EQ(snapshot.allocations[0].pilots_seen, 2U);
  EXPECT_EQ(snapshot.allocations[0].asked, running.asked);
  EXPECT_EQ(snapshot.allocations[0].fenced, running.fenced);
  ASSERT_EQ(snapshot.proven.size(), 1U);
  EXPECT_EQ(snapshot.proven[0], (std::pair<std::string, std::string>{"cluster", "cpu"}));
  ASSERT_EQ(snapshot.past_starts.size(), 2U);
  EXPECT_EQ(snapshot.past_starts[0].running_since, from_microseconds(15)) << "the oldest first";
  EXPECT_EQ(snapshot.past_starts[1].running_since, from_microseconds(20));
  EXPECT_EQ(snapshot.past_starts[1].opened, from_microseconds(10));
  EXPECT_EQ(snapshot.past_starts[1].shape, "cpu");
}

TEST_F(StoreInFolder, TellsHowLongAllocationsRanWithinATime) {
  (void)store->begin();
  const auto ran = [this](const std::string& name, const std::string& shape, std::int64_t from,
                          std::int64_t until) {
    Allocation one{.id = AllocationId{name},
                   .site = "cluster",
                   .shape = shape,
                   .state = until == 0 ? AllocationState::Running : AllocationState::Ended,
                   .opened = from_microseconds(1)};
    if (from != 0) one.running_since = from_microseconds(from);
    if (until != 0) one.ended = from_microseconds(until);
    save({{SaveAllocation{one}, {}}}, false);
  };
  ran("still", "cpu", 110, 0);
  ran("across", "cpu", 50, 115);
  ran("inside", "gpu", 101, 105);
  ran("before", "cpu", 50, 90);
  ran("after", "cpu", 130, 140);
  ran("never", "cpu", 0, 115);
  const auto held = store->history().held(from_microseconds(100), from_microseconds(120));
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[0].shape, "cpu");
  EXPECT_EQ(held[0].ran, std::chrono::microseconds(10 + 15));
  EXPECT_EQ(held[1].shape, "gpu");
  EXPECT_EQ(held[1].ran, std::chrono::microseconds(4));
}

TEST_F(StoreInFolder, KeepsItsLogShortHoweverLongItRuns) {
  (void)store->begin();
  for (std::uint64_t id = 1; id <= 3000; ++id) {
    save({array(id, IndexRange{0, 0})}, false);
    save({{SaveLeases{pilot(), {attempt(id, 0)}}, {}}}, false);
    // What is read between commits must not hold the log either.
    EXPECT_TRUE(store->history().recipe(ArrayId{id}));
    EXPECT_FALSE(store->history().environment(1).empty());
    EXPECT_FALSE(store->history().result({ArrayId{id}, 0}));
  }
  EXPECT_LT(std::filesystem::file_size(folder + "/store.db-wal"), 24U << 20);
  reopen();
  EXPECT_EQ(store->begin().leases.size(), 3000U);
}

TEST_F(StoreInFolder, RefusesLoosePermissionsUnknownVersionsAndDamage) {
  const std::string file = folder + "/store.db";
  store.reset();
  ::chmod(file.c_str(), 0644);
  auto loose = Store::open(file);
  ASSERT_FALSE(loose);
  EXPECT_NE(loose.error().text.find("chmod 600"), std::string::npos);
  ::chmod(file.c_str(), 0600);

  {
    sqlite::Connection connection(file);
    connection.execute("PRAGMA locking_mode=EXCLUSIVE");
    connection.execute(
        "UPDATE meta SET value=CAST('99' AS BLOB) WHERE key=CAST('version' AS BLOB)");
  }
  auto newer = Store::open(file);
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().text.find("version 99"), std::string::npos);

  std::ofstream(file, std::ios::trunc)
      << "this is no database, whatever its name says; it is long enough to be read as one";
  auto damaged = Store::open(file);
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().text.find(file), std::string::npos);
}

}  // namespace
}  // namespace hpcbatch::store
