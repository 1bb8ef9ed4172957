// What SLURM and PBS say of their partitions, word for word, as a survey; and the entry that is
// proposed from it, read back.
#include "documents/configuration.hpp"
#include "documents/site_proposal.hpp"

#include "hpcbatch/contract/scheduler.hpp"
#include "hpcbatch/survey.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

CommandOutput answer(int exit_code, std::string out, std::string error = "") {
  return {.exit_code = exit_code,
          .timed_out = false,
          .standard_output = std::move(out),
          .standard_error = std::move(error)};
}

Result<Survey> read(const std::string& scheduler, const CommandOutput& output,
                    const std::string& config_yaml = "") {
  const auto made =
      contract::load<Scheduler>(PLUGINS "/schedulers/" + scheduler + ".so", config_yaml);
  const auto* surveyor = dynamic_cast<const Surveyor*>(made.get());
  if (!surveyor) throw std::runtime_error(scheduler + " knows of no survey");
  return surveyor->read_survey(output);
}

Site proposed(const std::string& scheduler, const Survey& survey) {
  Site site;
  site.name = "cluster";
  site.scheduler = scheduler;
  site.transport = "shared_fs";
  site.workspace = "/scratch/me";
  const SiteProposal proposal = propose_site(site, survey);
  return parse_configuration("sites:\n" + proposal.yaml, "proposal").sites.at(0);
}

std::vector<std::string> names(const Site& site) {
  std::vector<std::string> names;
  for (const Shape& shape : site.shapes) names.push_back(shape.name);
  return names;
}

// sinfo and scontrol of SLURM 22.05
const std::string kSinfo =
    "hb|cpu*|up|2|4|8000|1-00:00:00|(null)\n"
    "hb|gpu|up|1|4|8000|1-00:00:00|gpu:v100:2\n"
    "hb|gpu|up|1|4|8000|1-00:00:00|gpu:a100:1\n";
const std::string kPartitions =
    "PartitionName=cpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES "
    "QoS=N/A DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO "
    "MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-2] "
    "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE "
    "PreemptMode=OFF State=UP TotalCPUs=8 TotalNodes=2 SelectTypeParameters=NONE "
    "JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED "
    "TRES=cpu=8,mem=16000M,node=2,billing=8\n"
    "PartitionName=gpu AllowGroups=ALL QoS=gpus MaxCPUsPerNode=2 MaxMemPerNode=2000 State=UP\n";

TEST(SlurmSurvey, HasEachKindOfNode) {
  const auto survey = read("slurm", answer(0, kSinfo + kPartitions));
  ASSERT_TRUE(survey) << survey.error().text;
  ASSERT_EQ(survey->partitions.size(), 2u);
  const SurveyedPartition& cpu = survey->partitions[0];
  EXPECT_EQ(cpu.name, "cpu");
  EXPECT_TRUE(cpu.is_open);
  EXPECT_EQ(cpu.walltime, 24h);
  ASSERT_EQ(cpu.kinds.size(), 1u);
  EXPECT_EQ(cpu.kinds[0].nodes, 2u);
  EXPECT_EQ(cpu.kinds[0].cpus, 4);
  EXPECT_EQ(cpu.kinds[0].memory, std::uint64_t{8000} << 20);
  const SurveyedPartition& gpu = survey->partitions[1];
  ASSERT_EQ(gpu.kinds.size(), 2u);
  EXPECT_EQ(gpu.kinds[0].gpus, (std::map<std::string, std::uint32_t>{{"v100", 2}}));
  EXPECT_EQ(gpu.kinds[0].cpus, 2) << "the partition grants no more of a node";
  EXPECT_EQ(gpu.kinds[0].memory, std::uint64_t{2000} << 20);
  EXPECT_FALSE(survey->limits.running || survey->limits.all);
  EXPECT_THAT(names(proposed("slurm", *survey)), ElementsAre("cpu", "gpu-v100", "gpu-a100"));
}

TEST(SlurmSurvey, LimitsAreThoseOfTheUserHisQosAndThePartitions) {
  const auto survey = read("slurm", answer(0, kSinfo + kPartitions +
                                                  "hbassoc||normal,long|normal|50|\n"
                                                  "hbassoc||normal||20|200\n"
                                                  "hbassoc|gpu|normal|||9\n"
                                                  "hbqos|normal|30|\nhbqos|gpus|2|4\n"));
  ASSERT_TRUE(survey) << survey.error().text;
  EXPECT_EQ(survey->limits.running, 30u) << "the account that grants most, within its QOS";
  EXPECT_EQ(survey->limits.all, std::nullopt);
  EXPECT_EQ(survey->partitions[0].limits.running, std::nullopt);
  EXPECT_EQ(survey->partitions[1].limits.running, 2u);
  EXPECT_EQ(survey->partitions[1].limits.all, 4u);
  const Site site = proposed("slurm", *survey);
  EXPECT_EQ(site.max_running, 16u);
  EXPECT_EQ(site.shapes.at(1).max_running, 1u) << "the other kind of its nodes has one too";
  EXPECT_EQ(site.shapes.at(1).max_queued, 1u);
}

TEST(SlurmSurvey, LimitsAsARealAccountingSaysThem) {
  const auto survey =
      read("slurm", answer(0, kSinfo + "hbassoc||normal||7|12\nhbassoc||normal||7|12\n"
                                       "hbqos|normal|5|\n"));
  ASSERT_TRUE(survey) << survey.error().text;
  EXPECT_EQ(survey->limits.running, 5u);
  EXPECT_EQ(survey->limits.all, 12u);
}

TEST(SlurmSurvey, PartitionsThatAreClosedOrEmptyAreNamed) {
  const auto survey = read("slurm", answer(0,
                                           "hb|old|drain|2|4|4000|infinite|(null)\n"
                                           "hb|none|up|0|0|0|infinite|(null)\n"));
  ASSERT_TRUE(survey) << survey.error().text;
  EXPECT_FALSE(survey->partitions[0].is_open);
  EXPECT_EQ(survey->partitions[0].why_closed, "drain");
  EXPECT_EQ(survey->partitions[0].walltime, std::nullopt);
  EXPECT_TRUE(survey->partitions[1].kinds.empty());
}

TEST(SlurmSurvey, AnAnswerWithoutPartitionsIsAnError) {
  EXPECT_FALSE(read("slurm", answer(0, "")));
  const auto survey = read("slurm", answer(1, "", "Unable to contact slurm controller"));
  ASSERT_FALSE(survey);
  EXPECT_THAT(survey.error().text, HasSubstr("Unable to contact"));
}

// The facts of an OpenPBS 23.06, in the long form, and a queue and a node more.
const std::string kQueues =
    "Queue: workq\n    queue_type = Execution\n    total_jobs = 6\n    state_count = Transit:0 "
    "Queued:1 Held:1 Waiting:0 Running:3 Exiting:0 Begun:1\n    enabled = True\n    started = "
    "True\n\n"
    "Queue: special\n    queue_type = Execution\n    resources_max.walltime = 02:00:00\n    "
    "resources_max.ncpus = 32\n    max_run = [u:PBS_GENERIC=3],[g:physics=20]\n    max_queued = "
    "[u:PBS_GENERIC=5]\n    enabled = True\n    started = True\n\n"
    "Queue: in\n    queue_type = Route\n    enabled = True\n    started = True\n\n"
    "Queue: shut\n    queue_type = Execution\n    enabled = True\n    started = False\n\n"
    "Server: vm\n    server_state = Active\n    max_run = [o:PBS_ALL=100]\n    max_queued = "
    "[u:PBS_GENERIC=40]\n    default_queue = workq\n\n";
const std::string kNodes =
    "vm\n     Mom = vm\n     ntype = PBS\n     state = free\n     pcpus = 2\n     "
    "resources_available.arch = linux\n     resources_available.host = vm\n     "
    "resources_available.mem = 24682416kb\n     resources_available.ncpus = 8\n\n"
    "n2\n     queue = special\n     resources_available.ncpus = 64\n     resources_available.mem = "
    "512gb\n     resources_available.ngpus = 1\n     resources_available.gpu_model = A100\n\n";

TEST(PbsSurvey, HasQueuesTheirNodesAndLimits) {
  const auto survey = read("pbs", answer(0, kQueues + "\nhbnodes\n" + kNodes + "\nhbend\n"),
                           "gpu_kinds: {a100: gpu_model=A100}");
  ASSERT_TRUE(survey) << survey.error().text;
  ASSERT_EQ(survey->partitions.size(), 4u);
  const SurveyedPartition& work = survey->partitions[0];
  EXPECT_EQ(work.name, "workq");
  EXPECT_TRUE(work.is_open);
  ASSERT_EQ(work.kinds.size(), 1u);
  EXPECT_EQ(work.kinds[0].cpus, 8);
  EXPECT_EQ(work.kinds[0].memory, std::uint64_t{24682416} << 10);
  const SurveyedPartition& special = survey->partitions[1];
  EXPECT_EQ(special.walltime, 2h);
  EXPECT_EQ(special.limits.running, 3u);
  EXPECT_EQ(special.limits.all, 5u);
  ASSERT_EQ(special.kinds.size(), 2u);
  EXPECT_EQ(special.kinds[1].cpus, 32) << "no batch job gets more";
  EXPECT_EQ(special.kinds[1].gpus, (std::map<std::string, std::uint32_t>{{"a100", 1}}));
  EXPECT_EQ(survey->partitions[2].why_closed, "a routing queue");
  EXPECT_EQ(survey->partitions[3].why_closed, "not started");
  EXPECT_EQ(survey->limits.running, 100u) << "what all users have together";
  EXPECT_EQ(survey->limits.all, 40u);
  const Site site = proposed("pbs", *survey);
  EXPECT_THAT(names(site), ElementsAre("workq", "special", "special-a100"));
  EXPECT_EQ(site.shapes.at(0).capacity.get(kMemory).whole(), std::int64_t{22} << 30);
}

/// One queue as it is told to alice, of the group physics.
SurveyedPartition queue(const std::string& attributes) {
  const std::string text =
      "Queue: q\n    queue_type = Execution\n    enabled = True\n    started = True\n" +
      attributes + "\nhbuser alice\n    group = physics\n\n\nhbnodes\n" + kNodes +
      "g\n     resources_available.ncpus = 16\n     resources_available.mem = "
      "64gb\n     resources_available.ngpus = 4\n\n\nhbend\n";
  const auto survey = read("pbs", answer(0, text));
  EXPECT_TRUE(survey) << survey.error().text;
  return survey ? survey->partitions.at(0) : SurveyedPartition{};
}

TEST(PbsSurvey, EachEntryOfALimitCounts) {
  // One line for each, as OpenPBS 23.06 prints them.
  EXPECT_EQ(
      queue("    max_queued = [o:PBS_ALL=50]\n    max_queued = [u:PBS_GENERIC=5]\n").limits.all,
      5u);
  EXPECT_EQ(queue("    max_queued = [u:PBS_GENERIC=5]\n    max_queued = [u:alice=2]\n").limits.all,
            2u);
  EXPECT_EQ(queue("    max_queued = [u:alice=9]\n    max_queued = [u:PBS_GENERIC=5]\n").limits.all,
            9u)
      << "his own goes before that of any user";
  EXPECT_EQ(queue("    max_run = [o:PBS_ALL=7]\n    max_run = [u:alice=9]\n").limits.running, 7u);
  EXPECT_EQ(queue("    max_run = [u:malice=1]\n    max_run = [u:alic=1]\n").limits.running,
            std::nullopt);
  EXPECT_EQ(queue("    max_run = [u:PBS_GENERIC=5],[g:physics=4]\n").limits.running, 4u);
  EXPECT_EQ(queue("    max_run = [g:PBS_GENERIC=3]\n").limits.running, 3u);
  EXPECT_EQ(queue("    max_user_run = 6\n").limits.running, 6u);
}

TEST(PbsSurvey, AQueueTakesNoOtherBatchJobsThanItSays) {
  const auto most_gpus = [](const SurveyedPartition& partition) {
    std::uint32_t most = 0;
    for (const NodeKind& kind : partition.kinds) {
      for (const auto& [name, count] : kind.gpus) most = std::max(most, count);
    }
    return most;
  };
  EXPECT_EQ(most_gpus(queue("")), 4u);
  EXPECT_EQ(most_gpus(queue("    resources_max.ngpus = 2\n")), 2u);
  EXPECT_EQ(most_gpus(queue("    resources_max.ngpus = 0\n")), 0u);
  EXPECT_EQ(queue("    resources_min.ngpus = 1\n").kinds.size(), 1u);
  EXPECT_EQ(queue("    resources_min.ncpus = 16\n").kinds.size(), 1u);
  EXPECT_EQ(queue("    resources_min.mem = 32gb\n").kinds.size(), 1u);
  EXPECT_TRUE(queue("    resources_min.walltime = 12:00:00\n").is_open);
  const SurveyedPartition for_long = queue("    resources_min.walltime = 48:00:00\n");
  EXPECT_EQ(for_long.why_closed, "for walltimes of 48:00:00 and more");
  EXPECT_TRUE(for_long.is_open) << "to a shape of three days";
  EXPECT_TRUE(for_long.kinds.empty()) << "none is proposed";
  EXPECT_EQ(queue("    from_route_only = True\n").why_closed, "reached by routing queues alone");
}

TEST(PbsSurvey, ARoutingQueueStandsForThoseThatItAloneReaches) {
  const auto survey =
      read("pbs", answer(0,
                         "Queue: in\n    queue_type = Route\n    route_destinations = "
                         "shut,long@vm,work\n    max_queued = [u:PBS_GENERIC=4]\n    enabled = "
                         "True\n    started = True\n\n"
                         "Queue: shut\n    queue_type = Execution\n    from_route_only = True\n    "
                         "enabled = False\n    started = True\n\n"
                         "Queue: long\n    queue_type = Execution\n    from_route_only = True\n    "
                         "resources_max.walltime = 10:00:00\n    enabled = True\n    started = "
                         "True\n\nServer: vm\n    server_state = Active\n\n\nhbnodes\n" +
                             kNodes + "\nhbend\n"));
  ASSERT_TRUE(survey) << survey.error().text;
  const SurveyedPartition& in = survey->partitions.at(0);
  EXPECT_TRUE(in.is_open) << in.why_closed;
  EXPECT_EQ(in.walltime, 10h);
  EXPECT_EQ(in.limits.all, 4u);
  EXPECT_EQ(in.kinds.size(), 1u);
  EXPECT_THAT(names(proposed("pbs", *survey)), ElementsAre("in"));
}

TEST(PbsSurvey, GpusWithoutAKindGetAName) {
  const auto survey = read("pbs", answer(0, kQueues + "\nhbnodes\n" + kNodes + "\nhbend\n"));
  ASSERT_TRUE(survey) << survey.error().text;
  const Site site = proposed("pbs", *survey);
  EXPECT_THAT(names(site), ElementsAre("workq", "special", "special-gpu"));
  EXPECT_EQ(site.shapes.at(2).capacity.get("gpus/gpu"), Amount::of(1));
}

TEST(PbsSurvey, AnswersThatAreNoneAreErrors) {
  EXPECT_FALSE(read("pbs", answer(0, "")));
  EXPECT_FALSE(read("pbs", answer(0, "\nhbnodes\nhbend\n")));
  EXPECT_FALSE(read("pbs", answer(186, "", "qstat: cannot connect to server")));
}

}  // namespace
}  // namespace hpcbatch
