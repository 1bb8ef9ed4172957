// Programs that Slurm's commands start: the steps of srun, and the real commands.
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/step.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sched.h>

namespace hpcbatch::slurm_commands {
namespace {

using testing::HasSubstr;

class SlurmPrograms : public testing::Test {
 public:
  SlurmPrograms() {
    std::string pattern = testing::TempDir() + "slurm-programs-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SlurmPrograms() override { std::filesystem::remove_all(folder_); }

 protected:
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string text_of(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  /// Within a task of `cpus`.
  int step(const std::vector<std::string>& words, const std::string& cpus = "6",
           EnvironmentMap more = {}) const {
    more.insert({{"HPCBATCH_TASK_ID", "12"},
                 {"HPCBATCH_ATTEMPT", "1"},
                 {"HPCBATCH_CPUS", cpus},
                 {"TMPDIR", folder_},
                 {"PATH", "/usr/bin:/bin"}});
    Interrupt interrupt;
    return srun({"srun", words, more}, Session{Places{}, interrupt});
  }
  std::string folder_;
};

TEST_F(SlurmPrograms, RanksAddToAFileThatTheyShare) {
  std::ofstream(file("out")) << "of before\n";
  std::string all;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(step({"-n6", "-o", file("out"), "sh", "-c", "echo rank $SLURM_PROCID"}), 0);
    all = text_of("out");
  }
  EXPECT_EQ(all.size(), 6 * std::string("rank 0\n").size()) << all;
  for (const char* rank : {"0", "1", "2", "3", "4", "5"})
    EXPECT_THAT(all, HasSubstr(std::string("rank ") + rank + "\n"));
  EXPECT_EQ(step({"-n2", "--open-mode=append", "-o", file("out"), "echo", "more"}), 0);
  EXPECT_EQ(text_of("out").size(), all.size() + 2 * std::string("more\n").size());
  EXPECT_THROW(step({"-n2", "-o", file("no/out"), "true"}), CommandFailed);
}

TEST_F(SlurmPrograms, AStepIsBoundToCpusWhereItHasAllOfThem) {
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  const std::string all = std::to_string(CPU_COUNT(&mask));
  ASSERT_EQ(step({"-n1", "-o", file("all"), "nproc"}, all), 0);
  EXPECT_EQ(text_of("all"), all + "\n");
  ASSERT_EQ(step({"-n", all, "-c1", "-o", file("each"), "nproc"}, all), 0);
  EXPECT_THAT(text_of("each"), testing::StartsWith("1\n"));
  ASSERT_EQ(step({"-n1", "-c1", "--cpu-bind=none", "-o", file("free"), "nproc"}, all), 0);
  EXPECT_EQ(text_of("free"), all + "\n");
}

TEST_F(SlurmPrograms, AStepTakesNoMoreThanItsTaskHas) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"-n3", "true"},
                                             {"-n1", "-c3", "true"},
                                             {"--gres=gpu:1", "true"},
                                             {"--gpus-per-task=1", "true"},
                                             {"-N2", "true"},
                                             {"-w", "nowhere", "true"},
                                             {"--jobid=4711", "true"},
                                             {"--export", "A=1", "--cpu-bind=nonsense", "true"},
                                             {"-t", "soon", "true"},
                                             {"--signal=NONE@3", "true"},
                                             {"-i", file("nowhere"), "true"}})
    EXPECT_THROW(step(words, "2"), CommandFailed) << words.front();
  EXPECT_THROW(step({"--mem=2G", "true"}, "2", {{"HPCBATCH_MEM_MB", "1024"}}), CommandFailed);
  EXPECT_EQ(step({"--mem=1G", "true"}, "2", {{"HPCBATCH_MEM_MB", "1024"}}), 0);
  EXPECT_EQ(step({"-O", "-n3", "true"}, "2"), 0);
}

TEST_F(SlurmPrograms, GpusOfATaskAreDividedAmongItsRanks) {
  const EnvironmentMap gpus{{"HPCBATCH_GPUS", "2,5"}, {"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"}};
  const std::vector<std::string> tell{"sh", "-c", "echo $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS"};
  const auto told = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"-o", file("gpus.%t")});
    words.insert(words.end(), tell.begin(), tell.end());
    EXPECT_EQ(step(words, "2", gpus), 0);
    return text_of("gpus.0") + text_of("gpus.1");
  };
  EXPECT_EQ(told({"-n2", "--gpus-per-task=1"}), "GPU-a 2\nGPU-b 5\n");
  EXPECT_EQ(told({"-n2", "--gres=gpu:2"}), "GPU-a,GPU-b 2,5\nGPU-a,GPU-b 2,5\n");
  EXPECT_EQ(told({"-n2", "--gres=none"}), "\n\n");
  EXPECT_EQ(told({"-n2"}), "GPU-a,GPU-b\nGPU-a,GPU-b\n");
}

TEST_F(SlurmPrograms, StepsThatShareATaskHaveCpusOfTheirOwn) {
  StepShares shares(file("steps"), 4, 2);
  auto one = shares.try_to_hold({{2, 1}}, true);
  ASSERT_TRUE(one);
  EXPECT_THAT(one->cpus, testing::ElementsAre(0, 1));
  auto other = shares.try_to_hold({{1, 1}}, true);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->step, one->step + 1);
  EXPECT_THAT(other->cpus, testing::ElementsAre(2));
  EXPECT_THAT(other->gpus, testing::ElementsAre(1));
  EXPECT_FALSE(shares.try_to_hold({{2, 0}}, true)) << "one cpu is left";
  EXPECT_FALSE(shares.try_to_hold({{1, 1}}, true)) << "no GPU is left";
  EXPECT_TRUE(shares.try_to_hold({{4, 2}}, false)) << "it shares all";
  one.reset();
  EXPECT_THAT(shares.try_to_hold({{2, 1}}, true)->cpus, testing::ElementsAre(0, 1));
}

TEST_F(SlurmPrograms, StepsOfATaskOverSeveralNodesTakeTheFirstThatHaveRoom) {
  using testing::ElementsAre;
  StepShares shares(file("wide"), 4, 1, 3);
  const Shares all{0, 1, 2};
  const auto whole = shares.try_to_hold({{4, 0}}, true, all);
  ASSERT_TRUE(whole);
  EXPECT_THAT(whole->nodes, ElementsAre(0));
  const auto part = shares.try_to_hold({{3, 1}, {2, 0}}, true, all);
  ASSERT_TRUE(part);
  EXPECT_THAT(part->nodes, ElementsAre(1, 2));
  EXPECT_THAT(part->cpus, testing::IsEmpty()) << "what is told is of its own node";
  EXPECT_FALSE(shares.try_to_hold({{1, 1}}, true, {0, 1})) << "node 0 has no cpu, node 1 no GPU";
  EXPECT_FALSE(shares.try_to_hold({{3, 0}}, true, all));
  const auto last = shares.try_to_hold({{2, 1}}, true, all);
  ASSERT_TRUE(last);
  EXPECT_THAT(last->nodes, ElementsAre(2));
  EXPECT_THAT(shares.try_to_hold({{4, 0}, {4, 0}}, false, all)->cpus, ElementsAre(0, 1, 2, 3));
}

TEST_F(SlurmPrograms, RanksAreSpreadInBlocks) {
  const std::vector<unsigned> ranks = ranks_of_nodes(5, 3);
  EXPECT_THAT(ranks, testing::ElementsAre(2, 2, 1));
  EXPECT_EQ(place_of_rank(1, ranks).node, 0U);
  EXPECT_EQ(place_of_rank(3, ranks).node, 1U);
  EXPECT_EQ(place_of_rank(3, ranks).local, 1U);
  EXPECT_EQ(place_of_rank(4, ranks).local, 0U);
}

TEST(SlurmMultiProgram, EachRankHasItsProgram) {
  using testing::ElementsAre;
  const auto programs = programs_of_ranks(
      "# a comment\n0 echo %t %o\n\n2,3 echo 'a b' \\\n  %t:%o\n* echo rest\n", 4, "f");
  EXPECT_THAT(programs.at(0), ElementsAre("echo", "0", "0"));
  EXPECT_THAT(programs.at(1), ElementsAre("echo", "rest"));
  EXPECT_THAT(programs.at(3), ElementsAre("echo", "a b", "3:1"));
  const auto why = [](const char* text) {
    try {
      programs_of_ranks(text, 2, "f");
    } catch (const CommandFailed& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(why("0 a\n"), HasSubstr("no record for task id 1"));
  EXPECT_THAT(why("0 a\n0-1 b\n"), HasSubstr("Duplicate record for task 0"));
  EXPECT_THAT(why("x a\n"), HasSubstr("Line 1 of configuration file f invalid"));
  EXPECT_EQ(why("0-7 a\n"), "taken") << "it may serve steps of any size";
}

TEST_F(SlurmPrograms, CommandsThatCallEachOtherAreEndedUnlessItWasLongAgo) {
  const std::string real = file("squeue");
  std::ofstream(real) << "#!/bin/sh\necho \"$HPCBATCH_SLURM_CALLS\" > " << file("calls") << "\n";
  std::filesystem::permissions(real, std::filesystem::perms::owner_all);
  const auto now = std::to_string(static_cast<long>(now_in_seconds()));
  const auto run = [&](const std::string& calls) {
    const Call call{"squeue", {}, {{"PATH", folder_}, {"HPCBATCH_SLURM_CALLS", calls}}};
    return run_real(call, {}).value_or(-1);
  };
  EXPECT_EQ(run("8:" + now), 127);
  EXPECT_EQ(run("7:" + now), 0);
  EXPECT_EQ(text_of("calls"), "8:" + now + "\n") << "since the first of them";
  EXPECT_EQ(run("8:" + std::to_string(std::stol(now) - 100)), 0);
  EXPECT_THAT(text_of("calls"), testing::StartsWith("1:"));
  EXPECT_EQ(run("8"), 0);
}

}  // namespace
}  // namespace hpcbatch::slurm_commands
