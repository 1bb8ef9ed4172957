// What runs used, added up from the results: each once, whatever happens in between.
#include "store_in_folder.hpp"

#include "records/estimate.hpp"
#include "store/salvage.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <filesystem>

namespace hpcbatch::store {
namespace {

using namespace std::chrono_literals;

class RecordRowsTest : public StoreInFolder {
 protected:
  RecordRowsTest() { know_kinds(); }
  void know_kinds() {
    store->records().begin_learning(
        [](const ArrayRow& array) {
          return array.name.empty() ? "kind " + std::to_string(array.id.value % kinds) : array.name;
        },
        [this] { return now; });
  }
  static inline std::uint64_t kinds = 1;

  static Write ran(std::uint64_t id, std::uint32_t index, Failure failure, Duration time,
                   std::uint32_t number = 1) {
    Write write = result(id, index, failure);
    auto& save = std::get<SaveResult>(write.what);
    save.attempt.number = number;
    save.outcome.started = kSubmitted + 10s;
    save.outcome.ended = *save.outcome.started + time;
    save.outcome.cpu_time = time / 2;
    save.outcome.peak_memory = 1 << 20;
    return write;
  }
  void learn_all() {
    while (store->learn(1000)) {
    }
  }
  records::Usage sum() {
    records::Usage all;
    for (const auto& [cell, usage] : store->records().usage(0, 100'000)) all += usage;
    return all;
  }

  static constexpr Time kSubmitted = from_microseconds(1000);
  static constexpr Time kNow = kSubmitted + 24h;
  Time now{kNow};
};

TEST_F(RecordRowsTest, EachResultCountsOnceAlsoOverAStart) {
  save({array(1, IndexRange{1, 4}), ran(1, 1, Failure::Ok, 60s), ran(1, 2, Failure::Ok, 60s)});
  learn_all();
  save({ran(1, 3, Failure::ToolFailed, 30s)});
  reopen();
  know_kinds();
  learn_all();
  learn_all();
  const records::Usage all = sum();
  EXPECT_EQ(all.runs, 3);
  EXPECT_EQ(all.done, 2);
  EXPECT_EQ(all.run, 150);
  EXPECT_EQ(all.lost, 30);
  EXPECT_EQ(all.wait, 30);
  const auto profiles = store->records().profiles();
  ASSERT_EQ(profiles.size(), 1U);
  EXPECT_EQ(profiles[0].second.run.count(), 2);
}

TEST_F(RecordRowsTest, NeighboursThatShareARowCountEach) {
  std::vector<Write> writes{array(1, IndexRange{1, 100})};
  for (std::uint32_t i = 1; i <= 100; ++i) writes.push_back(ran(1, i, Failure::Ok, i * 1s));
  save(std::move(writes));
  learn_all();
  EXPECT_EQ(sum().runs, 100);
  EXPECT_EQ(sum().run, 5050);
  EXPECT_NEAR(store->records().profiles()[0].second.run.quantile(0.5), 50, 3);
}

TEST_F(RecordRowsTest, ARetryByHandIsOneRunMoreAndWhatFailedBeforeCountsOnce) {
  const auto failed_attempt = [](std::uint32_t number) {
    SaveFailedAttempt failed{attempt(1, 1, number), pilot(), "node7", {}, true, false};
    failed.outcome.failure = Failure::NodeLost;
    failed.outcome.started = kSubmitted + 5s;
    failed.outcome.ended = kSubmitted + 25s;
    return Write{failed, {}};
  };
  save({array(1, IndexRange{1, 5}),
        failed_attempt(1),
        ran(1, 1, Failure::ToolFailed, 40s, 2),
        {SaveResults{ArrayId{1}, IndexRange{2, 5}, {.failure = Failure::Cancelled}}, {}}});
  learn_all();
  EXPECT_EQ(sum().attempts, 1);
  EXPECT_EQ(sum().run, 60);
  EXPECT_EQ(sum().never_ran, 4);
  // A part of a row of many is withdrawn: what is left of it comes anew.
  save({{SaveRevived{ArrayId{1}, IndexRange{1, 3}}, {}}});
  save({ran(1, 1, Failure::Ok, 30s, 3)});
  learn_all();
  EXPECT_EQ(sum().runs, 2);
  EXPECT_EQ(sum().attempts, 1);
  EXPECT_EQ(sum().run, 90);
  EXPECT_EQ(sum().never_ran, 4);
}

TEST_F(RecordRowsTest, WhatWasNotLearnedYetIsBeforeARetryTakesItAway) {
  save({array(1, IndexRange{1, 2})});
  learn_all();
  save({ran(1, 1, Failure::ToolFailed, 40s)});
  save({{SaveRevived{ArrayId{1}, IndexRange{1, 1}}, {}}});
  learn_all();
  EXPECT_EQ(sum().run, 40);
}

TEST_F(RecordRowsTest, WhatEndsLongAfterTheLastLookCountsWholeAlsoWhereARetryComesAtOnce) {
  now = kSubmitted + 1s;
  learn_all();
  save({array(1, IndexRange{1, 1}), ran(1, 1, Failure::ToolFailed, 3h)});
  now = kSubmitted + 4h;
  save({{SaveRevived{ArrayId{1}, IndexRange{1, 1}}, {}}});
  EXPECT_EQ(sum().run, 3 * 3600);
}

TEST_F(RecordRowsTest, LostAttemptsOfNeighboursThatShareARowCount) {
  std::vector<Write> writes{array(1, IndexRange{1, 4})};
  for (std::uint32_t i = 1; i <= 4; ++i) {
    SaveFailedAttempt failed{attempt(1, i, 1), pilot(), "node7", {}, false, false};
    failed.outcome.failure = Failure::NodeLost;
    failed.outcome.started = kSubmitted + 5s;
    failed.outcome.ended = kSubmitted + 25s;
    writes.push_back({failed, {}});
  }
  for (std::uint32_t i = 1; i <= 4; ++i) writes.push_back(ran(1, i, Failure::Ok, 60s, 2));
  save(std::move(writes));
  learn_all();
  EXPECT_EQ(sum().attempts, 4);
  EXPECT_EQ(sum().lost, 80);
  EXPECT_EQ(sum().run, 320);
}

TEST_F(RecordRowsTest, WhatRanBeforeItsNeedsWereChangedAskedForTheOldOnes) {
  save({array(1, IndexRange{1, 2}), ran(1, 1, Failure::ToolFailed, 60s)});
  SaveRevived again{.array = ArrayId{1}, .indices = IndexSet(IndexRange{1, 1})};
  again.needs.emplace();
  again.needs->amounts.set(kCpus, Amount::of(8));
  save({{again, {}}});
  Write later = ran(1, 1, Failure::Ok, 60s, 2);
  std::get<SaveResult>(later.what).attempt.epoch = 100;
  save({later});
  learn_all();
  EXPECT_EQ(sum().cpu_asked, 60 + 8 * 60);
}

TEST_F(RecordRowsTest, AKindThatIsUsedDailyForgetsTheOldAllTheSame) {
  std::uint64_t id = 0;
  for (int day = 0; day < 60; ++day) {
    now = kNow + 24h * day;
    save({array(++id, IndexRange{1, 1}), ran(id, 1, Failure::Ok, 60s)}, false);
    learn_all();
  }
  // One a day, of which half is left after a month: no more than 43.3 in all, for ever.
  const double count = store->records().profiles()[0].second.run.count();
  EXPECT_GT(count, 25);
  EXPECT_LT(count, 36);
}

TEST_F(RecordRowsTest, WhatNeverRanSaysNothingOfWhatIsAskedFor) {
  save({array(1, IndexRange{1, 9}), ran(1, 1, Failure::Ok, 60s)});
  learn_all();
  save({{SaveResults{ArrayId{1}, IndexRange{2, 9}, {.failure = Failure::Cancelled}}, {}}});
  learn_all();
  EXPECT_EQ(store->records().profiles()[0].second.cpus_asked, 1);
}

TEST_F(RecordRowsTest, HowLongAKindTakesIsKnownByDevice) {
  std::vector<Write> writes{array(1, IndexRange{1, 6})};
  for (std::uint32_t index = 1; index <= 6; ++index) {
    writes.push_back(ran(1, index, Failure::Ok, index <= 3 ? 10s : 40s));
    std::get<SaveResult>(writes.back().what).outcome.device =
        index <= 3 ? "gpus/a100" : "gpus/v100";
  }
  save(writes);
  EXPECT_EQ(store->history().result(TaskId{ArrayId{1}, 5})->outcome.device, "gpus/v100");
  learn_all();
  const records::Profile profile = store->records().profiles()[0].second;
  ASSERT_EQ(profile.on.size(), 2U);
  EXPECT_EQ(profile.on.at("gpus/a100").count, 3);
  EXPECT_NEAR(profile.on.at("gpus/v100").mean, std::log(40), 1e-9);
  const Snapshot snapshot = store->begin();
  ASSERT_EQ(snapshot.speeds.size(), 2U);
  EXPECT_EQ(snapshot.speeds[1].device, "gpus/v100");
  EXPECT_EQ(snapshot.speeds[1].count, 3);
}

TEST_F(RecordRowsTest, HowLongFilesTookIsAddedUp) {
  for (const std::uint32_t last : {1U, 4U}) {
    const std::uint64_t id = last;
    std::vector<Write> writes{array(id, IndexRange{1, last})};
    for (std::uint32_t index = 1; index <= last; ++index) {
      writes.push_back(ran(id, index, Failure::Ok, 10s));
      Outcome& outcome = std::get<SaveResult>(writes.back().what).outcome;
      outcome.staged_in = 4s;
      outcome.staged_out = index == 1 ? 0s : 250ms;
    }
    save(writes);
    const Outcome kept = store->history().result(TaskId{ArrayId{id}, last})->outcome;
    EXPECT_EQ(kept.staged_in, 4s);
    EXPECT_EQ(kept.staged_out, last == 1 ? Duration{} : Duration{250ms});
  }
  learn_all();
  EXPECT_EQ(sum().staged_in, 20);
  EXPECT_EQ(sum().staged_out, 0.75);
  const records::Profile profile = store->records().profiles()[0].second;
  EXPECT_EQ(profile.staged_in.count(), 5);
  EXPECT_EQ(profile.staged_out.count(), 3);
  EXPECT_NEAR(profile.staged_in.quantile(0.5), 4, 0.2);
}

TEST_F(RecordRowsTest, NodesWithWrongClocksMakeNoCenturies) {
  Write wild = ran(1, 1, Failure::Ok, 1s);
  auto& outcome = std::get<SaveResult>(wild.what).outcome;
  outcome.started = from_microseconds(-5'000'000'000'000'000);
  outcome.ended = from_microseconds(90'000'000'000'000'000);
  save({array(1, IndexRange{1, 1}), wild});
  learn_all();
  EXPECT_LE(sum().run, 24 * 3600);
  const auto rows = store->records().usage(-100'000'000, 100'000'000);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].first.day, records::day_of(kNow));
}

TEST_F(RecordRowsTest, TooManyKindsAreOneTogether) {
  kinds = 10'000;
  for (std::uint64_t id = 1; id <= 1200; ++id)
    save({array(id, IndexRange{1, 1}), ran(id, 1, Failure::Ok, 60s)}, false);
  learn_all();
  kinds = 1;
  const auto profiles = store->records().profiles();
  EXPECT_EQ(profiles.size(), RecordRows::kMostKinds);
  EXPECT_EQ(sum().runs, 1200);
  const auto others = std::find_if(profiles.begin(), profiles.end(), [](const auto& one) {
    return one.first == records::kOtherKinds;
  });
  ASSERT_NE(others, profiles.end());
  EXPECT_EQ(others->second.run.count(), 201);
}

TEST_F(RecordRowsTest, WhatHasEndedLongAgoIsForgotten) {
  save({array(1, IndexRange{1, 1}), ran(1, 1, Failure::Ok, 60s)});
  learn_all();
  save({array(2, IndexRange{1, 1}), ran(2, 1, Failure::Ok, 60s)});
  now = kNow + 24h * 500;
  learn_all();
  EXPECT_EQ(store->records().usage(0, 10).size(), 0U);
}

TEST_F(RecordRowsTest, ASalvagedStoreHasThem) {
  save({array(1, IndexRange{1, 1}), ran(1, 1, Failure::Ok, 60s)});
  learn_all();
  store.reset();
  const auto report =
      salvage(folder + "/store.db", folder + "/new.db", [](const std::string&) { return false; });
  ASSERT_TRUE(report) << report.error().text;
  auto opened = Store::open(folder + "/new.db");
  ASSERT_TRUE(opened) << opened.error().text;
  store = std::move(*opened);
  EXPECT_EQ(sum().run, 60);
  EXPECT_EQ(store->records().profiles().size(), 1U);
}

TEST_F(RecordRowsTest, WithoutKindsNothingIsLearned) {
  reopen();
  save({array(1, IndexRange{1, 1}), ran(1, 1, Failure::Ok, 60s)});
  EXPECT_FALSE(store->learn(1000));
  EXPECT_EQ(sum().runs, 0);
}

}  // namespace
}  // namespace hpcbatch::store
