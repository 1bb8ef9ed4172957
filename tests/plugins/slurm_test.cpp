// The dialect of SLURM against what real clusters print (22.05 unless said), word for word.
#include "hpcbatch/choices.hpp"
#include "hpcbatch/contract/scheduler.hpp"
#include "hpcbatch/node_avoider.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<Scheduler> make(const std::string& config_yaml = "") {
  return contract::load<Scheduler>(PLUGINS "/schedulers/slurm.so", config_yaml);
}

CommandOutput answer(int exit_code, std::string out, std::string error = "") {
  return {.exit_code = exit_code,
          .timed_out = false,
          .standard_output = std::move(out),
          .standard_error = std::move(error)};
}

AllocationRequest request() {
  AllocationRequest r;
  r.name = "hbQ7x";
  r.cpus = 4;
  r.walltime = 90min;
  r.pilot = {"/w/hpcbatch-pilot", "--file", "/w/it's here"};
  r.directory = "/w/logs";
  return r;
}

// ---- submitting

TEST(SlurmSubmit, AsksForWhatTheShapeSays) {
  auto r = request();
  r.nodes = 2;
  r.memory = (std::uint64_t{2} << 30) + 1;
  r.gpus = {{"a100", 2}, {"", 1}};
  r.walltime = 3601s;
  r.partition = "gpu";
  r.options = {"--account=abc", "--mem=1G"};
  r.directory = "/w/100%/logs";
  EXPECT_THAT(
      make()->submit(r, "/w/script").argv,
      ElementsAre("sbatch", "--parsable", "--job-name=hbQ7x", "--no-requeue", "--open-mode=append",
                  "--export=ALL", "--propagate=NONE", "--comment=hpcbatch:hbQ7x",
                  "--chdir=/w/100%/logs", "--output=/w/100%%/logs/hbQ7x.out", "--nodes=2",
                  "--ntasks-per-node=1", "--cpus-per-task=4", "--mem=2049M",
                  "--gres=gpu:1,gpu:a100:2", "--time=61", "--partition=gpu", "--account=abc",
                  "--mem=1G", "/w/script"));
}

TEST(SlurmSubmit, KeepsAllocationsFromNodes) {
  const auto slurm = make();
  const auto* avoider = dynamic_cast<const NodeAvoider*>(slurm.get());
  ASSERT_TRUE(avoider);
  EXPECT_THAT(avoider->options_without({"n1", "gpu-07.cluster"}),
              ElementsAre("--exclude=n1,gpu-07.cluster"));
  // What would be a list or a file to sbatch is no node's name.
  EXPECT_TRUE(avoider->options_without({"", "n[1-9]", "/etc/nodes", "a,b"}).empty());
}

TEST(SlurmSubmit, WritesWhatTasksChoose) {
  const auto slurm = make();
  const auto* choices = dynamic_cast<const Choices*>(slurm.get());
  ASSERT_TRUE(choices);
  EXPECT_THAT(choices->choice_keys(), testing::IsSupersetOf({"account", "qos", "reservation"}));
  EXPECT_THAT(choices->options_for({"account=lab", "constraint=avx&ssd"}),
              ElementsAre("--account=lab", "--constraint=avx&ssd"));
}

TEST(SlurmSubmit, KeepsTheGpusBesideOtherGres) {
  auto r = request();
  r.gpus = {{"", 1}, {"a100", 2}};
  r.options = {"--gres=tmpdisk:10", "--account=abc", "--gres", "nic:1"};
  const auto argv = make()->submit(r, "/w/script").argv;
  EXPECT_THAT(argv, Contains("--gres=tmpdisk:10,nic:1,gpu:1,gpu:a100:2"));
  EXPECT_THAT(argv, Contains("--account=abc"));
  EXPECT_THAT(argv, Not(Contains("nic:1")));
  r.options = {"--gres=gpu:h100:4"};
  EXPECT_THAT(make()->submit(r, "/w/script").argv, Contains("--gres=gpu:h100:4"));
}

TEST(SlurmSubmit, AsksForNothingThatTheShapeDoesNotSay) {
  auto r = request();
  r.walltime = 0s;
  r.cpus = 0.5;
  const auto argv = make()->submit(r, "/w/script").argv;
  EXPECT_THAT(argv, Contains("--cpus-per-task=1"));
  for (const std::string& word : argv) {
    EXPECT_FALSE(word.starts_with("--mem") || word.starts_with("--gres") ||
                 word.starts_with("--time") || word.starts_with("--partition"))
        << word;
  }
}

/// Runs a script as a node would, with an srun that says how it was called.
std::string run_script(const AllocationRequest& r) {
  std::string pattern = testing::TempDir() + "slurm-XXXXXX";
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path root = pattern;
  std::ofstream(root / "script") << make()->script(r);
  std::ofstream(root / "srun") << "#!/bin/sh\nprintf '<%s>' srun \"$@\"\nexit 5\n";
  std::filesystem::permissions(root / "srun", std::filesystem::perms::owner_all);
  const std::string line =
      "PATH=" + pattern + ":$PATH sh " + pattern + "/script 2>&1; echo \" exit $?\"";
  std::FILE* pipe = ::popen(line.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  ::pclose(pipe);
  std::filesystem::remove_all(root);
  return text;
}

TEST(SlurmScript, OnOneNodeThePilotTakesThePlaceOfTheShell) {
  auto r = request();
  r.setup = {"GREETING='good day'; export GREETING"};
  r.pilot = {"sh", "-c", "echo \"$GREETING, rank $HPCBATCH_NODE_RANK: $1\"; exit 3", "sh",
             "it's \"here\" $HOME"};
  EXPECT_EQ(run_script(r), "good day, rank 0: it's \"here\" $HOME\n exit 3\n");
}

TEST(SlurmScript, OnSeveralNodesSrunStartsOneEach) {
  auto r = request();
  r.nodes = 3;
  EXPECT_EQ(run_script(r),
            "<srun><--export=ALL><--propagate=NONE><--nodes=3><--ntasks=3><--ntasks-per-node=1><--"
            "cpus-per-task=4><--"
            "mpi=none>"
            "<--wait=0><--kill-on-bad-exit=0></w/hpcbatch-pilot><--file></w/it's here> exit 5\n");
}

TEST(SlurmScript, ModulesAreDefinedOnlyWhereSomebodyMayWantThem) {
  auto r = request();
  EXPECT_THAT(make()->script(r), Not(HasSubstr("/etc/profile")));
  r.setup = {"module load python"};
  EXPECT_THAT(make()->script(r), HasSubstr("/etc/profile\nmodule load python\n"));
}

struct Refused {
  const char* name;
  int exit_code;
  const char* error;
  Refusal refusal;
  const char* text;
};
std::ostream& operator<<(std::ostream& out, const Refused& r) {
  return out << r.name;
}

class SlurmRefusal : public testing::TestWithParam<Refused> {};

TEST_P(SlurmRefusal, IsClassified) {
  const auto read = make()->read_submit(answer(GetParam().exit_code, "", GetParam().error));
  const auto* refused = std::get_if<SubmitRefused>(&read);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(static_cast<int>(refused->refusal), static_cast<int>(GetParam().refusal));
  EXPECT_EQ(refused->text, GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Recorded, SlurmRefusal,
    testing::Values(
        Refused{"partition", 1,
                "sbatch: error: invalid partition specified: nope\n"
                "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
                Refusal::Permanent,
                "invalid partition specified: nope; Batch job submission failed: Invalid partition "
                "name specified"},
        Refused{"memory", 1,
                "sbatch: error: Memory specification can not be satisfied\n"
                "sbatch: error: Batch job submission failed: Requested node configuration is not "
                "available\n",
                Refusal::Permanent,
                "Memory specification can not be satisfied; Batch job submission failed: Requested "
                "node "
                "configuration is not available"},
        Refused{"gres", 1, "sbatch: error: Invalid generic resource (gres) specification\n",
                Refusal::Permanent, "Invalid generic resource (gres) specification"},
        Refused{"account", 1,
                "sbatch: error: Batch job submission failed: Invalid account or account/partition "
                "combination "
                "specified\n",
                Refusal::Permanent,
                "Batch job submission failed: Invalid account or account/partition combination "
                "specified"},
        Refused{"plugin_of_the_site", 1,
                "sbatch: error: Please say which project pays.\n"
                "sbatch: error: Batch job submission failed: Unspecified error\n",
                Refusal::Permanent,
                "Please say which project pays.; Batch job submission failed: Unspecified error"},
        Refused{"line_breaks", 1,
                "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n"
                "sbatch: error: instead of expected UNIX line breaks (\\n).\n",
                Refusal::Permanent,
                "Batch script contains DOS line breaks (\\r\\n); instead of expected UNIX line "
                "breaks (\\n)."},
        Refused{"no_interpreter", 1,
                "sbatch: error: This does not look like a batch script.  The first\n",
                Refusal::Permanent, "This does not look like a batch script.  The first"},
        Refused{"empty", 1, "sbatch: error: Batch script is empty!\n", Refusal::Permanent,
                "Batch script is empty!"},
        Refused{"no_script", 1, "sbatch: error: Unable to open file none.sh\n", Refusal::Transient,
                "Unable to open file none.sh"},
        Refused{"bad_time", 255, "sbatch: error: Invalid --time specification\n",
                Refusal::Permanent, "Invalid --time specification"},
        Refused{"bad_option", 255,
                "sbatch: unrecognized option '--badoption'\nTry \"sbatch --help\" for more "
                "information\n",
                Refusal::Permanent,
                "unrecognized option '--badoption'; Try \"sbatch --help\" for more information"},
        Refused{"policy", 1,
                "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission "
                "failed: Job violates "
                "accounting/QOS policy (job submit limit, user's size and/or time limits)\n",
                Refusal::Limit,
                "AssocMaxSubmitJobLimit; Batch job submission failed: Job violates accounting/QOS "
                "policy (job submit "
                "limit, user's size and/or time limits)"},
        Refused{"policy_per_job", 1,
                "sbatch: error: QOSMaxCpuPerJobLimit\nsbatch: error: Batch job submission failed: "
                "Job violates "
                "accounting/QOS policy (job submit limit, user's size and/or time limits)\n",
                Refusal::Permanent,
                "QOSMaxCpuPerJobLimit; Batch job submission failed: Job violates accounting/QOS "
                "policy (job submit "
                "limit, user's size and/or time limits)"},
        Refused{"job_count", 1,
                "sbatch: error: Batch job submission failed: Slurm temporarily unable to accept "
                "job, MaxJobCount limit reached\n",
                Refusal::Limit,
                "Batch job submission failed: Slurm temporarily unable to accept job, MaxJobCount "
                "limit reached"},
        Refused{"reserved_for_maintenance", 1,
                "sbatch: error: Batch job submission failed: Job can not start due to maintenance "
                "reservation.\n",
                Refusal::Transient,
                "Batch job submission failed: Job can not start due to maintenance reservation."},
        Refused{"partition_for_now", 1,
                "sbatch: error: Batch job submission failed: Requested partition configuration not "
                "available now\n",
                Refusal::Transient,
                "Batch job submission failed: Requested partition configuration not available "
                "now"},
        Refused{"quota", 1, "sbatch: error: cannot write the script: Disk quota exceeded\n",
                Refusal::Transient, "cannot write the script: Disk quota exceeded"},
        Refused{"reservation", 1,
                "sbatch: error: Batch job submission failed: Requested reservation is invalid\n",
                Refusal::Permanent,
                "Batch job submission failed: Requested reservation is invalid"},
        Refused{"rate", 1, "sbatch: error: Batch job submission failed: Rate limit exceeded\n",
                Refusal::Transient, "Batch job submission failed: Rate limit exceeded"},
        Refused{
            "no_contact", 1,
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller "
            "(connect failure)\n",
            Refusal::Transient,
            "Batch job submission failed: Unable to contact slurm controller (connect failure)"},
        Refused{"no_configuration", 1,
                "sbatch: error: s_p_parse_file: cannot stat file : No such file or directory, "
                "retrying in 1sec up to "
                "60sec\nsbatch: error: ClusterName needs to be specified\nsbatch: fatal: Unable to "
                "process "
                "configuration file\n",
                Refusal::Transient,
                "s_p_parse_file: cannot stat file : No such file or directory, retrying in 1sec up "
                "to 60sec; "
                "ClusterName needs to be specified; Unable to process configuration file"},
        Refused{
            "timeout", 1,
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n",
            Refusal::Unclear,
            "Batch job submission failed: Socket timed out on send/recv operation"},
        Refused{"killed", 137, "", Refusal::Unclear, "exit 137"},
        Refused{"filter_of_the_site", 1, "sbatch: error: cli_filter plugin terminated with error\n",
                Refusal::Permanent, "cli_filter plugin terminated with error"},
        Refused{"contradiction", 1,
                "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
                Refusal::Permanent,
                "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."},
        Refused{"bad_value", 1, "sbatch: error: Invalid --distribution specification\n",
                Refusal::Permanent, "Invalid --distribution specification"},
        Refused{"news_of_sbatch", 1, "sbatch: error: The moon is full\n", Refusal::Transient,
                "The moon is full"},
        Refused{"killed_while_it_said", 143, "sbatch: error: Invalid end\n", Refusal::Unclear,
                "Invalid end"},
        Refused{"no_sbatch", 127, "sh: 1: sbatch: not found\n", Refusal::Permanent,
                "sh: 1: sbatch: not found"},
        Refused{"words_of_the_wind", 1, "Something odd happened\n", Refusal::Unclear,
                "Something odd happened"}),
    [](const auto& p) { return p.param.name; });

TEST(SlurmSubmit, WhatSlurmsWordsMean) {
  // What slurm_strerror says behind "Batch job submission failed: ".
  const std::map<Refusal, std::vector<std::string>> reasons{
      {Refusal::Unclear,
       {"Message send failure", "Message receive failure",
        "Zero Bytes were transmitted or received",
        "Unable to contact slurm controller (receive failure)",
        "Unable to contact slurm controller (send failure)",
        "Unable to contact slurm controller (shutdown failure)", "Connection timed out",
        "Broken pipe", "Transport endpoint is not connected", "Resource temporarily unavailable"}},
      {Refusal::Transient,
       {"Unable to contact slurm controller (connect failure)", "Connection refused",
        "Communication connection failure", "Slurm backup controller in standby mode",
        "Required partition not available (inactive or drain)",
        "Required node not available (down, drained or reserved)",
        "Requested operation is presently disabled", "I/O error writing script/output to file",
        "Unable to create job record, try again", "Requested reservation not usable now",
        "System submissions disabled", "Unable to connect to database",
        "Invalid authentication credential", "Protocol authentication error"}},
      {Refusal::Permanent,
       {"Invalid qos specification",
        "Requested time limit is invalid (missing or exceeds some limit)",
        "User's group not permitted to use this partition", "Access/permission denied",
        "CPU count specification invalid", "Node count specification invalid",
        "Job dependency problem", "Invalid feature specification", "Unspecified error"}}};
  for (const auto& [refusal, texts] : reasons) {
    for (const std::string& text : texts) {
      const auto read = make()->read_submit(
          answer(1, "", "sbatch: error: Batch job submission failed: " + text + "\n"));
      EXPECT_EQ(std::get<SubmitRefused>(read).refusal, refusal) << text;
    }
  }
}

TEST(SlurmSubmit, ATrialSubmitsNothingAndSaysWhatWouldHappen) {
  const auto plugin = make();
  const auto* trial = dynamic_cast<const SubmitTrial*>(plugin.get());
  ASSERT_NE(trial, nullptr);
  const auto command = trial->try_submit(request(), "/w/trial.sh");
  EXPECT_EQ(command.argv[0], "sbatch");
  EXPECT_EQ(command.argv[1], "--test-only");
  EXPECT_EQ(command.argv.back(), "/w/trial.sh");
  const auto good = trial->read_try_submit(answer(
      0, "", "sbatch: Job 7 to start at 2026-11-25T01:00:00 using 4 processors on nodes n1\n"));
  ASSERT_TRUE(good);
  EXPECT_THAT(*good, HasSubstr("to start at 2026-11-25"));
  const auto bad = trial->read_try_submit(
      answer(1, "", "allocation failure: Invalid account or account/partition combination\n"));
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().text, HasSubstr("Invalid account"));
  EXPECT_EQ(bad.error().kind, Error::Kind::Rejected);
}

TEST(SlurmSubmit, ANumberIsSuccess) {
  EXPECT_EQ(std::get<std::string>(make()->read_submit(answer(0, "4711\n"))), "4711");
  EXPECT_EQ(std::get<std::string>(make()->read_submit(answer(0, "4711;hpc2\n"))), "4711");
  EXPECT_EQ(std::get<std::string>(make()->read_submit(
                answer(0, "*** Down on Friday ***\n4711\n", "sbatch: project abc\n"))),
            "4711");
}

TEST(SlurmSubmit, TwoNumbersOrNoneAreUnclear) {
  for (const char* out : {"2026\n4711\n", "", "Submitted batch job 4711\n", "4711 5\n"}) {
    const auto read = make()->read_submit(answer(0, out));
    ASSERT_TRUE(std::holds_alternative<SubmitRefused>(read)) << out;
    EXPECT_EQ(std::get<SubmitRefused>(read).refusal, Refusal::Unclear);
  }
}

TEST(SlurmSubmit, WaitingAtAFullControllerUntilKilledIsUnclear) {
  auto output = answer(
      -1, "", "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n");
  output.timed_out = true;
  EXPECT_EQ(std::get<SubmitRefused>(make()->read_submit(output)).refusal, Refusal::Unclear);
}

// ---- listing

/// As the shell text chooses one each time.
const std::string kMark = "hb5f0c1d2e3a4b5c6d7e8f9012";

/// A batch job between marks, as squeue prints it: what is behind the last bar is its name.
std::string marked(const std::string& line) {
  const auto name = line.rfind('|');
  return kMark + line.substr(0, name) + kMark + line.substr(name + 1) + kMark + "\n";
}

/// What the poll prints where these are there.
CommandOutput listing(const std::vector<std::string>& lines) {
  std::string text = "hbmark " + kMark + "\n";
  for (const std::string& line : lines) text += marked(line);
  return answer(0, text + kMark + "end\n");
}

BatchJob listed(const std::string& state, const std::string& reason,
                const std::string& kind = "job") {
  const auto jobs =
      make()->read_poll("hbQ", listing({kind + "|17|" + state + "|1:00:00||" + reason + "|hbQ7x"}));
  EXPECT_TRUE(jobs) << jobs.error().text;
  return jobs && !jobs->empty() ? jobs->front() : BatchJob{};
}

TEST(SlurmPoll, WhatAnEndedStateMeans) {
  const std::map<std::string, EndCause> meanings{{"COMPLETED", EndCause::Completed},
                                                 {"TIMEOUT", EndCause::Timeout},
                                                 {"DEADLINE", EndCause::Timeout},
                                                 {"PREEMPTED", EndCause::Preempted},
                                                 {"NODE_FAIL", EndCause::NodeFailed},
                                                 {"BOOT_FAIL", EndCause::NodeFailed},
                                                 {"LAUNCH_FAILED", EndCause::NodeFailed},
                                                 {"RECONFIG_FAIL", EndCause::NodeFailed},
                                                 {"OUT_OF_MEMORY", EndCause::OutOfMemory},
                                                 {"CANCELLED", EndCause::Cancelled},
                                                 {"FAILED", EndCause::Failed}};
  for (const auto& [state, cause] : meanings) {
    const auto job = listed(state, "None");
    EXPECT_EQ(job.state, BatchState::Ended) << state;
    EXPECT_EQ(job.cause, cause) << state;
    EXPECT_EQ(job.reason, state);
  }
  EXPECT_EQ(listed("FAILED", "JobLaunchFailure").cause, EndCause::LaunchFailed);
  EXPECT_EQ(listed("FAILED", "JobLaunchFailure").reason, "JobLaunchFailure");
  EXPECT_EQ(listed("FAILED", "NonZeroExitCode").cause, EndCause::Failed);
}

TEST(SlurmPoll, WhatHasNotEndedIsNeverReadAsEnded) {
  for (const char* state :
       {"RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING", "INVENTED_LATER"}) {
    EXPECT_EQ(listed(state, "None").state, BatchState::Running) << state;
  }
  EXPECT_EQ(listed("SUSPENDED", "None").state, BatchState::Suspended);
  EXPECT_EQ(listed("CONFIGURING", "None").state, BatchState::Queued);
  EXPECT_EQ(listed("REQUEUED", "None").state, BatchState::Queued);
  EXPECT_EQ(listed("REQUEUE_HOLD", "None").state, BatchState::Held);
}

TEST(SlurmPoll, WhatAPendingReasonMeans) {
  const std::map<BatchState, std::vector<std::string>> meanings{
      {BatchState::Queued,
       {"None", "Resources", "Priority", "BeginTime", "Dependency", "JobArrayTaskLimit", "Licenses",
        "Cleaning"}},
      {BatchState::LimitReached,
       {"QOSMaxJobsPerUserLimit", "QOSMaxCpuPerUserLimit", "QOSMaxSubmitJobPerUserLimit",
        "QOSGrpCpuLimit", "QOSGrpNodeLimit", "AssocMaxJobsLimit", "AssocMaxSubmitJobLimit",
        "AssocGrpCpuLimit", "AssocGrpMemLimit", "AssocGrpCPURunMinutesLimit", "MaxCpuPerAccount",
        "MaxGRESPerAccount"}},
      {BatchState::NeverStarts,
       {"PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "BadConstraints",
        "DependencyNeverSatisfied", "InvalidAccount", "InvalidQOS", "AccountNotAllowed",
        "AssocMaxCpuPerJobLimit", "AssocMaxWallDurationPerJobLimit",
        "QOSMaxWallDurationPerJobLimit", "QOSMaxMemoryPerNode", "AssocGrpCPUMinutesLimit",
        "AssocGrpBillingMinutes", "QOSGrpCPUMinutesLimit"}},
      {BatchState::Held,
       {"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "launch failed requeued held"}},
      {BatchState::Outage,
       {"ReqNodeNotAvail", "ReqNodeNotAvail, UnavailableNodes:n[1-2]",
        "ReqNodeNotAvail, Reserved for maintenance", "PartitionDown", "PartitionInactive",
        "Reservation", "Nodes required for job are DOWN, DRAINED or reserved"}}};
  for (const auto& [state, reasons] : meanings) {
    for (const std::string& reason : reasons) {
      EXPECT_EQ(static_cast<int>(listed("PENDING", reason).state), static_cast<int>(state))
          << reason;
    }
  }
}

TEST(SlurmPoll, ReadsALineWithAllInIt) {
  const auto jobs =
      make()->read_poll("hbQ", listing({"job|18|RUNNING|1-02:03:04|n[1-2,07],gpu3|None|hbQ7x",
                                        "job|19_[1-5]|PENDING|1:00:00||Resources|somebody's own",
                                        "job|20|PENDING|1:00:00||Priority|hbZ1"}));
  ASSERT_TRUE(jobs) << jobs.error().text;
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().name, "hbQ7x");
  EXPECT_EQ(jobs->front().number, "18");
  EXPECT_EQ(jobs->front().time_left, 26h + 3min + 4s);
  EXPECT_THAT(jobs->front().nodes, ElementsAre("n1", "n2", "n07", "gpu3"));
}

TEST(SlurmPoll, TimeLeftIsToldOnlyOfWhatRuns) {
  EXPECT_EQ(listed("PENDING", "Resources").time_left, std::nullopt);
  EXPECT_EQ(listed("RUNNING", "None").time_left, 1h);
  const auto jobs = make()->read_poll(
      "hb", listing({"job|1|RUNNING|UNLIMITED|n1|None|hbA", "job|2|RUNNING|0:59|n1|None|hbB"}));
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->at(0).time_left, std::nullopt);
  EXPECT_EQ(jobs->at(1).time_left, 59s);
}

TEST(SlurmPoll, TheAccountingTellsOnlyOfEnds) {
  const auto job = listed("CANCELLED by 1000", "None", "acct");
  EXPECT_EQ(job.cause, EndCause::Cancelled);
  const auto jobs =
      make()->read_poll("hbQ", listing({"acct|7|RUNNING|01:00:00|n1|None|hbQold",
                                        "acct|8|PENDING|01:00:00|None assigned|None|hbQolder",
                                        "acct|9|TIMEOUT|01:00:00|n[1-2]|None|hbQ7x"}));
  ASSERT_TRUE(jobs) << jobs.error().text;
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().cause, EndCause::Timeout);
}

TEST(SlurmPoll, WhatAnotherClusterOfAFederationTookHasNotEnded) {
  const auto jobs =
      make()->read_poll("hbQ", listing({"job|67108881|REVOKED|1:00:00||None|hbQ7x",
                                        "job|134217745|RUNNING|1:00:00|n1|None|hbQ7x"}));
  ASSERT_TRUE(jobs) << jobs.error().text;
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().state, BatchState::Running);
}

TEST(SlurmPoll, NothingIsConcludedFromAnAnswerThatCannotBeTrusted) {
  const auto distrusted = [](const CommandOutput& output) {
    const auto jobs = make()->read_poll("hb", output);
    return jobs ? "trusted" : jobs.error().text;
  };
  EXPECT_THAT(
      distrusted(answer(
          1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")),
      HasSubstr("squeue exit 1: slurm_load_jobs error: Unable to contact slurm controller"));
  const std::string head = "hbmark " + kMark + "\n";
  const std::string job = marked("job|1|RUNNING|1:00|n1|None|hbA");
  EXPECT_THAT(distrusted(answer(0, head + job)), HasSubstr("half an answer"));
  EXPECT_THAT(distrusted(answer(0, "")), HasSubstr("half an answer"));
  EXPECT_THAT(distrusted(answer(0, "*** Down on Friday ***\n")), HasSubstr("Down on Friday"));
  EXPECT_THAT(distrusted(answer(0, "hbmark hb\nhbjob|1|RUNNING|1:00|n1|NonehbhbAhb\nhbend\n")),
              HasSubstr("half an answer"))
      << "a mark that all can foresee";
  EXPECT_THAT(distrusted(answer(0, head + kMark + "job|1|RUNN" + kMark + "end\n")),
              HasSubstr("half an answer"));
  EXPECT_THAT(distrusted(answer(0, head + "squeue was here\n" + job + kMark + "end\n")),
              HasSubstr("half an answer"));
  EXPECT_THAT(distrusted(listing({"job|1|RUNNING|1:00|n1|hbA"})), HasSubstr("no batch job"));
  EXPECT_THAT(distrusted(listing({"job|1|???|1:00|n1|None|hbA"})), HasSubstr("no state"));
  EXPECT_THAT(distrusted(listing({})), "trusted");
  EXPECT_THAT(distrusted(answer(0, "*** Down on Friday ***\n" + head + job + kMark + "end\n")),
              "trusted");
}

TEST(SlurmPoll, ANameMayHoldAnything) {
  const std::string forged = "x\nhb|9|RUNNING|1:00|n[1-65536]|None|hbQ9\nhbend\n" + kMark.substr(1);
  std::string text = "hbmark " + kMark + "\n";
  for (const std::string& name :
       {std::string("a\nb"), std::string("a|b\xff"), forged, std::string("hbQ7x")})
    text.append(kMark)
        .append("job|7|RUNNING|1:00|n1|None")
        .append(kMark)
        .append(name)
        .append(kMark)
        .append("\n");
  const auto jobs = make()->read_poll("hbQ", answer(0, text + kMark + "end\n"));
  ASSERT_TRUE(jobs) << jobs.error().text;
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().name, "hbQ7x");
}

TEST(SlurmPoll, NodeListsThatCannotBeTakenApartStayAsTheyAre) {
  const auto nodes = [](const std::string& list) {
    const auto jobs =
        make()->read_poll("hb", listing({"job|1|RUNNING|1:00|" + list + "|None|hbA"}));
    return jobs ? jobs->front().nodes : std::vector<std::string>{};
  };
  EXPECT_THAT(nodes("r[1-2]-ib"), ElementsAre("r1-ib", "r2-ib"));
  EXPECT_THAT(nodes("r[08-11]"), ElementsAre("r08", "r09", "r10", "r11"));
  EXPECT_THAT(nodes("r[1-"), ElementsAre("r[1-"));
  EXPECT_THAT(nodes("r[9-1]"), ElementsAre("r[9-1]"));
  EXPECT_THAT(nodes("r[1-999999999]"), ElementsAre("r[1-999999999]"));
  EXPECT_THAT(nodes("r[18446744073709551615]"), ElementsAre("r18446744073709551615"));
}

TEST(SlurmPoll, ALineNamesNoMoreNodesThanSlurmCanHave) {
  std::string list = "r[1-60000]";
  while (list.size() < 8000) list += ",r[1-60000]";
  const auto jobs = make()->read_poll("hb", listing({"job|1|RUNNING|1:00|" + list + "|None|hbA"}));
  ASSERT_TRUE(jobs);
  EXPECT_THAT(jobs->front().nodes, ElementsAre(list));
}

TEST(SlurmPoll, AllLinesTogetherNameABoundedNumberOfNodes) {
  std::vector<std::string> lines(200, "job|1|RUNNING|1:00|n[1-65536]|None|hbA");
  lines.emplace_back("job|2|RUNNING|1:00|" + std::string(300, 'n') + "[1-9]|None|hbB");
  const auto jobs = make()->read_poll("hb", listing(lines));
  ASSERT_TRUE(jobs);
  std::size_t nodes = 0;
  for (const BatchJob& job : *jobs) nodes += job.nodes.size();
  EXPECT_LE(nodes, 1'000'201u);
  EXPECT_EQ(jobs->front().nodes.size(), 65'536u);
  EXPECT_THAT(jobs->at(199).nodes, ElementsAre("n[1-65536]"));
  EXPECT_EQ(jobs->back().nodes.size(), 1u);
}

// ---- the shell texts, with scripted commands in place of SLURM's

class SlurmShell : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "slurm-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void scripted(const std::string& program, const std::string& text) {
    std::ofstream(root_ / program) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(root_ / program, std::filesystem::perms::owner_all);
  }
  CommandOutput run(const CommandLine& command) const {
    std::ofstream(root_ / "arguments") << [&] {
      std::string line = "PATH=" + root_.string() + ":/usr/bin:/bin; exec";
      for (const std::string& word : command.argv) {
        line += " '";
        for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
        line += "'";
      }
      return line + "\n";
    }();
    std::FILE* pipe =
        ::popen(("sh " + (root_ / "arguments").string() + " 2>/dev/null").c_str(), "r");
    CommandOutput output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe))
      output.standard_output += static_cast<char>(c);
    output.exit_code = WEXITSTATUS(::pclose(pipe));
    return output;
  }
  std::filesystem::path root_;
};

/// A squeue that knows one batch job, in the form that it is asked for.
constexpr const char* kSqueue =
    R"sh(printf '%s\n' "$SQUEUE_FORMAT" | sed 's/%i/1/; s/%T/RUNNING/; s/%L/1:00/; s/%N/n1/; s/%r/None/; s/%j/hbQ1/')sh";

TEST_F(SlurmShell, ANameThatSqueueForgotIsLookedUpInTheAccounting) {
  scripted("squeue", kSqueue);
  scripted("sacct",
           "for a; do case $a in --name=*) echo \"9|TIMEOUT|01:00:00|n1|None|${a#--name=}\";; "
           "esac; done");
  const auto jobs = make()->read_poll("hbQ", run(make()->poll("hbQ", {"hbQ1", "hbQ2"})));
  ASSERT_TRUE(jobs) << jobs.error().text;
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ(jobs->at(1).name, "hbQ2");
  EXPECT_EQ(jobs->at(1).cause, EndCause::Timeout);
}

TEST_F(SlurmShell, BatchJobsInHiddenPartitionsAreListed) {
  scripted("squeue", std::string("for a; do [ $a != --all ] || ") + kSqueue + "; done");
  const auto jobs = make()->read_poll("hbQ", run(make()->poll("hbQ", {"hbQ1"})));
  ASSERT_TRUE(jobs) << jobs.error().text;
  EXPECT_EQ(jobs->size(), 1u);
  EXPECT_THAT(make()->probe().argv, Contains(HasSubstr("sinfo --all")));
}

TEST_F(SlurmShell, WithoutAnUnknownNameTheAccountingIsLeftAlone) {
  scripted("squeue", kSqueue);
  scripted("sacct", "echo '9|TIMEOUT|01:00:00|n1|None|hbQ1'");
  const auto jobs = make()->read_poll("hbQ", run(make()->poll("hbQ", {"hbQ1"})));
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->size(), 1u);
}

TEST_F(SlurmShell, AnAccountingThatFailsOrIsAbsentSpoilsNothing) {
  scripted("squeue", "exit 0");
  scripted("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
  auto jobs = make()->read_poll("hbQ", run(make()->poll("hbQ", {"hbQ1"})));
  ASSERT_TRUE(jobs) << jobs.error().text;
  EXPECT_TRUE(jobs->empty());
}

TEST_F(SlurmShell, AFailureOfSqueueIsOneOfThePoll) {
  scripted("squeue", std::string(kSqueue) + "; exit 1");
  EXPECT_FALSE(make()->read_poll("hbQ", run(make()->poll("hbQ", {}))));
}

TEST_F(SlurmShell, CancelsEachByNameAndGoesOnAfterAFailure) {
  scripted("scancel", "printf '<%s>' \"$@\"; echo; [ \"$2\" != --name=hbQ2 ]");
  const auto output = run(make()->cancel({"hbQ1", "hbQ2", "hbQ3"}, {"17", "", "19"}));
  const std::string user = "<--user=" + std::to_string(::getuid()) + ">";
  EXPECT_EQ(output.standard_output,
            user + "<--name=hbQ1>\n" + user + "<--name=hbQ2>\n" + user + "<--name=hbQ3>\n");
  EXPECT_EQ(output.exit_code, 1);
}

// ---- what the site offers

TEST(SlurmProbe, MergesThePartsOfAPartition) {
  const auto offers = make()->read_probe(
      answer(0,
             "hb|cpu*|up|2|4|8000|1-00:00:00|(null)\n"
             "hb|gpu|up|1|4|8000|infinite|gpu:v100:2\n"
             "hb|gpu|up|3|64+|512000+|infinite|gpu:a100:4(S:0-1),gpu:v100:1,craynetwork:4\n"
             "hb|any|up|1|8|1000|30:00|gpu:2\n"));
  ASSERT_TRUE(offers) << offers.error().text;
  ASSERT_EQ(offers->size(), 3u);
  EXPECT_EQ(offers->at(0).partition, "cpu");
  EXPECT_EQ(offers->at(0).walltime, 24h);
  EXPECT_EQ(offers->at(1).nodes, 4u);
  EXPECT_EQ(offers->at(1).cpus, 64);
  EXPECT_EQ(offers->at(1).memory, std::uint64_t{512000} << 20);
  EXPECT_EQ(offers->at(1).walltime, std::nullopt);
  EXPECT_EQ(offers->at(1).gpus, (std::map<std::string, std::uint32_t>{{"a100", 4}, {"v100", 2}}));
  EXPECT_EQ(offers->at(2).gpus, (std::map<std::string, std::uint32_t>{{"", 2}}));
}

TEST(SlurmProbe, AnAnswerWithoutPartitionsIsAnError) {
  EXPECT_FALSE(make()->read_probe(answer(0, "")));
  EXPECT_FALSE(make()->read_probe(
      answer(1, "", "slurm_load_partitions: Unable to contact slurm controller")));
}

// ---- what others have in the queue

Result<WatchedQueue> read_queue(const CommandOutput& output) {
  const auto slurm = make();
  const auto* watcher = dynamic_cast<const QueueWatcher*>(slurm.get());
  return watcher ? watcher->read_queue(output) : Error{Error::Kind::Rejected, "it is none"};
}

/// What comes before the lines of all: the names of one's own, by number.
std::string own_names(const std::vector<std::string>& lines) {
  return listing(lines).standard_output;
}

TEST(SlurmQueue, ShowsWhatRunsWhatWaitsAndOnWhat) {
  const auto queue =
      read_queue(answer(0, own_names({"11|a", "99|gone"}) +
                               "hbnow|1000000\n"
                               "hbpart|main*|6/2/0/8|n[1-2]\n"
                               "hbpart|main*|0/0/4/4|n3\n"
                               "hbpart|long|4/0/0/4|n2\n"
                               "hbrun|11|ann|main|4|1:00:00|12:34|n1|999000\n"
                               "hbrun|12|bob|long|2|2-00:00:00|1-02:00:00|n2|2026-11-26T10:00:00\n"
                               "hbwait|13_4|ann|main,long|8|UNLIMITED|999990|Priority\n"
                               "hbwait|14|cat|main|1|30:00|N/A|JobHeldUser\n"
                               "hbwait|17|cat|main|1|30:00|999000|QOSMaxJobsPerUserLimit\n"
                               "hbwait|15|cat|main|1|30:00|1000007|Dependency\n"
                               "hbwait|16|cat|main|1|30:00|1|Nodes required for job are DOWN, "
                               "DRAINED or reserved for jobs in "
                               "higher priority partitions\n"
                               "hbend\n"));
  ASSERT_TRUE(queue) << queue.error().text;
  ASSERT_EQ(queue->partitions.size(), 2U);
  const WatchedPartition& main = queue->partitions[0];
  EXPECT_TRUE(main.is_default);
  EXPECT_EQ(main.name, "main");
  EXPECT_EQ(main.cpus, 8) << "without those that are down";
  EXPECT_EQ(main.busy_cpus, 6);
  EXPECT_THAT(main.nodes, ElementsAre("n1", "n2", "n3"));
  EXPECT_FALSE(queue->partitions[1].is_default);
  ASSERT_EQ(queue->jobs.size(), 7U);
  const WatchedJob& first = queue->jobs[0];
  EXPECT_TRUE(first.runs);
  EXPECT_EQ(first.name, "a");
  EXPECT_EQ(queue->jobs[1].name, "") << "another user's";
  EXPECT_EQ(first.user, "ann");
  EXPECT_EQ(first.cpus, 4);
  EXPECT_EQ(first.limit, 1h);
  EXPECT_EQ(first.elapsed, 12min + 34s);
  EXPECT_THAT(first.nodes, ElementsAre("n1"));
  EXPECT_EQ(first.age, 1000s);
  EXPECT_EQ(queue->jobs[1].elapsed, 26h);
  EXPECT_LT(queue->jobs[1].age, 0s) << "a version that tells no seconds";
  const WatchedJob& next = queue->jobs[2];
  EXPECT_FALSE(next.runs);
  EXPECT_TRUE(next.may_start);
  EXPECT_EQ(next.number, "13_4");
  EXPECT_THAT(next.partitions, ElementsAre("main", "long"));
  EXPECT_GT(next.limit, 24h * 300);
  EXPECT_EQ(next.age, 10s);
  EXPECT_FALSE(queue->jobs[3].may_start);
  EXPECT_FALSE(queue->jobs[3].at_limit);
  EXPECT_FALSE(queue->jobs[4].may_start);
  EXPECT_TRUE(queue->jobs[4].at_limit);
  EXPECT_FALSE(queue->jobs[5].may_start);
  EXPECT_EQ(queue->jobs[5].age, 0s) << "clocks differ";
  EXPECT_TRUE(queue->jobs[6].may_start);
}

TEST(SlurmQueue, HalfAnAnswerIsNone) {
  const std::string own = own_names({});
  EXPECT_FALSE(read_queue(answer(0, "hbpart|main*|6/2/0/8|n[1-2]\nhbend\n")));
  EXPECT_FALSE(read_queue(answer(0, own + "hbpart|main*|6/2/0/8|n[1-2]\n")));
  EXPECT_FALSE(read_queue(answer(0, own + "hbrun|11|ann\nhbend\n")));
  EXPECT_FALSE(read_queue(answer(1, "", "slurm_load_jobs error: no contact")));
  EXPECT_FALSE(
      read_queue(answer(0, own + "hbpart|main*|6/2/0/8|n1\nhbfailed\nhbend\n", "no contact")))
      << "what waits could not be listed";
  EXPECT_TRUE(read_queue(answer(0, "a banner\n" + own + "hbend\n")));
}

// As SLURM 22.05 prints them, shortened.
TEST(SlurmQueue, ShowsHowFullNodesAre) {
  const auto slurm = make();
  const auto* watcher = dynamic_cast<const RoomWatcher*>(slurm.get());
  ASSERT_NE(watcher, nullptr);
  const WatchedRoom room = watcher->read_room(answer(
      0, own_names({}) +
             "hbnow|1000000\n"
             "hbpart|main*|6/2/0/8|n[1-2]|up\n"
             "hbpart|old|0/0/4/4|n3|down\n"
             "hbnode|NodeName=n1 CPUAlloc=6 CPUEfctv=8 CPUTot=8 Gres=gpu:a100:2(S:0-1) "
             "GresUsed=gpu:a100:1(IDX:0) RealMemory=16000 AllocMem=14000 State=MIXED "
             "Partitions=main AllocTRES=cpu=6,mem=14000M Reason=see State=DOWN [root@now]\n"
             "hbnode|NodeName=n2 CPUAlloc=0 CPUTot=8 RealMemory=16000 AllocMem=0 State=IDLE+DRAIN\n"
             "hbnode|NodeName=n3 CPUAlloc=0 CPUTot=4 RealMemory=8000 AllocMem=0 State=DOWN*\n"
             "hbresv|ReservationName=r1 StartTime=1000060 EndTime=1000660 Nodes=n[1-2] NodeCnt=2\n"
             "hbroom|10 10_1 1 cpu=1,mem=2G,node=1,billing=1 gres:gpu:2\n"
             "hbroom|9 9 2 cpu=4,mem=1.50G,node=2,billing=1,gres/gpu=4,gres/gpu:a100=4 N/A\n"
             "hbroom|8 8 1 cpu=1,mem=500M,node=1,billing=1 N/A\n"
             "hbend\n"));
  ASSERT_EQ(room.nodes.size(), 3U);
  EXPECT_EQ(room.nodes[0].name, "n1");
  EXPECT_FALSE(room.nodes[0].is_closed) << "a reason is no state";
  EXPECT_EQ(room.nodes[0].cpus, 8);
  EXPECT_EQ(room.nodes[0].busy_cpus, 6);
  EXPECT_EQ(room.nodes[0].memory, 16000.0 * (1 << 20));
  EXPECT_EQ(room.nodes[0].busy_memory, 14000.0 * (1 << 20));
  EXPECT_EQ(room.nodes[0].gpus.at("a100"), 2);
  EXPECT_EQ(room.nodes[0].busy_gpus.at("a100"), 1);
  EXPECT_TRUE(room.nodes[1].is_closed);
  EXPECT_TRUE(room.nodes[2].is_closed);
  EXPECT_EQ(room.closed_partitions, (std::map<std::string, std::string>{{"old", "down"}}));
  ASSERT_EQ(room.reservations.size(), 1U);
  EXPECT_EQ(room.reservations[0].starts_in, 60s);
  EXPECT_EQ(room.reservations[0].ends_in, 660s);
  EXPECT_THAT(room.reservations[0].nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(room.jobs.at("10_1").gpus.at(""), 2);
  EXPECT_EQ(room.jobs.at("9").memory, 1.5 * (1 << 30));
  EXPECT_EQ(room.jobs.at("9").gpus, (GpuCounts{{"a100", 4}}));
  EXPECT_TRUE(room.jobs.at("8").gpus.empty());
}

TEST(SlurmQueue, MemoryThatNobodyCountsIsNone) {
  const auto slurm = make();
  const WatchedRoom room = dynamic_cast<const RoomWatcher&>(*slurm).read_room(answer(
      0, own_names({}) + "hbnode|NodeName=n1 CPUAlloc=6 CPUTot=8 RealMemory=16000 AllocMem=0 "
                         "State=MIXED\nhbend\n"));
  EXPECT_EQ(room.nodes.at(0).memory, 0);
}

TEST(SlurmQueue, NodesWrittenOutAreBounded) {
  std::string text = own_names({});
  for (int i = 0; i < 200; ++i)
    text += "hbrun|" + std::to_string(i) + "|ann|main|4|1:00:00|12:34|n[1-65536]|999000\n";
  const auto queue = read_queue(answer(0, text + "hbend\n"));
  ASSERT_TRUE(queue) << queue.error().text;
  std::size_t nodes = 0;
  for (const WatchedJob& job : queue->jobs) nodes += job.nodes.size();
  EXPECT_LE(nodes, 1'000'200u);
}

TEST_F(SlurmShell, AQueueThatCannotBeListedIsNoEmptyOne) {
  scripted("sinfo", "echo 'hbpart|main*|0/8/0/8|n[1-2]'");
  scripted("squeue", R"(case "$*" in *--array*) echo no contact >&2; exit 1 ;; esac)");
  const auto slurm = make();
  const CommandLine command = dynamic_cast<const QueueWatcher&>(*slurm).watch_queue();
  EXPECT_FALSE(read_queue(run(command)));
  scripted("squeue", "true");
  EXPECT_TRUE(read_queue(run(command)));
}

// ---- what accounting keeps

Result<PastJobs> read_past(const CommandOutput& output) {
  const auto slurm = make();
  const auto* history = dynamic_cast<const QueueHistory*>(slurm.get());
  return history ? history->read_past(output) : Error{Error::Kind::Rejected, "it is none"};
}

TEST(SlurmHistory, TellsWhenEachWasSubmittedStartedAndEnded) {
  const auto told = read_past(answer(
      0,
      "COMPLETED|ann|main|4|01:00:00|1000|1060|1100|1500|billing=4,cpu=4,mem=4G,node=1\n"
      "RUNNING|bob|gpu,long|8|UNLIMITED|2000|2000|2100|Unknown|cpu=8,gres/gpu:a100=2,gres/gpu=2\n"
      "PENDING|cat|main|1|2-00:00:00|3000|Unknown|Unknown|Unknown|cpu=1,gres/gpu:v100=3\n"
      "CANCELLED by 0|cat|main|1|10:00|4000|4000|4500|4500|\n"
      "CANCELLED by 7|cat|main|1|10:00|4000|4000|None|4500|\n"
      "CANCELLED by 7|cat|main|1|10:00|4000|4000|4100|4500|\n"
      "COMPLETED|dan|main|-3|10:00|4000|4000|4100|4500|\n"
      "COMPLETED|dan|main|3|10:00|99999999999999999999|4000|4100|4500|\n"
      "a banner\n"
      "hbend\n"));
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_FALSE(told->is_cut);
  const std::vector<PastJob>* jobs = &told->jobs;
  ASSERT_EQ(jobs->size(), 6U);
  const PastJob& first = jobs->front();
  EXPECT_EQ(first.user, "ann");
  EXPECT_EQ(first.partition, "main");
  EXPECT_EQ(first.cpus, 4);
  EXPECT_EQ(first.gpus, 0);
  EXPECT_EQ(first.limit, 1h);
  EXPECT_EQ(first.submitted, 1000s);
  EXPECT_EQ(first.eligible, 1060s);
  EXPECT_EQ(first.started, 1100s);
  EXPECT_EQ(first.ended, 1500s);
  EXPECT_EQ(jobs->at(1).partition, "gpu");
  EXPECT_EQ(jobs->at(1).gpus, 2);
  EXPECT_GT(jobs->at(1).limit, 24h * 300);
  EXPECT_FALSE(jobs->at(1).ended);
  EXPECT_FALSE(jobs->at(2).started);
  EXPECT_EQ(jobs->at(2).eligible, 3000s);
  EXPECT_EQ(jobs->at(2).gpus, 3);
  EXPECT_FALSE(jobs->at(3).started) << "it waited when it was cancelled";
  EXPECT_EQ(jobs->at(3).ended, 4500s);
  EXPECT_FALSE(jobs->at(4).started);
  EXPECT_EQ(jobs->at(5).started, 4100s) << "it ran when it was cancelled";
}

TEST(SlurmHistory, ALongListIsKnownToBeCut) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "COMPLETED|ann|main|1|10:00|4000|4000|4100|4500|cpu=1\n";
  EXPECT_FALSE(read_past(answer(0, text + "hbend\n"))->is_cut);
  const auto cut =
      read_past(answer(0, text + "COMPLETED|bob|main|1|10:00|4000|4000|4100|4500|cpu=1\nhbend\n"));
  EXPECT_TRUE(cut->is_cut);
  EXPECT_EQ(cut->jobs.size(), 10'000U);
}

TEST(SlurmHistory, NoAccountingIsNoReasonToAskAgain) {
  EXPECT_EQ(read_past(answer(0, "hbnone\n")).error().kind, Error::Kind::Rejected);
  EXPECT_EQ(read_past(answer(0, "hbfailed 1\nhbend\n", "Slurm accounting storage is disabled\n"))
                .error()
                .kind,
            Error::Kind::Rejected);
  EXPECT_EQ(read_past(answer(0, "hbfailed 1\nhbend\n", "Connection refused")).error().kind,
            Error::Kind::Transient);
  EXPECT_THAT(read_past(answer(0, "hbfailed 124\nhbend\n")).error().text,
              testing::HasSubstr("sacct gave no answer within 50 s"));
}

TEST_F(SlurmShell, AsksAccountingForMomentsInItsOwnWords) {
  scripted(
      "sacct",
      R"(echo "COMPLETED|$SLURM_TIME_FORMAT|$(printf '%s ' "$@" | tr -d '|')|1|1:00|5|5|6|7|")");
  const auto slurm = make();
  const auto& history = dynamic_cast<const QueueHistory&>(*slurm);
  const auto told = read_past(run(history.list_past(86400s * 3, 86400s * 4)));
  ASSERT_TRUE(told) << told.error().text;
  ASSERT_EQ(told->jobs.size(), 1U);
  EXPECT_EQ(told->jobs.front().user, "%s");
  EXPECT_THAT(told->jobs.front().partition, testing::HasSubstr("--starttime=1970-01-0"));
  scripted("sacct", "echo no contact >&2; exit 1");
  EXPECT_FALSE(read_past(run(history.list_past(0s, 5s))));
}

TEST(SlurmConfiguration, IsEmpty) {
  EXPECT_TRUE(make("{}"));
  EXPECT_THROW(make("partition: short"), std::runtime_error);
}

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(Slurm, SchedulerContract,
                         testing::Values(SchedulerCase{.make = [] { return make(); }}));
}  // namespace contract
}  // namespace hpcbatch
