// Tasks through a real pilot: what they find, what is kept of them, what their end is called.
#include "pilot_fixture.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <sstream>

#include <sched.h>
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

TEST_F(PilotTest, AnArrayFromZeroIsToldSo) {
  start();
  wire::Start start = shell(1, "echo $HPCBATCH_TASK_ID $HPCBATCH_TASK_INDEX");
  start.mutable_attempt()->set_index(1);
  start.set_shown_index(1);
  start.set_from_zero(true);
  EXPECT_EQ(output(outcome(start)), "1.1 0\n");
}

TEST_F(PilotTest, FindsItsSurroundings) {
  start({{"SLURM_JOB_ID", "1"}, {"PBS_NODEFILE", "x"}});
  wire::ToPilot message;
  wire::Environment* environment = message.add_environments();
  environment->set_number(5);
  const std::pair<const char*, const char*> callers[] = {
      {"CALLER", "x=y"}, {"SLURM_CONF", "/c"},      {"TMPDIR", "/no"},
      {"MOM_GRID", "5"}, {"PATH", "/usr/bin:/bin"}, {"HPCBATCH_HOME", "/h"}};
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
  for (const char* line :
       {"CALLER=mine", "OWN=1", "PATH=/usr/bin:/bin", "HPCBATCH_TASK_ID=12.345",
        "HPCBATCH_TASK_INDEX=345", "HPCBATCH_ATTEMPT=1", "HPCBATCH_CPUS=1", "HPCBATCH_MEM_MB=100",
        "HPCBATCH_GPUS=", "HPCBATCH_PILOT=Hbtest.0", "HPCBATCH_SITE=here", "OMP_NUM_THREADS=1",
        "HPCBATCH_HOME=/h", "SLURM_CONF=/c", "MOM_GRID=5"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(line) + "\n"));
  }
  EXPECT_THAT(
      text, AllOf(Not(HasSubstr("SLURM_JOB_ID")), Not(HasSubstr("PBS_")), Not(HasSubstr("SECRET")),
                  Not(HasSubstr("TMPDIR=/no")), Not(HasSubstr("CUDA_VISIBLE"))));
}

TEST_F(PilotTest, WhatSetupHasChangedReachesItsTasks) {
  std::string before = "PATH=/bin:/old\1GONE=1\1SAME=1\1SHLVL=1\1";
  start({{"HPCBATCH_BEFORE_SETUP", before},
         {"PATH", "/module/bin:/usr/bin:/bin"},
         {"SAME", "1"},
         {"SHLVL", "2"},
         {"LICENCE", "lic1"}});
  wire::ToPilot message;
  wire::Environment* environment = message.add_environments();
  environment->set_number(5);
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"PATH", "/mine:/bin:/old"}, {"GONE", "2"}, {"LICENCE", "mine"}, {"SAME", "2"}}) {
    wire::Variable* variable = environment->add_variables();
    variable->set_name(name);
    variable->set_value(value);
  }
  auto callers = task(1, {"env"});
  callers.set_environment(5);
  *message.add_start() = callers;
  send(message);
  const std::string text = "\n" + output(result_of(1));
  EXPECT_THAT(text,
              AllOf(HasSubstr("\nPATH=/module/bin:/usr/bin:/mine:/bin\n"),
                    HasSubstr("\nLICENCE=lic1\n"), HasSubstr("\nSAME=2\n"), Not(HasSubstr("GONE")),
                    Not(HasSubstr("SHLVL")), Not(HasSubstr("BEFORE_SETUP"))));
  const std::string nobodys = "\n" + output(outcome(task(2, {"env"})));
  EXPECT_THAT(nobodys, AllOf(HasSubstr("\nLICENCE=lic1\n"), Not(HasSubstr("\nSAME="))));
}

TEST_F(PilotTest, AScriptWithoutAnInterpreterIsRunBySh) {
  start();
  write("script", "echo plain $1 $0\n");
  write("empty", "");
  write("foreign", std::string("\x7f"
                               "ELF\0\0",
                               6));
  for (const char* name : {"script", "empty", "foreign"})
    ASSERT_EQ(::chmod(path(name).c_str(), 0700), 0);
  EXPECT_EQ(output(outcome(task(1, {path("script"), "word"}))),
            "plain word " + path("script") + "\n");
#ifndef __SANITIZE_THREAD__  // what a child says in our memory does not come from its fork
  for (const unsigned n : {2U, 3U}) {
    const auto result = outcome(task(n, {path(n == 2 ? "empty" : "foreign")}));
    EXPECT_EQ(result.exit_code(), 126);
    EXPECT_THAT(result.message(), HasSubstr("empty, or a program of another kind of machine"));
  }
#endif
}

TEST_F(PilotTest, FoldersOfOutputAreMade) {
  start();
  auto writes = shell(1, "echo out; echo err >&2");
  writes.set_standard_output(path("logs/a/out.txt"));
  writes.set_standard_error(path("logs/b/err.txt"));
  EXPECT_EQ(outcome(writes).failure(), "ok");
  EXPECT_EQ(contents("logs/a/out.txt"), "out\n");
  EXPECT_EQ(contents("logs/b/err.txt"), "err\n");
  auto cannot = shell(2, "true");
  cannot.set_standard_output(path("logs/a/out.txt/no"));
  EXPECT_EQ(outcome(cannot).failure(), "stage_out_failed");
  auto unmounted = shell(3, "true");
  unmounted.set_standard_output("/no-such-file-system/out.txt");
  EXPECT_EQ(outcome(unmounted).failure(), "stage_out_failed");
  EXPECT_FALSE(std::filesystem::exists("/no-such-file-system"));
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
    auto start =
        shell(n, "echo $CUDA_VISIBLE_DEVICES/$HPCBATCH_GPUS/$HPCBATCH_GPU_KIND; read line");
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
  EXPECT_EQ(output(result_of(1)), "4/4/a100\n");
  EXPECT_EQ(output(result_of(2)), "7/7/a100\n");
  EXPECT_EQ(output(result_of(3)), "//\n");
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
  auto bound = shell(1, "grep Cpus_allowed_list /proc/self/status");
  bound.set_cpu_bind(1);
  const auto result = outcome(bound);
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

TEST_F(PilotTest, WhatCannotRunSaysWhy) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer makes a fork of vfork, whose child cannot tell its parent why";
#endif
  start();
  auto result = outcome(task(1, {"no-such-program"}));
  EXPECT_EQ(result.failure(), "tool_failed");
  EXPECT_EQ(result.exit_code(), 127);
  EXPECT_THAT(result.message(),
              HasSubstr("cannot run 'no-such-program': No such file or directory in PATH"));
  EXPECT_THAT(outcome(task(10, {"echo a | wc -c"})).message(),
              HasSubstr("a line for a shell is: sh -c 'echo a | wc -c'"));
  EXPECT_THAT(outcome(task(11, {"cd", "/tmp"})).message(),
              HasSubstr("sh -c 'cd ...', or --cwd DIR"));
  EXPECT_THAT(outcome(task(12, {"FOO=1", "env"})).message(), HasSubstr("is set by --env FOO=1"));
  write("plain", std::string("\x7f"
                             "ELF\0",
                             5));
  result = outcome(task(2, {path("plain")}));
  EXPECT_EQ(result.exit_code(), 126);
  EXPECT_THAT(result.message(), HasSubstr("Permission denied"));
  ASSERT_EQ(::chmod(path("plain").c_str(), 0755), 0);
  result = outcome(task(3, {path("plain")}));
  EXPECT_EQ(result.exit_code(), 126);
  EXPECT_THAT(result.message(), HasSubstr("another kind of machine"));
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
  const auto missing = outcome(contained);
  EXPECT_EQ(missing.failure(), "container_missing");
  EXPECT_THAT(missing.message(), HasSubstr("cannot read the image "));
}

TEST_F(PilotTest, ContainersRunThroughTheirRuntime) {
  ::mkdir(path("bin").c_str(), 0755);
  write("bin/singularity", R"(#!/bin/sh
echo "$@"
case $* in *' x fail') exit 255;; esac
for word; do
  case $word in *:/.hpcbatch-inside:ro) pilot=${word%%:*} ;; esac
done
while [ "$1" != /.hpcbatch-inside ]; do shift; done
shift
exec "$pilot" "$@"
)");
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
  EXPECT_THAT(said, HasSubstr("/slot0" + inputs + " --bind "));
  EXPECT_THAT(said, HasSubstr(":/.hpcbatch-inside:ro --pwd " + directory_ + " " +
                              path("image.sif") + " /.hpcbatch-inside inside "));
  EXPECT_TRUE(said.ends_with(" echo hi\nhi\n")) << said;
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

TEST_F(PilotTest, WhatATaskPutsInPlaceOfItsReportHoldsNobodyUp) {
  ::mkdir(path("bin").c_str(), 0755);
  write("bin/singularity", R"(#!/bin/sh
while [ "$1" != /.hpcbatch-inside ]; do shift; done
shift
exec "$PILOT" "$@"
)");
  ASSERT_EQ(::chmod(path("bin/singularity").c_str(), 0755), 0);
  write("image.sif", "");
  start({{"PATH", path("bin") + ":/usr/bin:/bin"}, {"PILOT", HPCBATCH_PILOT}});
  unsigned number = 0;
  for (const std::string make :
       {"mkfifo $r", "mkdir $r", "ln -s /dev/zero $r", "truncate -s 1T $r", "ln -s $r $r",
        "mkfifo $r; chmod 0 $r", "python3 -c 'import socket; socket.socket(1).bind(\"'$r'\")'"}) {
    auto contained = shell(++number, "r=$TMPDIR/.hpcbatch-inside; rm $r && " + make);
    contained.set_container(path("image.sif"));
    const auto result = outcome(contained);
    EXPECT_EQ(result.failure(), "container_failed") << make;
    EXPECT_EQ(outcome(shell(++number, "test ! -e $TMPDIR/.hpcbatch-inside")).failure(), "ok")
        << make << ": the next one finds its folder empty";
  }
}

TEST_F(PilotTest, ARuntimeThatRunsNothingIsNoSuccess) {
  ::mkdir(path("bin").c_str(), 0755);
  write("bin/singularity", "#!/bin/sh\nexit 0\n");
  ASSERT_EQ(::chmod(path("bin/singularity").c_str(), 0755), 0);
  write("image.sif", "");
  start({{"PATH", path("bin") + ":/usr/bin:/bin"}});
  auto contained = task(1, {"true"});
  contained.set_container(path("image.sif"));
  const auto result = outcome(contained);
  EXPECT_EQ(result.failure(), "container_failed");
  EXPECT_THAT(result.message(), HasSubstr("singularity ended with exit 0 before the task's"));
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

TEST_F(PilotTest, ThePeakOfAShortTaskIsKnown) {
  start();
  // More than a pilot has of its own, a sanitizer's memory included: less could be its own.
  const auto result =
      outcome(shell(1, "head -c 300000000 /dev/zero | tail -c 300000000 > /dev/null"));
  EXPECT_GE(result.peak_memory(), 300'000'000U);
}

TEST_F(PilotTest, PeakMemoryCountsWhatProcessesShareOnce) {
  start();
  // Each sleep has more than a megabyte resident, nearly all of it the C library's.
  const auto result = outcome(shell(1, "for i in $(seq 60); do sleep 1.5 & done; wait"));
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_LT(result.peak_memory(), 40'000'000U);
}

}  // namespace
}  // namespace hpcbatch::pilot
