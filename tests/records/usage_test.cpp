// What runs asked for and used, added up.
#include "records/usage.hpp"
#include "records/advice.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hpcbatch::records {
namespace {

using namespace std::chrono_literals;

const Time kBegin = Time{std::chrono::days{20'000}};

Needs needing(int cpus, std::int64_t memory, std::optional<Duration> time = {}) {
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(cpus));
  if (memory != 0) needs.amounts.set(kMemory, Amount::of(memory));
  needs.time = time;
  return needs;
}

Run run_of(Failure failure, Duration waited, Duration ran) {
  Run run;
  run.failure = failure;
  run.submitted = kBegin;
  run.started = kBegin + waited;
  run.ended = *run.started + ran;
  return run;
}

TEST(Usage, IsWhatWasAskedForAndWhatWasUsed) {
  Usage usage;
  records::Run good = run_of(Failure::Ok, 10s, 100s);
  good.cpu = 150s;
  good.peak_memory = 1 << 20;
  good.read_bytes = 512;
  good.written_bytes = 1024;
  add(usage, good, needing(2, 4 << 20, 1h));
  EXPECT_EQ(usage.runs, 1);
  EXPECT_EQ(usage.done, 1);
  EXPECT_EQ(usage.wait, 10);
  EXPECT_EQ(usage.run, 100);
  EXPECT_EQ(usage.lost, 0);
  EXPECT_EQ(usage.cpu_used, 150);
  EXPECT_EQ(usage.cpu_asked, 200);
  EXPECT_EQ(usage.memory_used, 100.0 * (1 << 20));
  EXPECT_EQ(usage.memory_asked, 400.0 * (1 << 20));
  EXPECT_EQ(usage.time_asked, 3600);
  EXPECT_EQ(usage.read_bytes, 512);
  EXPECT_EQ(usage.written_bytes, 1024);
}

TEST(Usage, WhatFailedAndWhatWasTriedAgainRanForNothing) {
  Usage usage;
  records::Run tried = run_of(Failure::NodeLost, 10s, 30s);
  tried.is_last = false;
  records::Run last = run_of(Failure::ToolFailed, 50s, 20s);
  last.is_first = false;
  add(usage, tried, needing(1, 0));
  add(usage, last, needing(1, 0));
  EXPECT_EQ(usage.runs, 1);
  EXPECT_EQ(usage.attempts, 1);
  EXPECT_EQ(usage.done, 0);
  EXPECT_EQ(usage.wait, 10) << "until it first ran";
  EXPECT_EQ(usage.run, 50);
  EXPECT_EQ(usage.lost, 50);
  EXPECT_EQ(usage.memory_asked, 0) << "nobody knows how much it used";
}

TEST(Usage, WhatNeverRanUsedNothing) {
  Usage usage;
  records::Run never;
  never.failure = Failure::DependencyFailed;
  never.tasks = 30;
  add(usage, never, needing(4, 1 << 30));
  EXPECT_EQ(usage.never_ran, 30);
  EXPECT_EQ(usage.runs + usage.run + usage.cpu_asked, 0);
}

TEST(Usage, AClockThatRunsBackIsNoTime) {
  Usage usage;
  add(usage, run_of(Failure::Ok, -1h, -5s), needing(1, 0));
  EXPECT_EQ(usage.run, 0);
  EXPECT_EQ(usage.wait, 0);
}

TEST(Tally, AddsUpByDayKindSiteAndClient) {
  Tally tally;
  const std::string kind = "sort", other = "merge", here = "here", me = "shell:me";
  const Needs needs = needing(1, 0);
  for (int i = 0; i < 3; ++i) tally.add({kind, here, me, needs}, run_of(Failure::Ok, 0s, 60s), 5);
  tally.add({other, here, me, needs}, run_of(Failure::Ok, 0s, 60s), 5);
  tally.add({kind, here, me, needs}, run_of(Failure::Ok, 0s, 60s), 6);
  EXPECT_EQ(tally.usage().size(), 3U);
  EXPECT_EQ(tally.usage().at({5, "sort", "here", "shell:me"}).runs, 3);
  EXPECT_EQ(tally.profiles().at("sort").run.count(), 4);
  const UsageRows rows(tally.usage().begin(), tally.usage().end());
  EXPECT_EQ(put_together(rows, By::Kind).front().first, "sort") << "what asked for most";
  EXPECT_EQ(put_together(rows, By::Day).back().first, show_day(6));
  EXPECT_EQ(sum_of(rows).run, 300);
}

TEST(Tally, DaysAreThoseOfUtc) {
  EXPECT_EQ(show_day(day_of(Time{} + std::chrono::hours{24} - 1us)), "1970-01-01");
  EXPECT_EQ(show_day(day_of(Time{} + std::chrono::hours{24 * 20'000})), "2024-10-04");
}

TEST(Tally, HalfIsForgottenAfterAMonth) {
  EXPECT_EQ(weight_after(-1h), 1);
  EXPECT_NEAR(weight_after(std::chrono::hours{24 * 30}), 0.5, 1e-9);
}

}  // namespace
}  // namespace hpcbatch::records
