// Tasks through a real pilot: what they find, what is kept of them, what their end is called.
#include "pilot_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace hpcbatch::pilot {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(PilotTest, RegistersWithWhatItHas) {
  start({{"SLURM_JOB_ID", "4711"}});
  EXPECT_EQ(registration_.version(), HPCBATCH_VERSION);
  EXPECT_EQ(registration_.batch_number(), "4711");
  EXPECT_EQ(registration_.link(), "unix " + path("link"));
  ASSERT_EQ(registration_.capacity_size(), 2);
  EXPECT_EQ(registration_.capacity(0).value(), 40000);
  EXPECT_EQ(registration_.time_left_ms(), -1);
  EXPECT_NE(registration_.incarnation(), 0U);
  EXPECT_EQ(registration_.refusals_size(), 0);
}

TEST_F(PilotTest, KeepsOutputAndExitCode) {
  start();
  const auto result = outcome(shell(1, "echo out; echo error >&2; exit 3"));
  EXPECT_EQ(result.failure(), "tool_failed");
  EXPECT_EQ(result.exit_code(), 3);
  EXPECT_EQ(output(result, 1), "out\n");
  EXPECT_EQ(output(result, 2), "error\n");
  EXPECT_EQ(result.log().out_bytes(), 4U);
  EXPECT_GT(result.started_us(), 0);
  EXPECT_GE(result.ended_us(), result.started_us());
  EXPECT_GT(result.peak_memory(), 100'000U);
}

TEST_F(PilotTest, ASilentTaskLeavesNoLog) {
  start();
  const auto result = outcome(task(1, {"true"}));
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_FALSE(result.has_log());
}

TEST_F(PilotTest, RunsManyOneAfterTheOtherInTheSameSlots) {
  start();
  wire::ToPilot message;
  constexpr unsigned kTasks = 500;
  for (unsigned n = 1; n <= kTasks; ++n)
    *message.add_start() = shell(n, "echo task $HPCBATCH_TASK_ID");
  send(message);
  for (unsigned n = 1; n <= kTasks; ++n) {
    const auto result = result_of(n);
    EXPECT_EQ(result.failure(), "ok");
    EXPECT_EQ(output(result), "task " + std::to_string(n) + "\n");
    EXPECT_EQ(result_counts_[n], 1U);
  }
}

TEST_F(PilotTest, ARepeatedStartRunsOnce) {
  start();
  const auto twice = shell(1, "echo x >> " + path("file"));
  run(twice);
  run(twice);
  result_of(1);
  run(twice);
  EXPECT_EQ(outcome(task(2, {"true"})).failure(), "ok");
  EXPECT_EQ(contents("file"), "x\n");
}

TEST_F(PilotTest, LargeAndBinaryOutputComesThroughWhole) {
  start();
  const auto result = outcome(shell(1, "head -c 3000000 /dev/zero; printf 'a\\000b'"));
  EXPECT_EQ(result.log().out_bytes(), 3'000'003U);
  EXPECT_EQ(output(result), std::string(3'000'000, '\0') + std::string("a\0b", 3));
}

TEST_F(PilotTest, OutputBeyondItsLimitIsMarkedAndDiscarded) {
  start();
  auto loud = shell(1, "head -c 5000000 /dev/zero | tr '\\000' x; echo end >&2");
  loud.set_output_limit(1000);
  const auto result = outcome(loud);
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_TRUE(result.log().truncated());
  EXPECT_EQ(output(result, 1),
            std::string(1000, 'x') + "\n[hpcbatch: output beyond 1000 bytes was not kept]\n");
  EXPECT_EQ(output(result, 2), "end\n");
}

void limit_files(pid_t pilot, rlim_t size) {
  rlimit limit{};
  ASSERT_EQ(::prlimit(pilot, RLIMIT_FSIZE, nullptr, &limit), 0);
  limit.rlim_cur = size;
  ASSERT_EQ(::prlimit(pilot, RLIMIT_FSIZE, &limit, nullptr), 0);
}

TEST_F(PilotTest, AResultWaitsUntilItsOutputCanBeWritten) {
  start();
  limit_files(pilot_process(), 0);
  run(shell(1, "echo precious"));
  EXPECT_EQ(outcome(task(2, {"true"})).failure(), "ok");
  EXPECT_FALSE(results_.contains(1));
  limit_files(pilot_process(), RLIM_INFINITY);
  const auto result = result_of(1);
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_EQ(output(result), "precious\n");
  EXPECT_EQ(leaving_, "");
}

TEST_F(PilotTest, ATaskWhoseOutputIsLostHasNotSucceeded) {
  start();
  limit_files(pilot_process(), 0);
  const auto result = outcome(shell(1, "head -c 100000000 /dev/zero"));
  EXPECT_EQ(result.failure(), "disk_task");
  EXPECT_TRUE(result.log().truncated());
  until("its leave", [this] { return !leaving_.empty(); });
  EXPECT_EQ(leaving_, "workspace failed");
}

TEST_F(PilotTest, ATaskHasTheUmaskThatItsClientHad) {
  start();
  auto open = shell(1, "umask; touch " + path("made"));
  open.set_umask(0002);
  open.set_standard_error(path("errors"));
  EXPECT_EQ(output(outcome(open)), "0002\n");
  struct stat info {};
  for (const char* name : {"made", "errors"}) {
    ASSERT_EQ(::stat(path(name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0664U) << name;
  }
}

TEST_F(PilotTest, NamedFilesTakeTheStreams) {
  start();
  auto named = shell(1, "cat; echo error >&2");
  write("in", "from a file\n");
  named.set_standard_input(path("in"));
  named.set_standard_output(path("both"));
  named.set_standard_error(path("both"));
  const auto result = outcome(named);
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_EQ(contents("both"), "from a file\nerror\n");
  EXPECT_FALSE(result.has_log());
  named = shell(2, "true");
  named.set_standard_output(path("nowhere/file"));
  EXPECT_EQ(outcome(named).failure(), "stage_out_failed");
  EXPECT_THAT(results_[2].message(),
              HasSubstr("nowhere/file for its standard output: No such file"));
}

TEST_F(PilotTest, ANonBlockingTaskDoesNotHarmTheNext) {
  file_.capacity = {{"cpus", 10000}};
  start();
  outcome(task(1, {"/usr/bin/python3", "-c", "import os; os.set_blocking(1, False)"}));
  const auto result =
      outcome(task(2, {"/usr/bin/python3", "-c", "import os; print(os.get_blocking(1))"}));
  EXPECT_EQ(output(result), "True\n");
}

TEST_F(PilotTest, NeighboursComeAsOne) {
  start();
  wire::Start start = shell(1, "echo $HPCBATCH_TASK_ID $HPCBATCH_TASK_INDEX >> " + path("said"));
  start.mutable_attempt()->set_index(7);
  start.set_shown_index(7);
  start.set_count(3);
  run(start);
  until("all three to have run", [this] {
    const std::string said = contents("said");
    return std::count(said.begin(), said.end(), '\n') == 3;
  });
  std::istringstream lines(contents("said"));
  std::set<std::string> said;
  for (std::string line; std::getline(lines, line);) said.insert(line);
  EXPECT_EQ(said, (std::set<std::string>{"1.7 7", "1.8 8", "1.9 9"}));
}

TEST_F(PilotTest, FindsItsSurroundings) {
  start({{"SLURM_JOB_ID", "1"}, {"PBS_NODEFILE", "x"}});
  wire::ToPilot message;
  wire::Environment* environment = message.add_environments();
  environment->set_number(5);
  const std::pair<const char*, const char*> callers[] = {
      {"CALLER", "x=y"}, {"SLURM_NTASKS", "9"},     {"TMPDIR", "/no"},
      {"PMI_RANK", "0"}, {"PATH", "/usr/bin:/bin"}, {"HPCBATCH_HOME", "/h"}};
  for (const auto& [name, value] : callers) {
    wire::Variable* variable = environment->add_variables();
    variable->set_name(name);
    variable->set_value(value);
  }
  auto start = task(12, {"env"});
  start.set_environment(5);
  start.mutable_attempt()->set_index(346);
  start.set_shown_index(345);
  wire::Amount* memory = start.add_granted();
  memory->set_name("memory");
  memory->set_value(std::int64_t{100} << 20);
  memory->set_value(memory->value() * 10000);
  wire::Variable* own = start.add_variables();
  own->set_name("OWN");
  own->set_value("1");
  own = start.add_variables();
  own->set_name("CALLER");
  own->set_value("mine");
  *message.add_start() = start;
  send(message);
  const std::string text = "\n" + output(result_of(12));
  for (const char* line : {"CALLER=mine", "OWN=1", "PATH=/usr/bin:/bin", "HPCBATCH_TASK_ID=12.345",
                           "HPCBATCH_TASK_INDEX=345", "HPCBATCH_ATTEMPT=1", "HPCBATCH_CPUS=1",
                           "HPCBATCH_MEM_MB=100", "HPCBATCH_GPUS=", "HPCBATCH_PILOT=Hbtest.0",
                           "HPCBATCH_SITE=here", "OMP_NUM_THREADS=1", "HPCBATCH_HOME=/h"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(line) + "\n"));
  }
  EXPECT_THAT(text, AllOf(Not(HasSubstr("SLURM_")), Not(HasSubstr("PBS_")), Not(HasSubstr("PMI_")),
                          Not(HasSubstr("SECRET")), Not(HasSubstr("TMPDIR=/no")),
                          Not(HasSubstr("CUDA_VISIBLE"))));
}

TEST_F(PilotTest, WithoutAnEnvironmentItHasTheMinimum) {
  start();
  const std::string text = "\n" + output(outcome(task(1, {"env"})));
  EXPECT_THAT(text, AllOf(HasSubstr("\nPATH=/usr/local/bin:/usr/bin:/bin\n"),
                          HasSubstr("\nHOME=/nonexistent\n"), HasSubstr("\nHPCBATCH_TASK_ID=1\n"),
                          Not(HasSubstr("SECRET")), Not(HasSubstr("HPCBATCH_TASK_INDEX"))));
}

TEST_F(PilotTest, TheTemporaryDirectoryIsEmptyForEachTask) {
  file_.capacity = {{"cpus", 10000}};
  start();
  const auto first = outcome(shell(1, "mkdir -m 0 $TMPDIR/d; touch $TMPDIR/.f; echo $TMPDIR"));
  const auto second = outcome(shell(2, "ls -A $TMPDIR; echo $TMPDIR"));
  EXPECT_EQ(output(first), output(second));
  EXPECT_THAT(output(first), HasSubstr(path("scratch") + "/hpcbatch-pilot-Hbtest.0-"));
}

TEST_F(PilotTest, GpusAreHandedOutByNumber) {
  file_.capacity = {{"cpus", 40000}, {"gpus/a100", 20000}};
  start({{"CUDA_VISIBLE_DEVICES", "4,7"}});
  auto with_gpus = [&](unsigned n, std::int64_t amount) {
    auto start = shell(n, "echo $CUDA_VISIBLE_DEVICES/$HPCBATCH_GPUS; read line");
    start.set_input_streamed(true);
    if (amount > 0) {
      wire::Amount* gpus = start.add_granted();
      gpus->set_name("gpus/a100");
      gpus->set_value(amount);
    }
    return start;
  };
  for (unsigned n : {1U, 2U}) run(with_gpus(n, 10000));
  run(with_gpus(3, 0));
  wire::ToPilot message;
  for (unsigned n : {1U, 2U, 3U}) {
    wire::Input* input = message.add_input();
    *input->mutable_attempt() = attempt(n);
    input->set_data("go\n");
  }
  until("all to run", [&] { return input_wanted_.size() == 3; });
  send(message);
  EXPECT_EQ(output(result_of(1)), "4/4\n");
  EXPECT_EQ(output(result_of(2)), "7/7\n");
  EXPECT_EQ(output(result_of(3)), "/\n");
}

TEST_F(PilotTest, GpusOfOtherMakersAreNamedInTheirOwnVariable) {
  file_.capacity = {{"cpus", 40000}, {"gpus/mi250", 20000}};
  start({{"ROCR_VISIBLE_DEVICES", "2,5"}});
  EXPECT_EQ(registration_.refusals_size(), 0);
  auto task = shell(1, "echo $ROCR_VISIBLE_DEVICES/$HPCBATCH_GPUS/$CUDA_VISIBLE_DEVICES");
  wire::Amount* gpus = task.add_granted();
  gpus->set_name("gpus/mi250");
  gpus->set_value(20000);
  EXPECT_EQ(output(outcome(task)), "2,5/2,5/\n");
}

TEST_F(PilotTest, BindsCpusWhereItHasThemAll) {
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  const int count = CPU_COUNT(&mask);
  if (count < 2) GTEST_SKIP() << "one cpu only: nothing to bind";
  file_.capacity = {{"cpus", count * 10000}};
  start();
  const auto result = outcome(shell(1, "grep Cpus_allowed_list /proc/self/status"));
  ASSERT_EQ(result.cpus_size(), 1);
  EXPECT_EQ(output(result), "Cpus_allowed_list:\t" + std::to_string(result.cpus(0)) + "\n");
  auto part = shell(2, "unset OMP_NUM_THREADS; nproc");
  part.mutable_granted(0)->set_value(5000);
  EXPECT_EQ(output(outcome(part)), std::to_string(count) + "\n");
}

TEST_F(PilotTest, DoesNotBindWhereOthersMayUseTheCpusToo) {
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  file_.capacity = {{"cpus", CPU_COUNT(&mask) * 10000 + 10000}};
  start();
  const auto result = outcome(shell(1, "unset OMP_NUM_THREADS; nproc"));
  EXPECT_EQ(result.cpus_size(), 0);
  EXPECT_EQ(output(result), std::to_string(CPU_COUNT(&mask)) + "\n");
}

TEST_F(PilotTest, StandardInputIsEmptyOrStreamed) {
  start();
  EXPECT_EQ(output(outcome(shell(1, "wc -c"))), "0\n");
  auto streamed = shell(2, "cat | wc -c");
  streamed.set_input_streamed(true);
  run(streamed);
  const std::string part(300'000, 'x');
  for (unsigned i = 1; i <= 5; ++i) {
    until("input to be wanted", [&] { return input_wanted_[2] == i; });
    wire::ToPilot message;
    wire::Input* input = message.add_input();
    *input->mutable_attempt() = attempt(2);
    input->set_data(i == 5 ? "" : part);
    input->set_offset((i - 1) * part.size());
    input->set_end(i == 5);
    send(message);
  }
  EXPECT_EQ(output(result_of(2)), "1200000\n");
}

TEST_F(PilotTest, InputThatComesTwiceIsGivenOnce) {
  start();
  auto streamed = shell(1, "cat");
  streamed.set_input_streamed(true);
  run(streamed);
  const auto give = [&](const std::string& bytes, std::uint64_t offset, bool end) {
    wire::ToPilot message;
    wire::Input* input = message.add_input();
    *input->mutable_attempt() = attempt(1);
    input->set_data(bytes);
    input->set_offset(offset);
    input->set_end(end);
    send(message);
  };
  until("input to be wanted", [&] { return input_wanted_[1] == 1; });
  give("one ", 0, false);
  until("more to be wanted", [&] { return input_offset_[1] == 4; });
  engine_dies();
  input_offset_.clear();
  listen();
  welcome();
  until("it to be said again", [&] { return input_offset_[1] == 4; });
  give("one ", 0, false);
  give("gap", 100, false);
  give("one two ", 0, false);
  give("two three", 4, true);
  EXPECT_EQ(output(result_of(1)), "one two three");
}

TEST_F(PilotTest, InputForATaskThatReadsNoneIsDropped) {
  start();
  auto streamed = shell(1, "exec 0<&-; echo closed; sleep 1000");
  streamed.set_input_streamed(true);
  streamed.set_follow(true);
  run(streamed);
  until("it to close its input", [&] { return chunks_[1][1] == "closed\n"; });
  wire::ToPilot message;
  wire::Input* input = message.add_input();
  *input->mutable_attempt() = attempt(1);
  input->set_data(std::string(1'000'000, 'x'));
  send(message);
  EXPECT_EQ(outcome(shell(2, "echo fine")).failure(), "ok");
  kill_task(1);
  EXPECT_EQ(result_of(1).failure(), "cancelled");
}

TEST_F(PilotTest, WhatCannotRunSaysWhy) {
  start();
  auto result = outcome(task(1, {"no-such-program"}));
  EXPECT_EQ(result.failure(), "tool_failed");
  EXPECT_EQ(result.exit_code(), 127);
  EXPECT_THAT(result.message(),
              HasSubstr("cannot run 'no-such-program': No such file or directory in PATH"));
  write("plain", "not a program");
  result = outcome(task(2, {path("plain")}));
  EXPECT_EQ(result.exit_code(), 126);
  EXPECT_THAT(result.message(), HasSubstr("Permission denied"));
  ASSERT_EQ(::chmod(path("plain").c_str(), 0755), 0);
  result = outcome(task(3, {path("plain")}));
  EXPECT_EQ(result.exit_code(), 126);
  EXPECT_THAT(result.message(), HasSubstr("#!"));
  auto lost = task(4, {"true"});
  lost.set_directory(path("gone"));
  result = outcome(lost);
  EXPECT_EQ(result.failure(), "stage_in_failed");
  EXPECT_THAT(result.message(), HasSubstr(path("gone")));
  result = outcome(shell(5, "kill -SEGV $$"));
  EXPECT_EQ(result.failure(), "tool_signal");
  EXPECT_EQ(result.signal(), SIGSEGV);
  EXPECT_THAT(result.message(), HasSubstr("SIGSEGV"));
  EXPECT_EQ(outcome(task(6, {})).failure(), "tool_failed");
  auto contained = task(7, {"true"});
  contained.set_container("/no/image.sif");
  EXPECT_EQ(outcome(contained).failure(), "container_missing");
}

TEST_F(PilotTest, ContainersRunThroughTheirRuntime) {
  ::mkdir(path("bin").c_str(), 0755);
  write("bin/singularity", "#!/bin/sh\necho \"$@\"\ncase $* in *' x fail') exit 255;; esac\n");
  ASSERT_EQ(::chmod(path("bin/singularity").c_str(), 0755), 0);
  write("image.sif", "");
  start({{"PATH", path("bin") + ":/usr/bin:/bin"}});
  auto contained = task(1, {"echo", "hi"});
  contained.set_container(path("image.sif"));
  contained.set_directory(directory_);
  ASSERT_EQ(::mkdir(path("inputs").c_str(), 0755), 0);
  for (const char* name : {"inputs/a", "inputs/b"}) {
    write(name, "");
    contained.add_inputs(path(name));
  }
  const std::string said = output(outcome(contained));
  EXPECT_TRUE(said.starts_with("exec --bind " + directory_ + " --bind " + path("scratch") +
                               "/hpcbatch-pilot-Hbtest.0-"))
      << said;
  std::string inputs;
  for (const char* name : {"inputs/a", "inputs/b"}) {
    inputs += " --bind " + path(name) + ":" + path(name) + ":ro";
  }
  EXPECT_TRUE(said.ends_with("/slot0" + inputs + " --pwd " + directory_ + " " + path("image.sif") +
                             " echo hi\n"))
      << said;
  write("odd,name", "");
  auto odd = task(3, {"echo", "hi"});
  odd.set_container(path("image.sif"));
  odd.set_directory(directory_);
  odd.add_inputs(path("odd,name"));
  EXPECT_EQ(outcome(odd).failure(), "ok");  // shown only where the runtime does so by itself
  ASSERT_EQ(::mkdir(path("a:b").c_str(), 0755), 0);
  odd = task(4, {"echo", "hi"});
  odd.set_container(path("image.sif"));
  odd.set_directory(path("a:b"));
  const auto refused = outcome(odd);
  EXPECT_EQ(refused.failure(), "container_failed");
  EXPECT_THAT(refused.message(), HasSubstr(path("a:b")));
  auto failing = task(2, {"x", "fail"});
  failing.set_container(path("image.sif"));
  failing.set_directory(directory_);
  EXPECT_EQ(outcome(failing).failure(), "container_failed");
}

TEST_F(PilotTest, InputsMustBeRegularFiles) {
  start();
  write("input", "");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  auto good = task(1, {"true"});
  good.add_inputs(path("input"));
  EXPECT_EQ(outcome(good).failure(), "ok");
  unsigned n = 2;
  for (const std::string& bad :
       {path("absent"), path("fifo"), directory_, std::string("/dev/null")}) {
    auto start = task(n, {"true"});
    start.add_inputs(bad);
    EXPECT_EQ(outcome(start).failure(), "input_missing") << bad;
    EXPECT_THAT(results_[n++].message(), HasSubstr(bad));
  }
}

TEST_F(PilotTest, ArgumentsArriveByteForByte) {
  start();
  const std::string odd =
      std::string("-x 'q\" $(id) `id` \\1 <<y>> *;\n\xC3\xA4\xFF") + std::string(100'000, 'z');
  EXPECT_TRUE(output(outcome(task(1, {"printf", "%s|%s", odd, ""}))) == odd + "|");
}

TEST_F(PilotTest, FollowedOutputComesAtOnceAndEndsBeforeTheResult) {
  start();
  auto followed = shell(1, "echo first; echo oops >&2; read line; echo $line");
  followed.set_follow(true);
  followed.set_input_streamed(true);
  run(followed);
  until("the first line", [&] { return chunks_[1][1] == "first\n" && chunks_[1][2] == "oops\n"; });
  EXPECT_FALSE(results_.contains(1));
  wire::ToPilot message;
  wire::Input* input = message.add_input();
  *input->mutable_attempt() = attempt(1);
  input->set_data("second\n");
  send(message);
  result_of(1);
  EXPECT_TRUE(ended_chunks_.contains(1));
  EXPECT_EQ(chunks_[1][1], "first\nsecond\n");
}

TEST_F(PilotTest, OutputCanBeFollowedLaterAndFromAnyOffset) {
  start();
  auto loud =
      shell(1, "head -c 200000 /dev/zero | tr '\\000' a; echo ready >&2; read line; echo end");
  loud.set_input_streamed(true);
  run(loud);
  const auto follow = [&](std::uint64_t from) {
    wire::ToPilot message;
    wire::Follow* asked = message.add_follow();
    *asked->mutable_attempt() = attempt(1);
    asked->set_out_offset(from);
    send(message);
  };
  follow(0);
  until("all of it", [&] { return chunks_[1][1].size() == 200000 && chunks_[1][2] == "ready\n"; });
  chunks_.clear();
  follow(199'990);
  until("its end", [&] { return chunks_[1][1].size() == 200000; });
  EXPECT_EQ(chunks_[1][1], std::string(199'990, '?') + std::string(10, 'a'));
  wire::ToPilot message;
  wire::Follow* asked = message.add_follow();
  *asked->mutable_attempt() = attempt(1);
  asked->set_stop(true);
  wire::Input* input = message.add_input();
  *input->mutable_attempt() = attempt(1);
  input->set_data("go\n");
  send(message);
  result_of(1);
  EXPECT_EQ(chunks_[1][1].size(), 200000U);
  EXPECT_FALSE(ended_chunks_.contains(1));
  follow(199'999);
  until("what has ended", [&] { return ended_chunks_.contains(1); });
  EXPECT_EQ(chunks_[1][1].substr(199'999), "aend\n");
}

TEST_F(PilotTest, AFollowerThatReadsSlowlyIsNotDrownedAndMissesNothing) {
  start();
  auto loud = shell(1, "head -c 30000000 /dev/zero | tr '\\000' a");
  loud.set_follow(true);
  run(loud);
  result_of(1);
  EXPECT_EQ(chunks_[1][1], std::string(30'000'000, 'a'));
}

}  // namespace
}  // namespace hpcbatch::pilot
