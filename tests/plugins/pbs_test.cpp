// The dialects of PBS: against what a real OpenPBS 23.06 printed (openpbs/ beside this file:
// `qstat -x -f` in ended.txt, `qstat -f NUMBERS` in mixed.txt), and as sh runs them with scripted
// commands.
#include "pbs_commands.hpp"

#include "hpcbatch/choices.hpp"
#include "hpcbatch/contract/scheduler.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

class PbsSubmit : public PbsShell {
 protected:
  void SetUp() override {
    PbsShell::SetUp();
    scripted("qsub", "printf '<%s>' \"$@\"");
  }
  std::string submitted(const AllocationRequest& r, const std::string& config = "") const {
    const auto command = make(config)->submit(r, "/w/script");
    const auto output =
        sh("exec env -i PATH=\"$PATH\" HOME=/h " + environment_ + " " + shell_quoted(command.argv));
    EXPECT_EQ(output.exit_code, 0) << output.standard_error;
    return output.standard_output;
  }
  static AllocationRequest large() {
    auto r = request();
    r.nodes = 2;
    r.memory = (std::uint64_t{2} << 30) + 1;
    r.gpus = {{"a100", 2}};
    r.walltime = 90061s;
    r.partition = "gpu";
    r.options = {"-A", "abc", "-W", "umask=027"};
    return r;
  }
  std::string environment_;
};

constexpr const char* kHandedOn = "<-v><HPCBATCH_HANDED_ON,PATH>";
constexpr const char* kCommon =
    "<-N><hbQ7x><-j><oe><-o></w/logs/hbQ7x.out><-r><n><-V><-q><gpu><-A><abc><-W><umask=027>";

TEST_F(PbsSubmit, ToOpenPbsAsChunksThatAreScattered) {
  is_openpbs();
  const std::string resources =
      std::string(
          "<-f><-l><select=2:ncpus=4:ngpus=2:mem=2049mb><-l><place=scatter><-l><walltime="
          "25:01:01>") +
      kHandedOn;
  EXPECT_EQ(submitted(large()), resources + kCommon + "<--></bin/sh></w/script>");
}

TEST_F(PbsSubmit, ToTorqueAsNodesWithTheMemoryOfAllOfThem) {
  is_torque();
  EXPECT_EQ(submitted(large()),
            std::string("<-S></bin/sh><-l><nodes=2:ppn=4:gpus=2,mem=4098mb,walltime=25:01:01>") +
                kCommon + "</w/script>");
}

TEST_F(PbsSubmit, ToSlurmAsItsScriptsUnderstandIt) {
  is_slurm();
  EXPECT_EQ(submitted(large()),
            std::string("<-l><nodes=2:ppn=1:gpus=2,mppdepth=4,mem=2049mb,walltime=25:01:01>") +
                kCommon + "</w/script>");
}

TEST_F(PbsSubmit, AConfiguredDialectIsNotAskedFor) {
  EXPECT_THAT(submitted(large(), "dialect: openpbs"), HasSubstr("<select=2:"));
  EXPECT_THAT(submitted(large(), "dialect: torque"), HasSubstr("<nodes=2:ppn=4:"));
  EXPECT_THAT(submitted(large(), "dialect: slurm-torque"), HasSubstr("<nodes=2:ppn=1:"));
}

TEST_F(PbsSubmit, AsksForNothingThatTheShapeDoesNotSay) {
  is_openpbs();
  auto r = request();
  r.walltime = 0s;
  r.cpus = 0.5;
  EXPECT_EQ(submitted(r),
            std::string("<-f><-l><select=1:ncpus=1>") + kHandedOn +
                "<-N><hbQ7x><-j><oe><-o></w/logs/hbQ7x.out><-r><n><-V><--></bin/sh></w/script>");
}

TEST_F(PbsSubmit, NamesToOpenPbsEachVariableThatTheTransportHas) {
  is_openpbs();
  // As the real one does it: a name alone stands for its value here, `-V` for nothing.
  scripted("qsub", R"sh(
last=
while [ $# -gt 0 ]; do [ "$1" != -v ] || last=$2; shift; done
IFS=,
for name in $last; do
  case $name in *=*) echo "$name" ;; *) eval "printf '%s=<%s>\n' $name \"\${$name}\"" ;; esac
done)sh");
  environment_ = R"(TOKEN='a,b "c" \d' LANG=C.UTF-8 TWO='x
export place=y' BASH_FUNC_x%%='() { :; }')";
  auto r = request();
  const std::string path = root_.string() + ":/usr/bin:/bin";
  std::string said = submitted(r);
  EXPECT_THAT(said, HasSubstr("PATH=<" + path + ">\n"));
  EXPECT_THAT(said, HasSubstr("TOKEN=<a,b \"c\" \\d>\n"));
  EXPECT_THAT(said, HasSubstr("LANG=<C.UTF-8>\n"));
  EXPECT_THAT(said, Not(HasSubstr("HOME=")));
  EXPECT_THAT(said, Not(HasSubstr("TWO="))) << "of several lines, which a list of PBS cannot have";
  r.options = {"-v", "OWN=1", "-A", "abc"};
  said = submitted(r);
  EXPECT_THAT(said, HasSubstr("TOKEN="));
  EXPECT_THAT(said, HasSubstr("OWN=1\n"));
  r.options = {"-vOWN=1"};
  EXPECT_THAT(submitted(r), HasSubstr("OWN=1\n"));
}

TEST_F(PbsSubmit, AsksForKindsOfGpusAndPlacesInTheAdministratorsWords) {
  is_openpbs();
  EXPECT_THAT(submitted(large(), "{place: 'scatter:excl', gpu_kinds: {a100: gpu_model=A100}}"),
              HasSubstr("<select=2:ncpus=4:ngpus=2:gpu_model=A100:mem=2049mb><-l><place=scatter:"
                        "excl>"));
  EXPECT_THAT(submitted(large(), "gpu_kinds: {a100: gpu_a100}"),
              HasSubstr("<select=2:ncpus=4:gpu_a100=2:mem=2049mb>"));
  EXPECT_THAT(submitted(large(), "{dialect: torque, gpu_kinds: {a100: ampere}}"),
              HasSubstr("<nodes=2:ppn=4:gpus=2:ampere,"));
}

TEST_F(PbsSubmit, WithoutACommandThatSaysWhatItIsNothingIsSubmitted) {
  scripted("qstat", "echo 'fork: Resource temporarily unavailable' >&2; exit 1");
  auto output = run(make()->submit(request(), "/w/script"));
  EXPECT_THAT(output.standard_output, IsEmpty());
  auto refused = std::get<SubmitRefused>(make()->read_submit(output));
  EXPECT_EQ(refused.refusal, Refusal::Transient);
  EXPECT_THAT(refused.text, HasSubstr("cannot tell which PBS this is"));
  scripted("qstat", "echo 'sh: 1: qstat: not found' >&2; exit 127");
  output = run(make()->submit(request(), "/w/script"));
  refused = std::get<SubmitRefused>(make()->read_submit(output));
  EXPECT_EQ(refused.refusal, Refusal::Permanent);
}

TEST(PbsChoices, WritesTheAccountThatTasksChoose) {
  const auto pbs = make();
  const auto* choices = dynamic_cast<const Choices*>(pbs.get());
  ASSERT_TRUE(choices);
  EXPECT_THAT(choices->choice_keys(), ElementsAre("account"));
  EXPECT_THAT(choices->options_for({"account=lab"}), ElementsAre("-A", "lab"));
}

TEST(PbsAnswer, ANumberIsSuccess) {
  for (const char* number : {"6.vm", "4711", "123.pbs-1.site.org", "0.vm:15051"}) {
    EXPECT_EQ(std::get<std::string>(
                  make()->read_submit(answer(0, "Welcome!\n" + std::string(number) + "\n"))),
              number);
  }
}

TEST(PbsAnswer, ANumberOfAQsubThatFailedBehindItIsUnclear) {
  for (const int code : {1, 127}) {
    const auto read = make()->read_submit(answer(code, "6.vm\n", "qsub: accounting is away"));
    EXPECT_EQ(std::get<SubmitRefused>(read).refusal, Refusal::Unclear);
  }
}

TEST(PbsAnswer, AClientThatTriedTwiceMayHaveBeenHeardTheFirstTime) {
  const auto read =
      make()->read_submit(answer(1, "", "qsub: End of File\nqsub: cannot connect to server pbs\n"));
  EXPECT_EQ(std::get<SubmitRefused>(read).refusal, Refusal::Unclear);
}

TEST(PbsAnswer, TwoNumbersOrNoneAreUnclear) {
  for (const char* out : {"2026\n6.vm\n", "", "Submitted 6.vm\n", "6.\n", ".vm\n"}) {
    const auto read = make()->read_submit(answer(0, out));
    ASSERT_TRUE(std::holds_alternative<SubmitRefused>(read)) << out;
    EXPECT_EQ(std::get<SubmitRefused>(read).refusal, Refusal::Unclear) << out;
  }
}

struct Refused {
  const char* name;
  int exit_code;
  const char* error;
  Refusal refusal;
};
std::ostream& operator<<(std::ostream& out, const Refused& r) {
  return out << r.name;
}

class PbsRefusal : public testing::TestWithParam<Refused> {};

TEST_P(PbsRefusal, IsClassified) {
  const auto read = make()->read_submit(
      answer(GetParam().exit_code, "", "qsub: " + std::string(GetParam().error) + "\n"));
  const auto* refused = std::get_if<SubmitRefused>(&read);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(static_cast<int>(refused->refusal), static_cast<int>(GetParam().refusal));
  EXPECT_EQ(refused->text, GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Recorded, PbsRefusal,
    testing::Values(
        Refused{"queue", 170, "Unknown queue", Refusal::Permanent},
        Refused{"resource", 187, "Unknown resource: gpus", Refusal::Permanent},
        Refused{"value", 166, "Illegal attribute or resource value Resource_List.walltime",
                Refusal::Permanent},
        Refused{"no_file", 1, "script file:: No such file or directory", Refusal::Transient}),
    [](const auto& p) { return p.param.name; });

INSTANTIATE_TEST_SUITE_P(
    FromTheManuals, PbsRefusal,
    testing::Values(
        Refused{"too_much", 188, "Job violates queue and/or server resource limits",
                Refusal::Permanent},
        Refused{"hook", 32, "Please say which project pays.", Refusal::Permanent},
        Refused{"queued_in_queue", 198, "Maximum number of jobs already in queue", Refusal::Limit},
        Refused{"by_code", 198, "Sorry", Refusal::Limit},
        Refused{"per_user", 38, "would exceed queue workq's per-user limit of jobs in 'Q' state",
                Refusal::Limit},
        Refused{"all_cpus", 39, "would exceed complex's limit on resource ncpus", Refusal::Limit},
        Refused{"disabled", 173, "Queue is not enabled", Refusal::Transient},
        Refused{"shutting_down", 212, "Sorry", Refusal::Transient},
        Refused{"no_server", 162, "cannot connect to server pbs (errno=110): Connection timed out",
                Refusal::Transient},
        Refused{"refused", 111, "Connection refused", Refusal::Transient},
        Refused{"no_submit_host", 15, "Access from host not allowed, or unknown host",
                Refusal::Permanent},
        Refused{"names_license", 187, "Unknown resource: matlab_license", Refusal::Permanent},
        Refused{"not_saved", 1, "Failed to save job/resv, refer server logs for details",
                Refusal::Unclear},
        Refused{"end_of_file", 1, "End of File", Refusal::Unclear},
        Refused{"time", 1, "Timeout", Refusal::Unclear},
        Refused{"protocol", 183, "Sorry", Refusal::Unclear},
        Refused{"killed", 143, "Sorry", Refusal::Unclear}),
    [](const auto& p) { return p.param.name; });

TEST(PbsAnswer, OfSlurmIsReadWithoutTheCommandThatItRepeats) {
  const auto read = make()->read_submit(
      answer(1,
             "There was an error running the Slurm sbatch command.\nThe command was:\n"
             "'/usr/bin/sbatch -N1 -n1 -J hbB -p nope --wckey=timeout /w/script 2>&1'\n"
             "and the output was:\n'sbatch: error: invalid partition specified: nope\n"
             " sbatch: error: Batch job submission failed: Invalid partition name specified\n"
             "'\n"));
  const auto& refused = std::get<SubmitRefused>(read);
  EXPECT_EQ(refused.text,
            "invalid partition specified: nope; Batch job submission failed: "
            "Invalid partition name specified");
  EXPECT_EQ(refused.refusal, Refusal::Permanent);
}

// ---- the script

class PbsScript : public PbsShell {
 protected:
  std::string run_script(AllocationRequest r, const std::string& environment = "") const {
    r.directory = root_.string();
    file("script", make()->script(r));
    const auto output = sh(environment + " sh script 2>&1; echo \"exit $?\"");
    return output.standard_output;
  }
  static AllocationRequest of_three() {
    auto r = request();
    r.nodes = 3;
    r.setup = {"GREETING='good day'; export GREETING"};
    r.pilot = {"sh", "-c", "echo \"$GREETING, rank $HPCBATCH_NODE_RANK in ${PWD##*/}: $1\"", "sh",
               "it's \"here\" $HOME"};
    r.pilot.at(2) += "; exit $((HPCBATCH_NODE_RANK + 3))";
    return r;
  }
};

TEST_F(PbsScript, OnOneNodeThePilotTakesThePlaceOfTheShell) {
  auto r = of_three();
  r.nodes = 1;
  EXPECT_EQ(run_script(r),
            "good day, rank 0 in " + root_.filename().string() + ": it's \"here\" $HOME\nexit 3\n");
}

TEST_F(PbsScript, OnSeveralNodesEachHostGetsAPilotWithItsRankAndSetup) {
  // As the real one it starts with neither the environment nor the directory of its caller.
  scripted("pbsdsh",
           "slot=$2; shift 3\necho \"slot $slot\"\ncd /; exec env -i PATH=\"$PATH\" "
           "\"$@\"");
  file("nodes", "n1\nn1\nn2\nn2\nn1\nn3\n");
  std::istringstream lines(run_script(of_three(), "PBS_NODEFILE=nodes"));
  std::vector<std::string> said;
  for (std::string line; std::getline(lines, line);) said.push_back(line);
  ASSERT_EQ(said.size(), 7u);
  EXPECT_THAT(said.back(), testing::AnyOf("exit 3", "exit 4", "exit 5"));
  std::sort(said.begin(), said.end());
  const std::string rest = " in " + root_.filename().string() + ": it's \"here\" $HOME";
  EXPECT_THAT(said, ElementsAre(testing::_, "good day, rank 0" + rest, "good day, rank 1" + rest,
                                "good day, rank 2" + rest, "slot 0", "slot 2", "slot 5"));
}

TEST_F(PbsScript, OnSeveralNodesPilotsGetWhatTheBatchJobWasGiven) {
  auto r = of_three();
  r.nodes = 1;
  r.pilot = {"sh", "-c", "echo \"<$GREETING><$TOKEN><$FOREIGN>\""};
  scripted("pbsdsh", "shift 3\ncd /; exec env -i PATH=/usr/bin:/bin \"$@\"");
  file("nodes", "n1\n");
  const std::string given =
      "PBS_NODEFILE=nodes FOREIGN=no TOKEN='it'\\''s \"$5\"' GREETING=none "
      "HPCBATCH_HANDED_ON='TOKEN GREETING'";
  for (const std::uint32_t nodes : {1u, 2u}) {
    r.nodes = nodes;
    const std::string foreign = nodes == 1 ? "<no>" : "<>";
    EXPECT_EQ(run_script(r, given), "<good day><it's \"$5\">" + foreign + "\nexit 0\n");
  }
  for (const auto& left : std::filesystem::directory_iterator(root_))
    EXPECT_NE(left.path().extension(), ".env");
}

TEST_F(PbsScript, PbsdshIsFoundByTheConfigurationOfPbs) {
  std::filesystem::create_directories(root_ / "pbs/bin");
  scripted("pbs/bin/pbsdsh", "shift 3; exec \"$@\"");
  file("pbs.conf", "PBS_EXEC=" + path("pbs") + "\n");
  file("nodes", "n1\n");
  auto r = of_three();
  EXPECT_THAT(run_script(r, "PBS_NODEFILE=nodes PBS_CONF_FILE=pbs.conf"),
              HasSubstr("good day, rank 0"));
  const std::string said = run_script(r, "PBS_NODEFILE=nodes PBS_CONF_FILE=/nowhere");
  EXPECT_THAT(said, HasSubstr("there is no pbsdsh in "));
  EXPECT_THAT(said, HasSubstr("\nexit 127\n"));
}

TEST_F(PbsScript, OnSeveralNodesOfSlurmItsSrunStartsOneEach) {
  scripted("srun",
           "printf '<%s>' \"$2\" \"$3\" \"$4\" \"$6\"; echo\n"
           "while [ \"$1\" != /bin/sh ]; do shift; done\n"
           "HPCBATCH_NODE_RANK=0; export HPCBATCH_NODE_RANK; exec \"$@\"");
  EXPECT_EQ(run_script(of_three(), "SLURM_JOB_ID=5"),
            "<--propagate=NONE><--nodes=3><--ntasks=3><--cpus-per-task=4>\ngood day, rank 0 in " +
                root_.filename().string() + ": it's \"here\" $HOME\nexit 3\n");
}

TEST_F(PbsScript, WhenItIsToldToEndItWaitsForItsPilots) {
  // The pilot tells the whole batch job to end and says goodbye once the shell has had its signal.
  scripted("pbsdsh", "trap 'echo goodbye; exit 7' TERM\nkill -TERM \"$PPID\"\nkill -TERM $$");
  file("nodes", "n1\n");
  EXPECT_EQ(run_script(of_three(), "PBS_NODEFILE=nodes"), "goodbye\nexit 7\n");
}

TEST_F(PbsScript, WithoutItsDirectoryNoPilotStarts) {
  auto r = of_three();
  r.nodes = 1;
  r.directory = "/nowhere/at all";
  file("script", make()->script(r));
  const auto output = sh("sh script; echo \"exit $?\"");
  EXPECT_THAT(output.standard_output, Not(HasSubstr("good day")));
  EXPECT_THAT(output.standard_error, HasSubstr("/nowhere/at all"));
}

TEST_F(PbsScript, ModulesAreDefinedOnlyWhereSomebodyMayWantThem) {
  auto r = request();
  EXPECT_THAT(make()->script(r), Not(HasSubstr("/etc/profile")));
  r.setup = {"module load python"};
  EXPECT_THAT(make()->script(r), HasSubstr("/etc/profile\nmodule load python\n"));
}

// ---- polling

BatchJob only(const std::string& attributes) {
  const auto jobs = make()->read_poll(
      "hb", answer(0, "Job Id: 5.vm\n    Job_Name = hbQ\n    Job_Owner = alice@vm\n" + attributes +
                          "\nhbend alice\n"));
  EXPECT_TRUE(jobs) << jobs.error().text;
  EXPECT_EQ(jobs ? jobs->size() : 0, 1u) << attributes;
  return jobs && !jobs->empty() ? jobs->front() : BatchJob{};
}

const BatchJob& named(const std::vector<BatchJob>& jobs, const std::string& name) {
  static const BatchJob kNone;
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&](const BatchJob& job) { return job.name == name; });
  EXPECT_NE(found, jobs.end()) << name;
  return found == jobs.end() ? kNone : *found;
}

TEST(PbsPoll, ReadsHowBatchJobsOfOpenPbsEnded) {
  const auto jobs = make()->read_poll("hb-", answer(0, recorded("ended.txt") + "\nhbend alice\n"));
  ASSERT_TRUE(jobs) << jobs.error().text;
  for (const BatchJob& job : *jobs) EXPECT_EQ(job.state, BatchState::Ended) << job.name;
  const std::map<std::string, EndCause> causes{
      {"hb-ok", EndCause::Completed},     {"hb-fail", EndCause::Failed},
      {"hb-wall", EndCause::Timeout},     {"hb-held", EndCause::Cancelled},
      {"hb-toobig", EndCause::Cancelled}, {"hb-del", EndCause::Cancelled},
      {"hb-dep", EndCause::Cancelled}};
  for (const auto& [name, cause] : causes)
    EXPECT_EQ(static_cast<int>(named(*jobs, name).cause), static_cast<int>(cause)) << name;
  EXPECT_EQ(named(*jobs, "hb-del").number, "11.vm");
  EXPECT_EQ(named(*jobs, "hb-del").reason,
            "Job run at Sat Nov 21 at 08:07 on (vm:ncpus=1) and terminated by alice@vm");
  EXPECT_THAT(named(*jobs, "hb-ok").nodes, ElementsAre("vm"));
}

TEST(PbsPoll, ReadsBatchJobsOfOpenPbsThatLive) {
  const auto jobs = make()->read_poll("hb-", answer(0, recorded("mixed.txt") + "\nhbend alice\n"));
  ASSERT_TRUE(jobs) << jobs.error().text;
  EXPECT_EQ(named(*jobs, "hb-ok").state, BatchState::Running);
  EXPECT_EQ(named(*jobs, "hb-held").state, BatchState::Held);
  EXPECT_EQ(named(*jobs, "hb-toobig").state, BatchState::NeverStarts);
  EXPECT_EQ(named(*jobs, "hb-toobig").reason,
            "Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)");
}

TEST(PbsPoll, NamesOfOthersAndOtherNamesAreNotOurs) {
  const auto jobs = make()->read_poll(
      "hbQ", answer(0,
                    "Job Id: 1.vm\n    Job_Name = hbQ1\n    Job_Owner = bob@vm\n"
                    "    job_state = R\n\n"
                    "Job Id: 2.vm\n    Job_Name = 007\n    Job_Owner = alice@vm\n"
                    "    job_state = R\n    Variable_List = A=\x01\xff\",\n\tB=\\q\n"
                    "Job_Name = hbQ2\njob_state = F\n\tJob_Name = hbQ3\n"
                    "    Job_Name = hbQ4\n\n"
                    "Job Id: 3.vm\n    Job_Name = hbQ5\n    Job_Owner = alice@vm\n"
                    "    job_state = Q\n\nhbend alice\n"));
  ASSERT_TRUE(jobs) << jobs.error().text;
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().name, "hbQ5");
}

TEST(PbsPoll, HalfAnAnswerConcludesNothing) {
  const std::string job = "Job Id: 1.vm\n    Job_Name = hbQ1\n    job_state = R\n";
  EXPECT_TRUE(make()->read_poll("hb", answer(0, job + "\nhbend alice\n")));
  EXPECT_FALSE(make()->read_poll("hb", answer(0, job)));
  EXPECT_FALSE(make()->read_poll("hb", answer(0, "hbend alice\n" + job)));
  EXPECT_FALSE(
      make()->read_poll("hb", answer(0, "Job Id: 1.vm\n    Job_Name = hbQ1\n\nhbend a\n")));
  EXPECT_FALSE(make()->read_poll("hb", answer(0, "")));
}

TEST(PbsPoll, WhatStatesMean) {
  const std::map<std::string, BatchState> states{
      {"Q", BatchState::Queued},    {"W", BatchState::Queued},  {"T", BatchState::Queued},
      {"H", BatchState::Held},      {"R", BatchState::Running}, {"E", BatchState::Running},
      {"B", BatchState::Running},   {"?", BatchState::Running}, {"S", BatchState::Suspended},
      {"U", BatchState::Suspended}, {"F", BatchState::Ended},   {"C", BatchState::Ended},
      {"X", BatchState::Ended}};
  for (const auto& [letter, state] : states) {
    EXPECT_EQ(static_cast<int>(only("    job_state = " + letter + "\n").state),
              static_cast<int>(state))
        << letter;
  }
  const auto moved = make()->read_poll(
      "hb", answer(0, "Job Id: 1.vm\n    Job_Name = hbQ\n    job_state = M\n\nhbend alice\n"));
  // It lives on another server.
  ASSERT_TRUE(moved && moved->size() == 1);
  EXPECT_NE(moved->front().state, BatchState::Ended);
}

TEST(PbsPoll, WhatTheCommentOfAQueuedOneMeans) {
  const std::map<std::string, BatchState> comments{
      {"Not Running: Insufficient amount of resource: ncpus", BatchState::Queued},
      {"Not Running: Job would conflict with reservation or top job", BatchState::Queued},
      {"Not Running: User has reached server running job limit.", BatchState::LimitReached},
      {"Not Running: would exceed queue workq's per-user limit", BatchState::LimitReached},
      {"Not Running: Queue not started.", BatchState::Outage},
      {"Not Running: Node is in an ineligible state: down", BatchState::Outage},
      {"Can Never Run: Insufficient amount of resource: ncpus (R: 1 A: 0 T: 0)",
       BatchState::Outage},
      {"Can Never Run: Insufficient amount of resource: mem (R: 1gb A: 0kb T: 0kb)",
       BatchState::Outage},
      {"Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)",
       BatchState::NeverStarts},
      {"Can Never Run: no such node", BatchState::NeverStarts}};
  for (const auto& [comment, state] : comments) {
    const auto job = only("    job_state = Q\n    comment = " + comment + "\n");
    EXPECT_EQ(static_cast<int>(job.state), static_cast<int>(state)) << comment;
    EXPECT_EQ(job.reason, comment);
  }
}

TEST(PbsPoll, WhatExitCodesMean) {
  const std::string ran = "    job_state = F\n    server = vm\n    exec_host = vm/0\n";
  const std::map<std::string, EndCause> codes{{"    Exit_status = 0", EndCause::Completed},
                                              {"    Exit_status = 1", EndCause::Failed},
                                              {"    Exit_status = 271", EndCause::Cancelled},
                                              {"    Exit_status = 143", EndCause::Cancelled},
                                              {"    Exit_status = 265", EndCause::Failed},
                                              {"    Exit_status = -29", EndCause::Timeout},
                                              {"    Exit_status = -27", EndCause::OutOfMemory},
                                              {"    Exit_status = -26", EndCause::OutOfMemory},
                                              {"    Exit_status = -28", EndCause::Failed},
                                              {"    Exit_status = -1", EndCause::LaunchFailed},
                                              {"    Exit_status = -3", EndCause::LaunchFailed},
                                              {"    Exit_status = -4", EndCause::NodeFailed},
                                              {"    Exit_status = -20", EndCause::NodeFailed},
                                              {"    Exit_status = -31", EndCause::OutOfMemory},
                                              {"    Exit_status = -32", EndCause::NodeFailed},
                                              {"    Exit_status = -11", EndCause::NodeFailed},
                                              {"    exit_status = -11", EndCause::Timeout},
                                              {"    exit_status = -10", EndCause::OutOfMemory},
                                              {"    exit_status = 271", EndCause::Cancelled},
                                              {"    interactive = True", EndCause::None}};
  for (const auto& [line, cause] : codes) {
    EXPECT_EQ(static_cast<int>(only(ran + line).cause), static_cast<int>(cause)) << line;
  }
  const std::string full =
      "    Resource_List.walltime = 00:01:00\n    resources_used.walltime = 00:01:04\n";
  EXPECT_EQ(only(ran + full + "    exit_status = 271\n").cause, EndCause::Timeout);
  EXPECT_EQ(only(ran + full + "    substate = 91\n    Exit_status = 0\n").cause,
            EndCause::Cancelled);
  EXPECT_EQ(only("    job_state = C\n    server = vm\n").cause, EndCause::Cancelled);
  EXPECT_EQ(only("    job_state = C\n").cause, EndCause::None) << "as SLURM's qstat says it";
}

TEST(PbsPoll, NodesAndTimeLeft) {
  const auto job = only(
      "    resources_used.walltime = 00:10:30\n    job_state = R\n"
      "    exec_host = n1/0*4+n1/1*4+n22/0\n\t*2+n3/0-3\n    Resource_List.walltime = 01:00:00\n");
  EXPECT_THAT(job.nodes, ElementsAre("n1", "n22", "n3"));
  EXPECT_EQ(job.time_left, 49min + 30s);
  EXPECT_EQ(only("    job_state = R\n    Resource_List.walltime = 01:00:00\n").time_left,
            std::nullopt);
}

class PbsPollShell : public PbsShell {
 protected:
  std::vector<BatchJob> polled(const std::vector<std::string>& names) const {
    const auto jobs = make()->read_poll("hb", run(make()->poll("hb", names)));
    EXPECT_TRUE(jobs) << jobs.error().text;
    return jobs ? *jobs : std::vector<BatchJob>{};
  }
  /// A server that knows batch jobs 1 (hb1, lives), 2 (hb2, has ended).
  void server() const {
    is_openpbs();
    file("qstat.more", R"sh(
history=; [ "$1" != -x ] || { history=1; shift; }
[ -z "$history" ] || [ ! -e no_history ] || { echo 'no job history' >&2; exit 0; }
[ "$1" = -f ] && [ $# -gt 1 ] || { echo "qstat: everybody's are asked for: $*" >&2; exit 1; }
shift; code=0
for id; do
  case $id in
  1) state=R ;;
  2) state=F; [ "$history" ] || { echo 'qstat: 2 Job has finished' >&2; exit 35; } ;;
  8) echo 'qstat: cannot connect to server' >&2; code=162; continue ;;
  *) echo "qstat: Unknown Job Id $id" >&2; code=153; continue ;;
  esac
  printf 'Job Id: %s\n    Job_Name = hb%s\n    Job_Owner = alice@vm\n' $id $id
  printf '    job_state = %s\n    server = vm\n    Exit_status = 0\n\n' $state
done
exit $code
)sh");
    scripted("qselect",
             "case $* in '-u alice') cat live ;; *-x*-N\\ hb2) [ -e no_history ] || "
             "echo 2 ;; *-x*) ;; *) exit 1 ;; esac");
  }
};

TEST_F(PbsPollShell, OpenPbsIsAskedForOursAndForNamesThatNoLongerLive) {
  server();
  file("live", "1\n");
  const auto jobs = polled({"hb1", "hb2", "hb3"});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(named(jobs, "hb1").state, BatchState::Running);
  EXPECT_EQ(named(jobs, "hb2").state, BatchState::Ended);
}

TEST_F(PbsPollShell, ABatchJobThatEndsBetweenTheQuestionsHidesNoOther) {
  server();
  file("live", "2\n9\n1\n");
  const auto jobs = polled({"hb1", "hb2"});
  EXPECT_EQ(jobs.size(), 2u);
}

TEST_F(PbsPollShell, WithoutHistoryTheLivingAreListed) {
  server();
  file("no_history", "");
  file("live", "9\n1\n");
  EXPECT_EQ(polled({"hb1", "hb2"}).size(), 1u);
}

TEST_F(PbsPollShell, ANumberThatIsNeitherListedNorUnknownMakesTheAnswerUseless) {
  server();
  file("live", "1\n8\n9\n");
  EXPECT_FALSE(make()->read_poll("hb", run(make()->poll("hb", {"hb1"}))));
}

TEST_F(PbsPollShell, AListThatASignalCutIsUseless) {
  server();
  file("live", "1\n");
  file("qstat.more",
       "printf 'Job Id: 1\\n    Job_Name = hb1\\n    job_state = F\\n'; kill -KILL $$");
  EXPECT_FALSE(make()->read_poll("hb", run(make()->poll("hb", {"hb1"}))));
}

TEST_F(PbsPollShell, WithoutABatchJobOpenPbsIsNotAskedForEverybodys) {
  server();
  file("live", "");
  EXPECT_THAT(polled({"hb7"}), IsEmpty());
}

TEST_F(PbsPollShell, TorqueAndSlurmAreAskedForOursByNumber) {
  is_torque();
  file("qstat.more",
       "case $* in\n"
       "'-u alice') printf '\\nvm:\\n  Req\\nJob ID Username\\n--- ---\\n1.vm alice batch hb1 - - "
       "C -\\n"
       "12[].vm alice batch x - - R -\\n' ;;\n"
       "'-f 1 12[]') printf 'Job Id: 1.vm\\n    Job_Name = hb1\\n    job_state = C\\n    "
       "exit_status = 0\\n\\nJob Id: 12[].vm\\n    Job_Name = x\\n    job_state = R\\n' ;;\n"
       "*) exit 1 ;; esac");
  ASSERT_EQ(polled({"hb1"}).size(), 1u);
  is_slurm();
  scripted("squeue", "[ \"$*\" = '--me --all --noheader --states=all --format=%A' ] && cat own");
  file("own", "1\n");
  file("qstat.more",
       "[ \"$*\" = '-f 1' ] || exit 1\n"
       "printf 'Job Id:\\t1\\n\\tJob_Name = hb1\\n\\tJob_Owner = "
       "alice@x\\n\\tjob_state = R\\n'");
  ASSERT_EQ(polled({"hb1"}).size(), 1u);
  file("own", "");
  EXPECT_THAT(polled({"hb1"}), IsEmpty());
}

TEST_F(PbsPollShell, ARecordInsideOfAnotherIsNone) {
  is_openpbs();
  scripted("qselect", "case $* in '-u alice') echo 1; echo 2 ;; esac");
  file("qstat.more", R"sh(
shift 2
for id; do
  printf 'Job Id: %s\n    Job_Name = hb%s\n    Job_Owner = alice@vm\n    job_state = R\n' $id $id
  [ $id = 2 ] || printf '    Variable_List = A=\n\nJob Id: 2\n    Job_Name = hb2\n    Job_Owner = alice@vm\n    job_state = F\n    Exit_status = 0\n\nJob Id: 3\n    Job_Name = hb3\n    job_state = R\n'
  echo
done
)sh");
  const auto jobs = polled({"hb1", "hb2"});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(named(jobs, "hb1").state, BatchState::Running);
  EXPECT_EQ(named(jobs, "hb2").state, BatchState::Running);
}

TEST_F(PbsPollShell, AFailureIsOneOfThePoll) {
  server();
  for (const char* qselect : {"exit 186", "echo 1; exit 1"}) {
    scripted("qselect", qselect);
    EXPECT_FALSE(make()->read_poll("hb", run(make()->poll("hb", {}))));
  }
  is_torque();
  file("qstat.more", "echo 'cannot connect to server' >&2; exit 186");
  const auto jobs = make()->read_poll("hb", run(make()->poll("hb", {})));
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().text,
            "cannot list the batch jobs of PBS: exit 186: cannot connect to server");
}

// ---- cancelling

class PbsCancel : public PbsShell {};

TEST_F(PbsCancel, DeletesAllThatANameHas) {
  is_openpbs();
  scripted("qselect",
           "case $* in '-u alice -N hb1') echo 1.vm; echo 4.vm ;; *hb3) echo 3.vm ;; "
           "*hb4) echo 6.vm ;; esac");
  scripted("qdel",
           "printf '<%s>' \"$@\" >>deleted\ncase $1 in 1.vm) echo 'qdel: Unknown Job Id "
           "1.vm' >&2; exit 153 ;; 3.vm) echo 'qdel: Unauthorized' >&2; exit 159 ;; esac");
  const auto output = run(make()->cancel({"hb1", "hb2", "hb3", "hb4"}, {"99.vm", "", "", ""}));
  std::ifstream deleted(root_ / "deleted");
  std::string line;
  std::getline(deleted, line);
  EXPECT_EQ(line, "<1.vm><4.vm><3.vm><6.vm>");
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_EQ(output.standard_error, "qdel: Unauthorized\n");
}

TEST_F(PbsCancel, NamesThatNobodyKnowsAreNoError) {
  is_torque();
  scripted("qselect", "exit 0");
  scripted("qdel", "exit 1");
  EXPECT_EQ(run(make()->cancel({"hb1"}, {""})).exit_code, 0);
  scripted("qselect", "exit 186");
  EXPECT_EQ(run(make()->cancel({"hb1"}, {""})).exit_code, 1);
}

TEST_F(PbsCancel, OfSlurmAsksForTheNumbersOfOurOwn) {
  is_slurm();
  scripted("squeue",
           "[ \"$*\" = '--me --all --noheader --name=hb1 --format=%A' ] && echo 2 && echo 6");
  scripted("qdel", "printf '<%s>' \"$@\" >>deleted; exit 1");
  const auto output = run(make()->cancel({"hb1"}, {""}));
  EXPECT_EQ(output.exit_code, 0) << output.standard_error;
  std::ifstream deleted(root_ / "deleted");
  std::string line;
  std::getline(deleted, line);
  EXPECT_EQ(line, "<2><6>");
}

// ---- what the site offers

TEST(PbsProbe, JoinsQueuesAndTheirNodes) {
  // The same facts as recorded, in the long form.
  const std::string queues =
      "Queue: workq\n    queue_type = Execution\n    total_jobs = 6\n    resources_max.walltime = "
      "48:00:00\n    enabled = True\n\nQueue: special\n    queue_type = Execution\n\n";
  const std::string nodes =
      "vm\n     Mom = vm\n     ntype = PBS\n     pcpus = 2\n     resources_available.mem = "
      "24682416kb\n     resources_available.ncpus = 8\n     resources_available.ngpus = 4\n"
      "     resources_available.gpu_model = A100\n\n"
      "n2\n     queue = special\n     resources_available.ncpus = 64\n"
      "     resources_available.mem = 512gb\n     resources_available.ngpus = 1\n\n";
  const auto offers = make("gpu_kinds: {a100: gpu_model=A100}")
                          ->read_probe(answer(0, queues + "\nhbnodes\n" + nodes + "\nhbend\n"));
  ASSERT_TRUE(offers) << offers.error().text;
  ASSERT_EQ(offers->size(), 2u);
  const Offer& work = offers->front();
  EXPECT_EQ(work.partition, "workq");
  EXPECT_EQ(work.nodes, 1u);
  EXPECT_EQ(work.cpus, 8);
  EXPECT_EQ(work.memory, std::uint64_t{24682416} << 10);
  EXPECT_EQ(work.walltime, 48h);
  EXPECT_EQ(work.gpus, (std::map<std::string, std::uint32_t>{{"a100", 4}}));
  EXPECT_EQ(offers->at(1).nodes, 2u);
  EXPECT_EQ(offers->at(1).cpus, 64);
  EXPECT_EQ(offers->at(1).gpus, (std::map<std::string, std::uint32_t>{{"a100", 4}, {"gpu", 1}}));
}

TEST_F(PbsShell, APbsThatIsInNobodysPathIsFoundByItsConfiguration) {
  is_openpbs();
  scripted("qsub", "echo 7.vm");
  std::filesystem::create_directories(root_ / "pbs/bin");
  for (const char* program : {"qstat", "qsub", "qstat.more"})
    std::filesystem::rename(root_ / program, root_ / "pbs/bin" / program);
  file("pbs.conf", "PBS_SERVER=vm\nPBS_EXEC=" + path("pbs") + "\n");
  // Where no other PBS is in the path.
  std::filesystem::create_directories(root_ / "tools");
  for (const char* program : {"sh", "grep"})
    std::filesystem::create_symlink("/bin/" + std::string(program), root_ / "tools" / program);
  const auto command = make()->submit(request(), "/w/script");
  const auto output = sh("exec env PATH=" + path("tools") + " PBS_CONF_FILE=" + path("pbs.conf") +
                         " " + shell_quoted(command.argv));
  EXPECT_EQ(output.standard_output, "7.vm\n") << output.standard_error;
}

TEST_F(PbsShell, NodesThatMayNotBeAskedForLeaveTheQueues) {
  is_slurm();
  file("qstat.more", "[ \"$*\" = '-Q -f' ] || exit 1\nprintf 'Queue:\\tcpu\\n\\tstarted = yes\\n'");
  scripted("pbsnodes", "exit 1");
  auto offers = make()->read_probe(run(make()->probe()));
  ASSERT_TRUE(offers) << offers.error().text;
  ASSERT_EQ(offers->size(), 1u);
  EXPECT_EQ(offers->front().partition, "cpu");
  EXPECT_EQ(offers->front().nodes, 0u);
  scripted("pbsnodes",
           "printf 'n1\\n    np = 4\\n    properties = fast,ampere\\n    status = "
           "rectime=1,availmem=8000mb,arch=x\\n    gpus = 2\\n\\n'");
  offers = make("gpu_kinds: {a100: ampere}")->read_probe(run(make()->probe()));
  ASSERT_TRUE(offers) << offers.error().text;
  EXPECT_EQ(offers->front().cpus, 4);
  EXPECT_EQ(offers->front().memory, std::uint64_t{8000} << 20);
  EXPECT_EQ(offers->front().gpus, (std::map<std::string, std::uint32_t>{{"a100", 2}}));
}

TEST(PbsProbe, AnAnswerWithoutQueuesIsAnError) {
  EXPECT_FALSE(make()->read_probe(answer(0, "")));
  EXPECT_FALSE(make()->read_probe(answer(0, "\nhbnodes\nhbend\n")));
  EXPECT_FALSE(make()->read_probe(answer(186, "", "qstat: cannot connect to server")));
}

TEST(PbsConfiguration, IsReadStrictly) {
  EXPECT_TRUE(make("{}"));
  EXPECT_TRUE(make("{dialect: torque, place: pack, gpu_kinds: {}}"));
  const std::map<std::string, std::string> wrong{
      {"place: pack\ngpu: 1\n",
       "line 2: unknown key 'gpu'; known are: dialect, place, gpu_kinds; what qsub is to be given "
       "belongs under 'options' of the site"},
      {"dialect: sge\n",
       "line 1: unknown dialect 'sge'; known are: openpbs (PBS Pro too), torque, "
       "slurm-torque (SLURM's own qsub)"},
      {"place: 'free -l x'\n", "line 1: 'free -l x' cannot be the value of 'place'"},
      {"gpu_kinds: a100\n",
       "line 1: 'gpu_kinds' must be a map such as {a100: gpu_model=A100}, from a kind of GPU to "
       "the resource that asks for it"},
      {"gpu_kinds:\n  a100: [1]\n", "line 2: the value of 'a100' must be a text"},
      {"[1]\n", "line 1: the configuration must be a map"}};
  for (const auto& [text, message] : wrong) {
    try {
      make(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr(message)) << text;
    }
  }
}

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(Pbs, SchedulerContract,
                         testing::Values(SchedulerCase{.make = [] { return make(); }}));
}  // namespace contract
}  // namespace hpcbatch
