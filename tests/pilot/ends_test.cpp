// How tasks end when they are made to, and that nothing of them is left.
#include "pilot_fixture.hpp"

#include <gmock/gmock.h>

#include <signal.h>

#include <algorithm>
#include <filesystem>

namespace hpcbatch::pilot {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

/// The same with control groups and without: "watched" pilots may make none.
class EndsTest : public PilotTest, public testing::WithParamInterface<bool> {
 protected:
  void start_with(std::map<std::string, std::string> environment = {}) {
    if (!GetParam()) environment["HPCBATCH_CONTROL_GROUPS"] = "no";
    start(environment);
  }
  /// A text by which processes of this test are found again.
  std::string mark() const { return directory_.substr(directory_.rfind('-') + 1) + "-mark"; }
  void expect_no_process() {
    until("all processes of the task to be gone", [&] { return processes_with(mark()).empty(); });
  }
  /// A task is in a control group where it has a limit of its own, so here each has one.
  void run(wire::Start start) {
    if (GetParam() && start.granted_size() == 1) limit_memory(start, kMiB << 10, true);
    PilotTest::run(start);
  }
  wire::Result outcome(const wire::Start& start) {
    run(start);
    return result_of(static_cast<unsigned>(start.attempt().array()));
  }
  static void limit_memory(wire::Start& start, std::uint64_t bytes, bool is_limit) {
    wire::Amount* memory = start.add_granted();
    memory->set_name("memory");
    memory->set_value(static_cast<std::int64_t>(bytes * 10000));
    start.set_memory_is_limit(is_limit);
  }
};

std::string memory_script(int mib) {
  return "import time\nx = []\nfor i in range(" + std::to_string(mib) +
         "): x.append(bytearray(b'x') * (1 << 20))\nprint('has it', "
         "flush=True)\ntime.sleep(1000)\n";
}

TEST_P(EndsTest, CancelIsTermFirst) {
  start_with();
  auto polite = shell(1, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  polite.set_follow(true);
  run(polite);
  until("it to be ready", [&] { return chunks_[1][1] == "ready\n"; });
  kill_task(1);
  const auto result = result_of(1);
  EXPECT_EQ(result.failure(), "cancelled");
  EXPECT_EQ(output(result), "ready\nbye\n");
}

TEST_P(EndsTest, NoProcessOutlivesItsTask) {
  start_with();
  // One stays in the group, one leaves it, one becomes a daemon with a parent that is gone, one
  // hides its environment.
  const std::string sleeper = "/usr/bin/python3 -c 'import time; time.sleep(1000)' " + mark();
  const std::string script = sleeper + " & setsid " + sleeper + " & (setsid sh -c \"" +
                             "/usr/bin/python3 -c 'import time; time.sleep(1000)' " + mark() +
                             " & wait\" &) ; " + "(env -i setsid " + sleeper +
                             " &); while [ $(ps ax | grep -c '[t]ime.sleep.*" + mark() +
                             "') -lt 5 ]; do :; done; echo started";
  const auto result = outcome(shell(1, script));
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_EQ(output(result), "started\n");
  EXPECT_TRUE(processes_with(mark()).empty()) << "the result came before they were gone";
}

TEST_P(EndsTest, ACancelledTaskThatIgnoresTermIsKilledWithAllItsProcesses) {
  start_with();
  const std::string sleeper =
      "/usr/bin/python3 -c \"import signal, time; signal.signal(15, 1); time.sleep(1000)\" " +
      mark();
  auto stubborn = shell(
      1, "trap '' TERM; " + sleeper + " & (setsid " + sleeper + " &); echo ready; " + sleeper);
  stubborn.set_follow(true);
  run(stubborn);
  until("it to be ready",
        [&] { return chunks_[1][1] == "ready\n" && processes_with(mark()).size() >= 3; });
  kill_task(1);
  const auto result = result_of(1);
  EXPECT_EQ(result.failure(), "cancelled");
  EXPECT_EQ(result.signal(), SIGKILL);
  EXPECT_TRUE(processes_with(mark()).empty());
}

TEST_P(EndsTest, ASilentKillIsAtOnceAndSaysNothing) {
  start_with();
  auto stubborn = shell(1, "trap '' TERM; echo ready; while :; do sleep 0.01; done # " + mark());
  stubborn.set_follow(true);
  run(stubborn);
  until("it to be ready", [&] { return chunks_[1][1] == "ready\n"; });
  kill_task(1, true);
  expect_no_process();
  EXPECT_EQ(outcome(shell(2, "true")).failure(), "ok");
  EXPECT_FALSE(results_.contains(1));
}

TEST_P(EndsTest, OverItsTimeATaskIsEnded) {
  start_with();
  auto slow = shell(1, "sleep 1000");
  slow.set_time_limit_ms(100);
  const auto result = outcome(slow);
  EXPECT_EQ(result.failure(), "time_task");
  EXPECT_EQ(result.signal(), SIGTERM);
}

TEST_P(EndsTest, WhatItWroteToStorageIsTold) {
  start_with();
  const auto result = outcome(shell(1, "(head -c 3000000 /dev/zero > big); stat -f -c %T . >&2"));
  const bool is_storage = result.failure() == "ok" && output(result, 2) != "tmpfs\n";
  EXPECT_GE(result.written_bytes(), is_storage ? 3'000'000U : 0U);
}

TEST_P(EndsTest, OverItsMemoryOnlyThatTaskIsEnded) {
  start_with();
  auto fine = shell(2, "read line; echo fine");
  fine.set_input_streamed(true);
  run(fine);
  auto greedy = task(1, {"/usr/bin/python3", "-c", memory_script(400)});
  limit_memory(greedy, 100 * kMiB, true);
  const auto result = outcome(greedy);
  EXPECT_EQ(result.failure(), "oom_task");
  EXPECT_THAT(result.message(), HasSubstr("100.0 MiB"));
  EXPECT_GT(result.peak_memory(), 50 * kMiB);
  wire::ToPilot message;
  wire::Input* input = message.add_input();
  *input->mutable_attempt() = attempt(2);
  input->set_end(true);
  send(message);
  EXPECT_EQ(result_of(2).failure(), "ok");
  // The slot's next task is not blamed for it.
  EXPECT_EQ(outcome(shell(3, "exit 1")).failure(), "tool_failed");
}

TEST_P(EndsTest, TheLimitThatIsToldIsTheUsersAndNotTheGuess) {
  start_with();
  auto greedy = task(1, {"/usr/bin/python3", "-c", memory_script(400)});
  limit_memory(greedy, 40 * kMiB, true);
  greedy.set_memory(std::int64_t{100} * static_cast<std::int64_t>(kMiB) * 10000);
  const auto result = outcome(greedy);
  EXPECT_EQ(result.failure(), "oom_task");
  EXPECT_THAT(result.message(), HasSubstr("the limit is 100.0 MiB"));
}

TEST_P(EndsTest, AProcessOfATaskThatTakesTooMuchEndsTheTask) {
  start_with();
  // The parent would wait for ever, as pools of workers do.
  auto greedy = shell(1, "/usr/bin/python3 -c \"$0\" & sleep 1000");
  greedy.add_argv(memory_script(400));
  limit_memory(greedy, 100 * kMiB, true);
  EXPECT_EQ(outcome(greedy).failure(), "oom_task");
}

TEST_P(EndsTest, AShellMayNoteThatItsProgramWasKilledForItsMemory) {
  start_with();
  auto greedy = shell(1, "/usr/bin/python3 -c \"$0\"; echo it had $?; exit 7");
  greedy.add_argv(memory_script(400));
  limit_memory(greedy, 100 * kMiB, true);
  const auto result = outcome(greedy);
  EXPECT_EQ(result.failure(), "oom_task");
  // Without groups it is the pilot that ends a task, with all of it.
  if (!GetParam()) return;
  EXPECT_EQ(result.exit_code(), 7);
  EXPECT_EQ(output(result), "it had 137\n");
}

TEST_P(EndsTest, ReservingMemoryIsNotUsingIt) {
  start_with();
  auto reserving =
      task(1, {"/usr/bin/python3", "-c", "import mmap; m = mmap.mmap(-1, 4 << 30); print('fine')"});
  limit_memory(reserving, 100 * kMiB, true);
  EXPECT_EQ(output(outcome(reserving)), "fine\n");
}

TEST_P(EndsTest, AShareMayBeExceededWhileThereIsRoom) {
  file_.capacity = {{"cpus", 40000},
                    {"memory", std::int64_t{600} * static_cast<std::int64_t>(kMiB) * 10000}};
  start_with();
  auto first = task(1, {"/usr/bin/python3", "-c", memory_script(200)});
  first.set_follow(true);
  limit_memory(first, 100 * kMiB, false);
  run(first);
  until("the first to have it", [&] { return chunks_[1][1] == "has it\n"; });
  auto second = task(2, {"/usr/bin/python3", "-c", memory_script(500)});
  limit_memory(second, 100 * kMiB, false);
  const auto result = outcome(second);
  EXPECT_EQ(result.failure(), "oom_task");
  EXPECT_THAT(result.message(), HasSubstr("600.0 MiB"));
  EXPECT_FALSE(results_.contains(1)) << "it was not the one furthest above its share";
  kill_task(1);
  EXPECT_EQ(result_of(1).failure(), "cancelled");
}

TEST_P(EndsTest, NothingOutlivesAPilotThatIsKilled) {
  start_with();
  const std::string sleeper = "/usr/bin/python3 -c 'import time; time.sleep(1000)' " + mark();
  auto start = shell(1, "(setsid " + sleeper + " &); echo ready; " + sleeper);
  start.set_follow(true);
  run(start);
  until("it to be ready",
        [&] { return chunks_[1][1] == "ready\n" && processes_with(mark()).size() >= 2; });
  ::kill(pilot_process(), SIGKILL);
  EXPECT_EQ(exit_code(), 128 + SIGKILL);
  EXPECT_TRUE(processes_with(mark()).empty()) << "its keeper ended before they were gone";
}

TEST_P(EndsTest, NothingOutlivesAPilotWhoseKeeperIsKilled) {
  start_with();
  const std::string sleeper = "/usr/bin/python3 -c 'import time; time.sleep(1000)' " + mark();
  auto start = shell(1, "(setsid " + sleeper + " &); echo ready; " + sleeper);
  start.set_follow(true);
  run(start);
  until("it to be ready",
        [&] { return chunks_[1][1] == "ready\n" && processes_with(mark()).size() >= 2; });
  ::kill(pid_, SIGKILL);
  exit_code();
  expect_no_process();
  until("the pilot to be gone", [&] { return !lives(pilot_process()); });
}

TEST_F(PilotTest, TheNextPilotEndsWhatAKilledOneAndItsKeeperLeft) {
  const std::string mark = directory_.substr(directory_.rfind('-') + 1) + "-mark";
  start();
  auto task = shell(1, "(setsid /usr/bin/python3 -c 'import time; time.sleep(1000)' " + mark +
                           " &); echo ready; sleep 1000");
  wire::Amount* memory = task.add_granted();
  memory->set_name("memory");
  memory->set_value(static_cast<std::int64_t>(kMiB << 10) * 10000);
  task.set_memory_is_limit(true);
  task.set_follow(true);
  run(task);
  until("it to be ready",
        [&] { return chunks_[1][1] == "ready\n" && !processes_with(mark).empty(); });
  const bool has_groups = contents("pilot.log").find("control groups in /") != std::string::npos;
  // Stopped, neither can do anything about the end of the other.
  ::kill(pilot_process(), SIGSTOP);
  ::kill(pid_, SIGKILL);
  ::kill(pilot_process(), SIGKILL);
  exit_code();
  engine_dies();
  if (!has_groups) {
    for (const pid_t pid : processes_with(mark)) ::kill(pid, SIGKILL);
    GTEST_SKIP() << "no control groups here: nothing tells the next pilot what was left";
  }
  for (const auto& left : std::filesystem::directory_iterator(path("scratch"))) {
    std::filesystem::last_write_time(left, std::filesystem::file_time_type::clock::now() - 1h);
  }
  start();
  EXPECT_TRUE(processes_with(mark).empty());
  until("the old scratch to be removed", [&] {
    return std::distance(std::filesystem::directory_iterator(path("scratch")), {}) == 1;
  });
}

INSTANTIATE_TEST_SUITE_P(, EndsTest, testing::Bool(), [](const auto& instance) {
  return instance.param ? "ControlGroups" : "Watched";
});

}  // namespace
}  // namespace hpcbatch::pilot
