// What runs, told by what has changed.
#include "api/answers/running_tasks.hpp"

#include "engine/pilot_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace hpcbatch {
namespace {

using Leases = std::unordered_map<TaskId, Lease>;

TaskId task_of(std::uint64_t number) {
  return {ArrayId{1 + number / 10}, static_cast<std::uint32_t>(number % 10)};
}

Lease lease_of(TaskId task, std::uint32_t attempt, std::int64_t started) {
  Lease lease{.attempt = {task, attempt}, .pilot = {AllocationId{"a"}, attempt}};
  lease.state = Lease::State::Running;
  lease.started = from_microseconds(started);
  return lease;
}

std::map<TaskId, RunningTask> from_nothing(const Leases& leases) {
  std::map<TaskId, RunningTask> all;
  for (const auto& [task, lease] : leases)
    if (lease.state != Lease::State::Sent && lease.started)
      all[task] = {task, lease.attempt.number, lease.pilot, *lease.started};
  return all;
}

/// Somebody who looks, and keeps what he was told.
struct Watcher {
  std::map<TaskId, RunningTask> known;
  std::uint64_t version{0};
  bool was_whole{false};
  void hear(const RunningTasks& running) {
    const RunningTasks::Change change = running.since(version);
    was_whole = change.is_whole;
    if (change.is_whole) known.clear();
    for (const TaskId task : change.gone) known.erase(task);
    for (const RunningTask& one : change.running) known[one.task] = one;
    version = running.version();
  }
};

TEST(RunningTasks, AreWhatRunsAfterAnyChanges) {
  std::mt19937 draw(7);
  Leases leases;
  RunningTasks running(1000);
  Watcher often, seldom;
  for (int round = 0; round < 3000; ++round) {
    for (int i = 0; i < 4; ++i) {
      const TaskId task = task_of(draw() % 60);
      switch (draw() % 4) {
        case 0:
          leases.erase(task);
          break;
        case 1:  // leased, and waits at its pilot
          leases[task] = lease_of(task, 1, round);
          leases[task].state = Lease::State::Sent;
          break;
        default:
          leases[task] = lease_of(task, 1 + draw() % 2, round - static_cast<int>(draw() % 2));
      }
    }
    running.look(leases);
    const auto expected = from_nothing(leases);
    often.hear(running);
    ASSERT_EQ(often.known, expected) << "round " << round;
    EXPECT_EQ(often.was_whole, round == 0);
    if (draw() % 100 != 0) continue;
    seldom.hear(running);
    ASSERT_EQ(seldom.known, expected) << "round " << round;
  }
}

TEST(RunningTasks, WhereNothingChangesNothingIsTold) {
  Leases leases{{task_of(1), lease_of(task_of(1), 1, 5)}};
  RunningTasks running(1000);
  running.look(leases);
  const std::uint64_t version = running.version();
  running.look(leases);
  EXPECT_EQ(running.version(), version);
  const RunningTasks::Change change = running.since(version);
  EXPECT_FALSE(change.is_whole);
  EXPECT_TRUE(change.running.empty());
  EXPECT_TRUE(change.gone.empty());
}

TEST(RunningTasks, OfAnotherEngineOrLongAgoAllIsTold) {
  Leases leases{{task_of(1), lease_of(task_of(1), 1, 5)}};
  RunningTasks running(1000);
  running.look(leases);
  EXPECT_TRUE(running.since(999).is_whole);
  EXPECT_TRUE(running.since(running.version() + 1).is_whole);
  const std::uint64_t version = running.version();
  for (std::uint32_t round = 0; round < 2 * RunningTasks::kMost + 10; ++round) {
    leases.begin()->second.attempt.number = 2 + round;
    running.look(leases);
  }
  const RunningTasks::Change change = running.since(version);
  EXPECT_TRUE(change.is_whole);
  ASSERT_EQ(change.running.size(), 1U);
  EXPECT_FALSE(running.since(running.version() - 1).is_whole);
}

TEST(RunningTasks, OfTooManySomeAreShownUntilTheyEnd) {
  Leases leases;
  for (std::uint64_t number = 0; number < RunningTasks::kMost + 100; ++number)
    leases[task_of(number)] = lease_of(task_of(number), 1, 5);
  RunningTasks running(1000);
  running.look(leases);
  Watcher watcher;
  watcher.hear(running);
  ASSERT_EQ(watcher.known.size(), RunningTasks::kMost);
  const auto shown = watcher.known;
  for (std::uint64_t number = 0; number < 300; ++number) leases.erase(task_of(number));
  running.look(leases);
  watcher.hear(running);
  EXPECT_EQ(watcher.known.size(), RunningTasks::kMost - 200);
  EXPECT_TRUE(std::all_of(shown.begin(), shown.end(), [&](const auto& one) {
    return !leases.contains(one.first) || watcher.known.contains(one.first);
  }));
}

}  // namespace
}  // namespace hpcbatch
