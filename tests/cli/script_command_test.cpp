// What lines of a script and the command line say together.
#include "cli/parse/parse.hpp"
#include "cli/tasks/submission.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch {
namespace {

using testing::Contains;
using testing::Not;
using testing::StartsWith;

SubmitCommand together(const std::string& lines, std::vector<std::string> said,
                       WordsBeside beside = {}, bool as_sbatch = false) {
  said.insert(said.begin(), "submit");
  std::vector<std::string> words = said;
  words.insert(words.end(), {"--", "true"});
  const Command parsed = parse_command(words);
  SubmitCommand asked = std::get<SubmitCommand>(parsed);
  asked.script = "job.sh";
  asked.words = said;
  asked.as_sbatch = as_sbatch;
  asked.work.command.clear();
  return with_text_of_script(asked, "#!/bin/sh\n" + lines + ":\n", {"/w", {}}, std::move(beside));
}

WorkOptions work_of(const std::string& lines, std::vector<std::string> said = {}) {
  return together(lines, std::move(said)).work;
}

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20U;

std::string megabytes(std::uint64_t count) {
  return std::to_string(count * kMegabyte);
}

TEST(ScriptCommandTest, MemoryPerCpuIsForAsManyAsThereAre) {
  const std::string lines = "#SBATCH -c2 --mem-per-cpu=200\n";
  EXPECT_EQ(work_of(lines).one("memory"), megabytes(400));
  EXPECT_EQ(work_of(lines, {"--cpus", "4"}).one("memory"), megabytes(800));
  EXPECT_EQ(work_of(lines, {"--cpus=0.5"}).one("memory"), megabytes(100));
  EXPECT_EQ(work_of(lines + "#HPCBATCH --cpus 4\n").one("memory"), megabytes(800));
  EXPECT_EQ(work_of(lines + "#SBATCH -n 3\n").one("memory"), megabytes(1200));
  EXPECT_EQ(work_of(lines + "#SBATCH -n 3\n", {"--cpus", "2"}).one("memory"), megabytes(400));
  EXPECT_EQ(work_of("#SBATCH --mem-per-cpu=200\n").one("memory"), megabytes(200));
  for (const char* all : {"#SBATCH --exclusive\n", "#HPCBATCH --cpus all\n"})
    EXPECT_EQ(work_of(lines + all).one("memory"), "all") << all;
  EXPECT_EQ(work_of("#PBS -l nodes=1:ppn=2,pmem=200mb\n", {"--cpus", "4"}).one("memory"),
            megabytes(800));
}

TEST(ScriptCommandTest, MemoryThatIsSaidAsAWholeHolds) {
  for (const WorkOptions& work : {work_of("#SBATCH -c2 --mem-per-cpu=200\n", {"--mem", "1G"}),
                                  work_of("#SBATCH -c2 --mem-per-cpu=200\n#HPCBATCH --mem 1G\n")}) {
    EXPECT_EQ(work.one("memory"), "1G");
    EXPECT_THAT(work.said.at("env"), Not(Contains(StartsWith("SLURM_MEM_PER_CPU="))));
  }
  EXPECT_THAT(work_of("#SBATCH -c2 --mem-per-cpu=200\n").said.at("env"),
              Contains("SLURM_MEM_PER_CPU=200"));
}

TEST(ScriptCommandTest, WhatIsSaidForEachGpuIsForAsManyAsThereAre) {
  const std::string lines = "#SBATCH --cpus-per-gpu=3 --mem-per-gpu=100\n";
  const auto cpus_and_memory = [](const WorkOptions& work) {
    return work.one("cpus") + " " + work.one("memory");
  };
  EXPECT_EQ(cpus_and_memory(work_of(lines + "#SBATCH -G a100:2\n")), "6 " + megabytes(200));
  EXPECT_EQ(cpus_and_memory(work_of(lines + "#SBATCH -G 2\n", {"--gpus", "4"})),
            "12 " + megabytes(400));
  EXPECT_EQ(cpus_and_memory(work_of(lines, {"--gpus", "a100:1", "--gpus", "h100:2"})),
            "9 " + megabytes(300));
  EXPECT_EQ(cpus_and_memory(work_of(lines, {"--cpus", "2"})), "2 " + megabytes(100));
  EXPECT_EQ(cpus_and_memory(
                work_of("#SBATCH -n 2 --gpus-per-task=2 --mem-per-gpu=100\n", {"--gpus", "1"})),
            "2 " + megabytes(100));
}

TEST(ScriptCommandTest, OfSbatchTheCallersWordsAreMultipliedToo) {
  WordsBeside beside;
  beside.last = {"--cpus-per-task=4"};
  const WorkOptions more_cpus = together("#SBATCH -n2 --mem-per-cpu=200\n", {}, beside, true).work;
  EXPECT_EQ(more_cpus.one("cpus"), "8");
  EXPECT_EQ(more_cpus.one("memory"), megabytes(1600));
  beside.last = {"--mem-per-cpu=100"};
  EXPECT_EQ(together("#HPCBATCH --cpus 4 --mem 1G\n", {}, beside, true).work.one("memory"),
            megabytes(400));
  beside.last = {};
  beside.variables = {"--mem-per-cpu=100"};
  EXPECT_EQ(together("#SBATCH -c 3\n", {}, beside, true).work.one("memory"), megabytes(300));
}

}  // namespace
}  // namespace hpcbatch
