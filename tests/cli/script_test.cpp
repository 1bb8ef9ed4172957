// What a batch script's comments ask for.
#include "cli/parse/script.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Script script_of(const std::string& text, const std::vector<std::string>& arguments = {}) {
  return read_script(text, "/w/job.sh", arguments);
}

std::string refused_script(const std::string& text) {
  try {
    script_of(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ScriptTest, ItsLinesAreOptionsOfSubmit) {
  const std::string text =
      "#!/bin/bash -e\n#HPCBATCH --cpus 4 --mem 8G  # for the index\n\n# a comment\n"
      "#HPCBATCH --name 'two words'\necho hi\n#HPCBATCH --cpus 9\n";
  const Script read = script_of(text, {"a", "--b"});
  EXPECT_THAT(read.options, ElementsAre("--cpus", "4", "--mem", "8G", "--name", "two words",
                                        "--env", "HPCBATCH_SCRIPT=" + text));
  EXPECT_THAT(read.command,
              ElementsAre("/bin/bash", "-e", "-c", HasSubstr("eval"), "/w/job.sh", "a", "--b"));
  EXPECT_TRUE(read.notes.empty());
}

TEST(ScriptTest, AScriptOfNoShellRunsFromItsFile) {
  EXPECT_THAT(script_of("#!/usr/bin/env python3\nprint(1)\n").command,
              ElementsAre("/usr/bin/env", "python3", "/w/job.sh"));
  EXPECT_THAT(script_of("echo hi\n").command,
              ElementsAre("/bin/sh", "-c", HasSubstr("eval"), "/w/job.sh"));
  EXPECT_THAT(script_of("#!/bin/sh -\n:\n").command,
              ElementsAre("/bin/sh", "-c", HasSubstr("eval"), "/w/job.sh"));
  EXPECT_THAT(script_of("#!/usr/bin/env bash\n:\n").command.at(2), "-c");
}

TEST(ScriptTest, LinesForSlurmHoldWhereTheyMeanTheSame) {
  const Script read = script_of(
      "#!/bin/sh\n#SBATCH -c 4 --mem=500\n#SBATCH -t 1-2:30\n#SBATCH --job-name=fit -a1-9%3\n"
      "#SBATCH --gres=gpu:a100:2\n#SBATCH --mail-type=BEGIN\n#SBATCH -N1\n#HPCBATCH --cpus 3\n"
      "echo $SLURM_ARRAY_TASK_ID $SLURM_JOB_NODELIST\n",
      {"a"});
  EXPECT_THAT(read.options, ElementsAre("--cpus", "4", "--mem", "500M", "--time", "95400s",
                                        "--name", "fit", "--array", "1-9%3", "--gpus", "a100:2",
                                        "--cpus", "3", "--env", HasSubstr("HPCBATCH_RUN="), "--env",
                                        HasSubstr("HPCBATCH_SCRIPT=#!/bin/sh")))
      << "our own lines have the last word";
  EXPECT_EQ(read.system, BatchSystem::Slurm);
  ASSERT_EQ(read.notes.size(), 2U);
  EXPECT_THAT(read.notes[0], HasSubstr("--mem=500 as --mem 500M"));
  EXPECT_EQ(read.notes[1], "of its lines for sbatch these are left out: --mail-type=BEGIN");
  EXPECT_TRUE(is_batch_command(read.command));
  EXPECT_THAT(without_batch(read.command), ElementsAre("/bin/sh", "/w/job.sh", "a"));
}

TEST(ScriptTest, LinesForPbsHoldToo) {
  const Script read = script_of("#!/bin/bash\n#PBS -N fit\n#PBS -l select=1:ncpus=2\n:\n#PBS -I\n");
  EXPECT_EQ(read.system, BatchSystem::Pbs);
  EXPECT_THAT(read.options,
              ElementsAre("--name", "fit", "--cpus", "2", "--env", HasSubstr("HPCBATCH_RUN="),
                          "--env", HasSubstr("HPCBATCH_SCRIPT=")));
  const Script both = script_of("#!/bin/sh\n#PBS -N fit\n#SBATCH -c 2\n:");
  EXPECT_EQ(both.system, BatchSystem::Slurm);
  EXPECT_THAT(both.notes.back(), HasSubstr("the lines #PBS"));
  EXPECT_THAT(without_batch(script_of("#PBS -S /bin/tcsh\n:").command),
              ElementsAre("/bin/tcsh", "/w/job.sh"));
}

TEST(ScriptTest, AScriptIsSlurmsWhereThatIsSaid) {
  const Script read = read_script("#!/bin/sh\n:\n", "/w/job.sh", {}, BatchSystem::Slurm);
  EXPECT_EQ(read.system, BatchSystem::Slurm);
  EXPECT_TRUE(is_batch_command(read.command));
}

TEST(ScriptTest, WordsBesideHoldBesideItsLinesAndItsTextStays) {
  const std::string text =
      "#!/usr/bin/env node\n#SBATCH -J of-line --signal=USR1@60 --time=10 --mem=4G\n"
      "#SBATCH --signal=\"USR1@120\" -p short\n"
      "require('fs').writeFileSync('x', `\n#SBATCH --signal=USR2@5\n`);\n";
  const Script read =
      read_script(text, "/w/job.js", {}, BatchSystem::Slurm,
                  {{"--job-name=of-file", "--nice"}, {"--partition=it's \"long\"", "--time=20"}});
  EXPECT_THAT(read.options,
              ElementsAre("--priority=-100", "--name", "of-line", "--mem", "4G", "--partition",
                          "it's \"long\"", "--time", "1200s", "--env", HasSubstr("HPCBATCH_RUN="),
                          "--env", "HPCBATCH_SCRIPT=" + text));
  EXPECT_EQ(read.terms.signal_before, 120U) << "the last one holds";
  EXPECT_TRUE(read.terms.signals_steps);
}

TEST(ScriptTest, TheCallerOfSbatchHasTheLastWord) {
  const std::string text =
      "#!/bin/sh\n#SBATCH -N 7 -c 2\n#HPCBATCH --cpus 8 --mem=4G --time 1h --site a\n:\n";
  const Script read = read_script(text, "/w/job.sh", {}, BatchSystem::Slurm,
                                  {{}, {"--nodes=1", "--ntasks=3", "--time=0"}});
  EXPECT_THAT(read.options, ElementsAre("--cpus", "2", "--ntasks", "3", "--cpus", "6", "--mem=4G",
                                        "--site", "a", "--env", HasSubstr("HPCBATCH_RUN="), "--env",
                                        HasSubstr("HPCBATCH_SCRIPT=")));
}

TEST(ScriptTest, ALongOneComesInPieces) {
  const std::string text = "#!/usr/bin/env python3\n#SBATCH -c 2\n# " + std::string(300 << 10, 'x');
  const Script read = script_of(text);
  ASSERT_EQ(read.options.size(), 10U);
  std::string together;
  for (const std::size_t at : {5U, 7U, 9U})
    together += read.options[at].substr(read.options[at].find('=') + 1);
  EXPECT_EQ(together, text);
  EXPECT_THAT(read.options[9], StartsWith("HPCBATCH_SCRIPT_3="));
  EXPECT_THAT(refused_script("#!/bin/sh\n" + std::string(2 << 20, '#')),
              HasSubstr("may have 1 MB"));
}

TEST(ScriptTest, WhatItsCommandSetsIsKnown) {
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURMD_NODENAME", "SLURM_TMPDIR"})
    EXPECT_TRUE(is_set_by_run(BatchSystem::Slurm, name)) << name;
  EXPECT_TRUE(is_set_by_run(BatchSystem::Pbs, "PBS_NODEFILE"));
  EXPECT_FALSE(is_set_by_run(BatchSystem::Pbs, "SLURM_JOB_ID"));
  EXPECT_FALSE(is_set_by_run(BatchSystem::Slurm, "SLURM_JOB"));
  EXPECT_FALSE(is_set_by_run(BatchSystem::Slurm, "SLURM_TOPOLOGY_ADDR"));
}

TEST(ScriptTest, ItsCommandIsShownAsItsUserKnowsIt) {
  const auto shown = [](const std::string& text) {
    return command_of_script(script_of(text, {"a"}).command);
  };
  EXPECT_THAT(shown("#!/bin/bash -e\n#SBATCH -c 2\n:\n"),
              ElementsAre("/bin/bash", "-e", "/w/job.sh", "a"));
  EXPECT_THAT(shown("#!/usr/bin/env python3\n#SBATCH -c 2\n"),
              ElementsAre("/usr/bin/env", "python3", "/w/job.sh", "a"));
  EXPECT_THAT(command_of_script({"sh", "-c", "echo", "x", "y"}),
              ElementsAre("sh", "-c", "echo", "x", "y"));
}

TEST(ScriptTest, VariablesGoAlong) {
  EXPECT_THAT(script_of("#!/usr/bin/env python3\n#SBATCH --export=ALL,A=b,C=d\n").options,
              ElementsAre("--export", "ALL,A=b,C=d", "--env", HasSubstr("HPCBATCH_RUN="), "--env",
                          HasSubstr("HPCBATCH_SCRIPT=")));
}

TEST(ScriptTest, WhatIsIndentedIsAComment) {
  EXPECT_TRUE(script_of("#!/usr/bin/env python3\n  #SBATCH --array=1-3\n").options.empty());
}

TEST(ScriptTest, TimesAreSlurms) {
  const auto time = [](const std::string& text) {
    return script_of("#SBATCH --time=" + text + "\n:").options.at(1);
  };
  EXPECT_EQ(time("10"), "600s");
  EXPECT_EQ(time("10:30"), "660s");
  EXPECT_EQ(time("1:10:30"), "4260s");
  EXPECT_EQ(time("2-0"), "172800s");
  EXPECT_EQ(time("1-1:1:1"), "90120s");
}

TEST(ScriptTest, MemoryPerCpuIsForAllCpusWhereverTheyStand) {
  const auto per_cpu = [](const char* lines) { return script_of(lines).terms.memory_per_cpu; };
  EXPECT_EQ(per_cpu("#SBATCH --mem-per-cpu=2G\n#SBATCH -c 4\n:"), std::uint64_t{2} << 30U);
  EXPECT_EQ(per_cpu("#SBATCH -c 4\n#SBATCH --mem-per-cpu=500\n:"), 524288000U);
  EXPECT_THAT(refused_script("#SBATCH --mem-per-cpu=lots\n:"), HasSubstr("--mem-per-cpu=lots"));
}

std::string variables_in(const std::string& text) {
  std::string all;
  for (const BatchVariable& one : batch_variables_of(text))
    all += (all.empty() ? "" : " ") + one.name + ":" + std::to_string(one.line);
  return all;
}

TEST(ScriptTest, VariablesThatAScriptReliesOnAreFound) {
  for (const char* line : {"rm -rf /scratch/$SLURM_JOB_ID",
                           "cd ${SLURM_JOB_ID}",
                           "x=${SLURM_JOB_ID%%.*}",
                           "echo \"a # $SLURM_JOB_ID\"",
                           "trap 'rm -r $SLURM_JOB_ID' EXIT",
                           "((n = SLURM_JOB_ID + 1))",
                           "n=$((SLURM_JOB_ID*2))",
                           "f=${files[SLURM_JOB_ID]}",
                           "f=${files[SLURM_JOB_ID-1]}",
                           "printenv SLURM_JOB_ID",
                           "SLURM_JOB_ID=$SLURM_JOB_ID",
                           "SLURM_JOB_ID=1 ./prog; cd $SLURM_JOB_ID",
                           "make SLURM_JOB_ID=1; cd $SLURM_JOB_ID",
                           "echo ${SLURM_JOB_ID:?must be set}",
                           "os.environ[\"SLURM_JOB_ID\"]",
                           "int(os.environ['SLURM_JOB_ID'])",
                           "os.getenv('SLURM_JOB_ID')",
                           "my $id = $ENV{SLURM_JOB_ID};",
                           "Sys.getenv(\"SLURM_JOB_ID\")",
                           "awk 'BEGIN {print ENVIRON[\"SLURM_JOB_ID\"]}'",
                           "echo ${#SLURM_JOB_ID}"})
    EXPECT_EQ(variables_in(std::string("#!/bin/sh\n") + line + "\n"), "SLURM_JOB_ID:2") << line;
  EXPECT_EQ(
      variables_in("cd $PBS_O_WORKDIR\necho $PBS_JOBID $PBS_O_WORKDIR $LSB_JOBID $SGE_TASK_ID"),
      "PBS_O_WORKDIR:1 PBS_JOBID:2 LSB_JOBID:2 SGE_TASK_ID:2");
}

TEST(ScriptTest, WhatHasAValueWithoutABatchSystemIsNotReliedOn) {
  for (const char* text : {"n=${SLURM_CPUS_PER_TASK:-1}",
                           "n=${SLURM_CPUS_PER_TASK-1}",
                           "n=${SLURM_CPUS_PER_TASK:+x}",
                           ": ${SLURM_JOB_ID:=1}\ncd $SLURM_JOB_ID",
                           "SLURM_JOB_ID=7; cd $SLURM_JOB_ID",
                           "export SLURM_JOB_ID=$(date +%s)\ncd $SLURM_JOB_ID",
                           "SLURM_JOB_ID=\"a b\"\ncd $SLURM_JOB_ID",
                           "if [ -z \"$SLURM_JOB_ID\" ]; then SLURM_JOB_ID=1; fi\ncd $SLURM_JOB_ID",
                           "[[ -n ${SLURM_JOB_ID} ]] && echo in a batch job",
                           "# cd $SLURM_JOB_ID",
                           "cd /tmp # $SLURM_JOB_ID",
                           "for SLURM_JOB_ID in 1 2; do echo $SLURM_JOB_ID; done",
                           "read -r SLURM_JOB_ID\ncd $SLURM_JOB_ID",
                           "env | grep SLURM_",
                           "unset SLURM_JOB_ID",
                           "cd $MY_SLURM_JOB_ID",
                           "os.environ.get(\"SLURM_JOB_ID\", 1)",
                           "os.environ.get('SLURM_JOB_ID') or 1",
                           "os.environ['SLURM_JOB_ID'] = '1'\nos.environ['SLURM_JOB_ID']",
                           "if 'SLURM_JOB_ID' in os.environ:",
                           "id <- Sys.getenv(\"SLURM_JOB_ID\", \"1\")"})
    EXPECT_EQ(variables_in(text), "") << text;
}

TEST(ScriptTest, LinesOfOtherBatchSystemsAreRefused) {
  for (const char* line : {"#BSUB -n 4", "#$ -cwd", "#$ -t 1-3", "#MSUB -l nodes=1", "#COBALT -n 1",
                           "#flux: -N4", "# FLUX:-t 1h"})
    EXPECT_THAT(refused_script(std::string("#!/bin/sh\n") + line + "\n:"), HasSubstr(":2: '#"))
        << line;
  EXPECT_THAT(refused_script("#!/bin/sh\n:\n#$ -cwd\n"), HasSubstr("Grid Engine"));
  for (const char* text :
       {"#PBSPRO\n:", "#PBS\t-N x\n:", "#$HOME is big\n:", ":\n#PBS -N late\n", "# PBS -N x\n:"})
    EXPECT_EQ(refused_script(std::string("#!/bin/sh\n") + text), "") << text;
}

TEST(ScriptTest, WhatMeansSomethingElseIsRefused) {
  EXPECT_EQ(
      refused_script("#!/bin/sh\n#SBATCH --nodes=four\n:"),
      "/w/job.sh:2: '#SBATCH --nodes=four' has nothing here that means the same; write a line "
      "#HPCBATCH with what you need, or hand the script to sbatch");
  for (const char* line : {"--time=soon", "--output=%b.txt", "--nonsense",
                           "--dependency=afterok:12", "-w n1", "--gres=nvme:100"})
    EXPECT_THAT(refused_script(std::string("#SBATCH ") + line + "\n:"), HasSubstr("'#SBATCH -"))
        << line;
  EXPECT_EQ(refused_script("#SBATCH word\n:"), "/w/job.sh:1: 'word' is no option of sbatch");
  EXPECT_THAT(refused_script("#!/bin/sh\r\n:\r\n"), HasSubstr("end as on Windows"));
  EXPECT_EQ(refused_script("#HPCBATCH --name 'open\n:"),
            "/w/job.sh:1: a quotation mark is not closed");
}

}  // namespace
}  // namespace hpcbatch
