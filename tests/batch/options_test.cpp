// Options of sbatch and qsub: what holds, what is left out, what is refused.
#include "batch/file_pattern.hpp"
#include "batch/pbs_options.hpp"
#include "batch/slurm_options.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace hpcbatch::batch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Terms slurm(const std::string& line) {
  SlurmOptions options("#SBATCH ");
  options.read(split_words(line, "job.sh:2: "), "job.sh:2: ");
  return options.finish();
}

Terms pbs(const std::string& line) {
  PbsOptions options("#PBS ");
  options.read(split_words(line, "job.sh:2: "), "job.sh:2: ");
  return options.finish();
}

template <class Read>
std::string refused(Read read, const std::string& line) {
  try {
    read(line);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(SlurmOptionsTest, AreOptionsOfSubmit) {
  EXPECT_THAT(slurm("-c 4 --mem=500 -t 1-2:30 --job-name=fit -a0-9:3%2").options,
              ElementsAre("--cpus", "4", "--mem", "500M", "--time", "95400s", "--name", "fit",
                          "--array", "0-9:3%2"));
  EXPECT_THAT(slurm("--part=cpu -A lab --hold --nice --nice=-5 --tmp=10G").options,
              ElementsAre("--partition", "cpu", "--account", "lab", "--hold", "--priority", "5",
                          "--disk", "10G"));
  EXPECT_THAT(slurm("--mem 0 --exclusive").options, ElementsAre("--mem", "all", "--cpus", "all"));
  EXPECT_THAT(slurm("-t 0 --time=UNLIMITED").options, IsEmpty());
  EXPECT_THAT(slurm("-t 0:01").options, ElementsAre("--time", "60s")) << "whole minutes";
  EXPECT_THAT(slurm("-t 1:01:01").options, ElementsAre("--time", "3720s"));
  EXPECT_THAT(slurm("-a [1-3]%2").options, ElementsAre("--array", "1-3%2"));
  EXPECT_THAT(slurm("--account= --qos= --constraint= --chdir= --nodelist= --exclude= --gpus= "
                    "--mail-user=")
                  .options,
              IsEmpty())
      << "as of variables that are not set";
  EXPECT_THAT(slurm("-J -x").options, ElementsAre("--name=-x")) << "a value it needs";
}

TEST(SlurmOptionsTest, TheLastHoldsAlsoWhereItSaysNone) {
  EXPECT_THAT(slurm("-t 10 -c 2 --time=UNLIMITED").options, ElementsAre("--cpus", "2"));
  EXPECT_THAT(slurm("-i in.txt -i none --gres=gpu:1 --gres=none").options, IsEmpty());
  EXPECT_THAT(slurm("--mem=2G -G 2 --mem=3G").options, ElementsAre("--gpus", "2", "--mem", "3G"));
  EXPECT_THAT(slurm("-N 4 --time=soon -N 1 -t 1").options, ElementsAre("--time", "60s"))
      << "what does not hold is not looked at";
  EXPECT_THAT(slurm("-d afterok:2000000001 -d afterany:2000000002").options,
              ElementsAre("--after-any", "2"));
  EXPECT_THAT(slurm("-d afterok:2000000001 --dependency=").options, IsEmpty());
  EXPECT_THAT(slurm("--no-requeue --requeue").options, ElementsAre("--requeue=yes"));
  EXPECT_THAT(slurm("--requeue --no-requeue").options, ElementsAre("--requeue=no"));
  EXPECT_THAT(slurm("--exclusive -s -c 2").options, ElementsAre("--cpus", "2"));
  EXPECT_THAT(slurm("-t 5 --time=unlimited").options, IsEmpty());
  EXPECT_THAT(slurm("-t 10 --time-min=0:30").options,
              ElementsAre("--time", "600s", "--time-request", "60s"));
}

TEST(SlurmOptionsTest, ValuesAreWordsInAnyCase) {
  EXPECT_THAT(slurm("-t infinite -d AfterOK:2000000001 --array=1-9%0 --export=").options,
              ElementsAre("--after", "1", "--array", "1-9", "--export", "NONE"));
  for (const char* signal : {"usr1", "SIGUSR1", "sigUsr1", "USR1"})
    EXPECT_EQ(slurm(std::string("--signal=") + signal + "@9").signal, "USR1");
  for (const char* signal : {"BOGUS", "99", "0", "SIG"})
    EXPECT_THAT(refused(slurm, std::string("--signal=") + signal + "@9"), HasSubstr("--signal"));
}

TEST(SlurmOptionsTest, WhatHoldsBesideThemIsNotRefused) {
  SlurmOptions options("#SBATCH ", {"--mem", "--cpus"});
  options.read({"--mem=lots", "-c", "none", "-t", "1"}, "job.sh:2: ");
  const Terms terms = options.finish();
  EXPECT_THAT(terms.options, ElementsAre("--time", "60s"));
  EXPECT_FALSE(terms.says_cpus);
}

TEST(SlurmOptionsTest, WhatItsCallerSettles) {
  SlurmOptions options("#SBATCH ");
  options.read({"-c", "2", "--nodes=9"}, "job.sh:2: ");
  options.read({"-n1", "--mem-per-cpu=1G", "-N1"}, "", SaidBy::Caller);
  EXPECT_THAT(options.finish().settled, ElementsAre("--cpus", "--ntasks", "--mem", "--nodes"));
  SlurmOptions waits("#SBATCH ");
  waits.read({"--no-requeue", "-d", "singleton"}, "", SaidBy::Caller);
  const std::vector<std::string_view> settled = waits.finish().settled;
  EXPECT_EQ(settled.front(), "--requeue");
  EXPECT_THAT(settled, testing::Contains("--after-failed"));
}

TEST(SlurmOptionsTest, SomeAreVariablesOfTheJob) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(
      slurm("--open-mode=append --hint=nomultithread -G a100:1 --mem-per-gpu=1G -O").variables,
      (Pairs{{"SLURM_OPEN_MODE", "a"},
             {"SLURM_HINT", "nomultithread"},
             {"SLURM_THREADS_PER_CORE", "1"},
             {"SLURM_GPUS", "a100:1"},
             {"SLURM_MEM_PER_GPU", "1024"},
             {"SLURM_OVERCOMMIT", "1"}}));
  EXPECT_EQ(slurm("--export=ALL,A=b").variables,
            (Pairs{{"SLURM_EXPORT_ENV", "ALL,A=b"}, {"SLURM_GET_USER_ENV", "1"}}));
}

TEST(SlurmOptionsTest, NamesAreMeantAsTheyStand) {
  EXPECT_THAT(slurm("-J a{id} -D {x}").options, ElementsAre("--name", "a{{id}}", "--cwd", "{{x}}"));
}

TEST(SlurmOptionsTest, AllOfANodeIsAskedForWhereverTheLineStands) {
  for (const char* line : {"--exclusive -c 4", "-c 4 --exclusive"})
    EXPECT_THAT(slurm(line).options, ElementsAre("--cpus", "4", "--cpus", "all")) << line;
  EXPECT_THAT(slurm("--exclusive -n 4 --mem-per-cpu=1G").options,
              ElementsAre("--ntasks", "4", "--cpus", "all"));
  EXPECT_THAT(slurm("--exclusive --exclusive=user -c 4").options, ElementsAre("--cpus", "4"));
}

TEST(SlurmOptionsTest, SeveralTasksShareOneNode) {
  const Terms terms = slurm("-n 4 -c 2 --mem-per-cpu=1G -N 1");
  EXPECT_THAT(terms.options, ElementsAre("--cpus", "2", "--ntasks", "4", "--cpus", "8"));
  EXPECT_EQ(terms.memory_per_cpu, std::uint64_t{1} << 30U);
  EXPECT_EQ(terms.tasks, 4U);
  EXPECT_TRUE(terms.says_cpus);
  EXPECT_EQ(slurm("--ntasks-per-node=3").tasks, 3U);
  EXPECT_THAT(slurm("-n 2 --gpus-per-task=a100:2").options,
              ElementsAre("--gpus", "a100:2", "--ntasks", "2", "--gpus", "a100:4", "--cpus", "2"));
  const Terms of_gpus = slurm("-n 2 -G 2 --cpus-per-gpu=3 --mem-per-gpu=1M");
  EXPECT_THAT(of_gpus.options, ElementsAre("--gpus", "2", "--ntasks", "2"));
  EXPECT_EQ(of_gpus.cpus_per_gpu, 3U);
  EXPECT_EQ(of_gpus.memory_per_gpu, 1U << 20U);
  EXPECT_THAT(refused(slurm, "-c 2 -G 2 --cpus-per-gpu=3"), HasSubstr("mutually exclusive"));
}

TEST(SlurmOptionsTest, AVariableGivesWayToMemoryThatIsSaidOtherwise) {
  const auto memory = [](const std::string& script, const std::string& variable,
                         const std::string& caller) {
    SlurmOptions options("#SBATCH ");
    options.read(split_words(script, ""), "job.sh:2: ");
    options.read(split_words(variable, ""), "", SaidBy::Variable);
    options.read(split_words(caller, ""), "", SaidBy::Caller);
    return options.finish();
  };
  EXPECT_THAT(memory("--mem=300", "--mem-per-cpu=100", "").options, ElementsAre("--mem", "300M"));
  EXPECT_THAT(memory("", "--mem-per-cpu=100", "--mem=300").options, ElementsAre("--mem", "300M"));
  EXPECT_THAT(memory("--mem=300", "--mem=100", "").options, ElementsAre("--mem", "100M"));
  EXPECT_EQ(memory("--mem-per-cpu=3", "--mem=100", "").memory_per_cpu, 3U << 20U);
  EXPECT_EQ(memory("", "--mem=100", "--mem-per-cpu=1").memory_per_cpu, 1U << 20U);
}

TEST(SlurmOptionsTest, MemoryIsSaidInOneWay) {
  const auto why = [](const std::string& script, const std::string& variable,
                      const std::string& caller) -> std::string {
    SlurmOptions options("#SBATCH ");
    try {
      options.read(split_words(script, ""), "job.sh:2: ");
      options.read(split_words(variable, ""), "", SaidBy::Variable);
      options.read(split_words(caller, ""), "", SaidBy::Caller);
      (void)options.finish();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(why("--mem=1G --mem-per-cpu=1G", "", ""),
              AllOf(HasSubstr("job.sh:2: '"), HasSubstr("exclude each other")));
  EXPECT_THAT(why("--mem-per-gpu=1G", "", "--mem=1G"), HasSubstr("exclude each other"));
  EXPECT_THAT(why("", "--mem=1 --mem-per-cpu=1", ""), HasSubstr("exclude each other"));
  EXPECT_EQ(why("--mem=1G --mem-bind=local", "--mem-per-cpu=1", "--mem=2G"), "");
}

TEST(SlurmOptionsTest, SeveralNodesHaveAPartOfItsTasks) {
  const Terms terms = slurm("-N 2-4 -n 5 -c 2 --mem-per-cpu=1G");
  EXPECT_THAT(terms.options,
              ElementsAre("--nodes", "2", "--cpus", "2", "--ntasks", "5", "--cpus", "6"));
  EXPECT_EQ(terms.nodes, 2U);
  EXPECT_EQ(terms.tasks, 5U);
  EXPECT_THAT(slurm("-N 3").options, ElementsAre("--nodes", "3", "--ntasks", "3"));
  EXPECT_THAT(slurm("-N 2 --ntasks-per-node=4").options,
              ElementsAre("--nodes", "2", "--ntasks", "8", "--cpus", "4"));
  EXPECT_THAT(slurm("-N 2 -n 9 --ntasks-per-node=3").options,
              ElementsAre("--nodes", "2", "--nodes", "3", "--ntasks", "9", "--cpus", "3"));
  EXPECT_THAT(slurm("-N 4 -n 1").options, ElementsAre("--nodes", "4", "--nodes", "1"))
      << "as Slurm does it";
  EXPECT_THAT(slurm("-N 2 -G a100:4").options,
              ElementsAre("--nodes", "2", "--gpus", "a100:4", "--ntasks", "2", "--gpus", "a100:2"));
  EXPECT_THAT(
      slurm("-N 2 -n 4 --gpus-per-task=1").options,
      ElementsAre("--nodes", "2", "--gpus", "1", "--ntasks", "4", "--gpus", "2", "--cpus", "2"));
  EXPECT_THAT(slurm("-N 2 --gpus-per-node=3 --exclusive").options,
              ElementsAre("--nodes", "2", "--gpus", "3", "--ntasks", "2", "--cpus", "all"));
}

TEST(SlurmOptionsTest, WhatHoldsAndWhatIsLeftOutIsTold) {
  const Terms terms = slurm("--mem=500 -o out.%j --mail-type=BEGIN --requeue");
  EXPECT_THAT(terms.held, ElementsAre("--mem=500 as --mem 500M", "-o out.%j as --stdout out.%j",
                                      "--mail-type=BEGIN", "--requeue as --requeue=yes"));
  EXPECT_THAT(terms.left_out, ElementsAre("--mail-type=BEGIN"));
}

TEST(SlurmOptionsTest, MailsAreTold) {
  using testing::IsEmpty;
  EXPECT_THAT(slurm("--mail-type=END").options, ElementsAre("--notify", "mail:"));
  EXPECT_THAT(slurm("--mail-type=FAIL --mail-user=me@x.org").options,
              ElementsAre("--notify", "failed:mail:me@x.org"));
  EXPECT_THAT(slurm("--mail-user=me,you@x.org --mail-type BEGIN,END,FAIL").options,
              ElementsAre("--notify", "mail:me", "--notify", "mail:you@x.org"));
  EXPECT_THAT(slurm("--mail-type=ALL").options, ElementsAre("--notify", "mail:"));
  for (const char* nobody : {"--mail-type=NONE", "--mail-user=me", "--mail-type=BEGIN",
                             "--mail-type=END --mail-type=NONE"})
    EXPECT_THAT(slurm(nobody).options, IsEmpty()) << nobody;
  EXPECT_THROW(slurm("--mail-type=SOMETIMES"), std::invalid_argument);
}

TEST(SlurmOptionsTest, TasksWaitForNumbersOfOurs) {
  EXPECT_THAT(
      slurm("-d afterok:2000000012:2000000013,afterany:2000000014,aftercorr:2000000015").options,
      ElementsAre("--after", "12", "--after", "13", "--after-any", "14", "--after-each", "15"));
  EXPECT_THAT(slurm("-d after:2000000012+5:2000000013,afternotok:2000000014_3,singleton").options,
              ElementsAre("--after-start", "12+300s", "--after-start", "13", "--after-failed",
                          "14_3", "--singleton"));
  EXPECT_THAT(
      slurm("-d afterok:2000000012_*:2000000013_[0,2-3]").options,
      ElementsAre("--after", "12", "--after", "13_0", "--after", "13_2", "--after", "13_3"));
  EXPECT_THAT(
      slurm("-d after:2000000012_[1-2]+5,Singleton").options,
      ElementsAre("--after-start", "12_1+300s", "--after-start", "12_2+300s", "--singleton"));
  EXPECT_THAT(slurm("-d 0").options, IsEmpty());
  EXPECT_THAT(slurm("-d afterok:2000000012?afterany:2000000013").options,
              ElementsAre("--after", "12", "--after-any", "13", "--after-one"));
  EXPECT_THAT(slurm("-d 2000000012").options, ElementsAre("--after-any", "12"));
  for (const char* wrong :
       {"afterok:12", "afterok:2000000012+5", "after:2000000012+x", "afterok:2000000012_x",
        "afterok:2000000012,afterok:2000000013?afterok:2000000014", "afterok:", "afterok",
        "afterburstbuffer:2000000012", "expand:2000000012", ","})
    EXPECT_THAT(refused(slurm, std::string("-d ") + wrong), HasSubstr("'#SBATCH -d")) << wrong;
}

TEST(SlurmOptionsTest, ASignalGoesToTheScript) {
  const Terms terms = slurm("--signal=B:SIGUSR1@120");
  EXPECT_EQ(terms.signal, "USR1");
  EXPECT_EQ(terms.signal_before, 120U);
  EXPECT_EQ(slurm("--signal=B:TERM").signal_before, 60U);
  EXPECT_FALSE(terms.signals_steps);
  EXPECT_TRUE(slurm("--signal=USR1@120").signals_steps);
  EXPECT_TRUE(slurm("--signal=R:10").signals_steps);
  for (const char* wrong : {"X:USR1@60", "B:USR1@soon", "B:", "B:US R", "B:U;x"})
    EXPECT_NE(refused(slurm, std::string("\"--signal=") + wrong + "\""), "") << wrong;
}

TEST(SlurmOptionsTest, OthersAreRefusedByName) {
  for (const char* line : {"-N many",
                           "--nodes=4-2",
                           "-N 2 -G 3",
                           "--time=soon",
                           "--nonsense",
                           "--gres=gpu:1,disk:2",
                           "-Z",
                           "--open-mode=a+",
                           "--signal=X:USR1@10",
                           "--nodelist=n1",
                           "-w n1",
                           "--gres=nvme:100",
                           "-n 0",
                           "--mem=lots",
                           "--cp=1",
                           "--",
                           "--output=%b.txt",
                           "--hold=yes",
                           "--partition",
                           "-i in.%N"})
    EXPECT_THAT(refused(slurm, line), HasSubstr("job.sh:2: '")) << line;
  EXPECT_EQ(refused(slurm, "word"), "job.sh:2: 'word' is no option of sbatch");
  EXPECT_THAT(refused(slurm, "-t=1"), HasSubstr("-t=1"));
  EXPECT_THAT(refused(slurm, "hetjob"), HasSubstr("submit a script for each of its parts"));
}

TEST(SlurmOptionsTest, MomentsAndWhetherItRunsAgain) {
  EXPECT_THAT(slurm("--begin=now+1hour --deadline=noon --no-requeue").options,
              ElementsAre("--begin", "now+1hour", "--deadline", "noon", "--requeue=no"));
}

TEST(WordsTest, SbatchHasAGrammarOfItsOwn) {
  const auto words = [](const char* line) { return split_words(line, "", WordsOf::Sbatch); };
  EXPECT_THAT(words("-J 'a b'c \"d\\\"e\" f\\#g\\%j h#i"),
              ElementsAre("-J", "a bc", "d\"e", "f#g%j", "h"));
  EXPECT_THAT(words("a\\ b"), ElementsAre("a", "b"));
  EXPECT_THAT(split_words("h#i \\x", ""), ElementsAre("h#i", "\\x"));
}

TEST(SlurmFileTest, SignsArePlacesOfOurs) {
  const PatternNames array{"fit", "me", true};
  const auto file = [&](const char* pattern) { return slurm_file(pattern, array).value_or("?"); };
  EXPECT_EQ(file("%x_%j.out"), "fit_{number}.out");
  EXPECT_EQ(file("s-%A_%4a.%N"), "s-{array_number}_{index:4}.{node}");
  EXPECT_EQ(file("%u/%n.%3t.%s%%"), "me/0.000.batch%");
  EXPECT_EQ(file("%J %12j"), "{number} {number:10}");
  EXPECT_EQ(file("a\\%j"), "a%j");
  EXPECT_EQ(file("%b"), "?");
  EXPECT_EQ(file("100%.%q%"), "100%.%q%") << "what is no sign stays";
  EXPECT_EQ(file("{id}.%x{%j}"), "{{id}}.fit{{{number}}}");
  EXPECT_EQ(file("\\{%j}"), "{{%j}}");
  EXPECT_EQ(slurm_file("%a", {}), "4294967294") << "as SLURM has it without an array";
}

TEST(PbsOptionsTest, AreOptionsOfSubmit) {
  EXPECT_THAT(
      pbs("-N fit -l select=1:ncpus=2:mem=100mb -l walltime=00:00:02 -J 1-3 -q cpu").options,
      ElementsAre("--name", "fit", "--time", "2s", "--array", "1-3", "--partition", "cpu", "--cpus",
                  "2", "--mem", "104857600"));
  EXPECT_THAT(pbs("-l min_walltime=0:10:00,max_walltime=1:00:00").options,
              ElementsAre("--time-request", "600s", "--time", "3600s"));
  EXPECT_THAT(pbs("-l nodes=1:ppn=4,walltime=1:00:00,pmem=1gb").options,
              ElementsAre("--time", "3600s", "--ntasks", "4", "--cpus", "4"))
      << "as its list of nodes has four lines";
  EXPECT_EQ(pbs("-l nodes=1:ppn=4,pmem=1gb").memory_per_cpu, std::uint64_t{1} << 30U);
  EXPECT_THAT(pbs("-o out.^array_index^ -j oe -v A=1,B -V -h").options,
              ElementsAre("--stdout", "out.{index}", "--export", "ALL,A=1,B", "--hold"));
  EXPECT_THAT(pbs("-o {id}.^array_index^ -N {x}").options,
              ElementsAre("--stdout", "{{id}}.{index}", "--name", "{{x}}"));
  const Terms terms = pbs("-l select=ncpus=8:mpiprocs=4:ngpus=1 -m abe -M me@x -S /bin/tcsh");
  EXPECT_EQ(terms.tasks, 4U);
  EXPECT_THAT(terms.options, testing::Contains("--gpus"));
  EXPECT_EQ(terms.interpreter, "/bin/tcsh");
  EXPECT_THAT(terms.left_out, ElementsAre("-m b"));
  EXPECT_THAT(terms.options, testing::IsSupersetOf({"--notify", "mail:me@x"}));
  EXPECT_THAT(pbs("-m a").options, ElementsAre("--notify", "failed:mail:"));
  EXPECT_THAT(pbs("-M me,you@x").options,
              ElementsAre("--notify", "failed:mail:me", "--notify", "failed:mail:you@x"));
  EXPECT_THAT(pbs("-m n -M me").options, testing::IsEmpty());
  EXPECT_THROW(pbs("-m x"), std::invalid_argument);
  EXPECT_THAT(pbs("-W depend=afterok:2000000012.server -W block=true").options,
              ElementsAre("--wait", "--after", "12"));
  EXPECT_THAT(pbs("-W depend=after:2000000012,afternotok:2000000013 -r n").options,
              ElementsAre("--requeue=no", "--after-start", "12", "--after-failed", "13"));
  EXPECT_THAT(
      pbs("-W depend=afterok:2000000012:2000000014 -W depend=afterany:2000000013:2000000015")
          .options,
      ElementsAre("--after-any", "13", "--after-any", "15"))
      << "the last holds";
  EXPECT_TRUE(pbs("-z").is_quiet);
  EXPECT_THAT(pbs("-a 1830.15").options, ElementsAre("--begin", "18:30:15"));
  EXPECT_THAT(pbs("-a 01311830").options, ElementsAre("--begin", "01/31-18:30"));
  EXPECT_THAT(pbs("-a 202601311830").options, ElementsAre("--begin", "2026-01-31T18:30"));
}

TEST(PbsOptionsTest, ChunksAreNodes) {
  EXPECT_THAT(pbs("-l select=3:ncpus=2:mpiprocs=2:mem=1gb").options,
              ElementsAre("--nodes", "3", "--ntasks", "6", "--cpus", "2", "--mem", "1073741824"));
  EXPECT_THAT(pbs("-l nodes=2:ppn=4").options,
              ElementsAre("--nodes", "2", "--ntasks", "8", "--cpus", "4"));
  EXPECT_THAT(pbs("-l select=2 -l place=scatter").options,
              ElementsAre("--nodes", "2", "--ntasks", "2", "--cpus", "1"));
  const Terms packed = pbs("-l select=4:ncpus=2:mem=1gb -l place=pack:excl");
  EXPECT_THAT(packed.options, ElementsAre("--ntasks", "4", "--cpus", "8", "--mem", "4294967296"));
  EXPECT_EQ(packed.tasks, 4U);
  EXPECT_THAT(pbs("-l select=3 -l select=1:ncpus=4").options, ElementsAre("--cpus", "4"))
      << "the last holds";
}

TEST(PbsOptionsTest, OthersAreRefusedByName) {
  for (const char* line :
       {"-l select=0:ncpus=1", "-l select=1:ncpus=1+1:ncpus=2", "-l nodes=n1", "-l software=x",
        "-l walltime=soon", "-a 12000", "-a noon", "-r x", "-I", "-o host:/x", "-Q",
        "-W stagein=a@b:c", "-W nonsense=1", "-W depend=afterok:12.server", "-l", "-P lab",
        "-l mem=lots", "-l ncpus=0", "-j xx"})
    EXPECT_THAT(refused(pbs, line), HasSubstr("job.sh:2: '#PBS ")) << line;
  EXPECT_EQ(refused(pbs, "word"), "job.sh:2: 'word' is no option of qsub");
}

std::string spelled(const Directive& directive, std::string_view mark) {
  std::string all = "`";
  all += mark == "#SBATCH" ? "--" : "-";
  all += directive.name;
  if (directive.letter != 0) (all += "`, `-") += directive.letter;
  return all + "`";
}

void add_table(std::string& text, std::span<const Directive> directives, std::string_view mark,
               Fate fate, std::string_view title) {
  ((text += "\n### ") += mark) += title;
  text += "\n\n| option | |\n|---|---|\n";
  for (const Directive& one : directives) {
    if (one.fate != fate) continue;
    (((text += "| ") += spelled(one, mark)) += " | ") += one.what;
    text += " |\n";
  }
}

/// As they stand in docs/batch-scripts.md.
std::string directives_as_markdown(std::span<const Directive> directives, std::string_view mark) {
  std::string text;
  add_table(text, directives, mark, Fate::Holds, ": what holds");
  add_table(text, directives, mark, Fate::LeftOut, ": what is left out, with a word");
  add_table(text, directives, mark, Fate::Refused, ": what is refused");
  return text;
}

TEST(DirectivesTest, EachIsInOneListAndSaysWhy) {
  for (const auto& all : {slurm_directives(), pbs_directives()}) {
    std::set<std::string_view> names;
    for (const Directive& one : all) {
      EXPECT_TRUE(names.insert(one.name).second) << one.name;
      EXPECT_FALSE(one.what.empty()) << one.name;
    }
  }
  const std::string text = directives_as_markdown(slurm_directives(), "#SBATCH");
  EXPECT_THAT(text, HasSubstr("| `--account`, `-A` | `--account` |"));
  EXPECT_THAT(text, HasSubstr("| `--licenses`, `-L` | say licences"));
}

/// HPCBATCH_WRITE=1 writes the lists anew.
TEST(DirectivesTest, ThePageShowsThem) {
  std::ifstream page(HPCBATCH_DIRECTIVES_PAGE);
  std::stringstream read;
  read << page.rdbuf();
  const std::string text = read.str(), mark = "<!-- from here on written by tests/batch -->\n";
  const std::size_t at = text.find(mark);
  ASSERT_NE(at, std::string::npos);
  const std::string lists = directives_as_markdown(slurm_directives(), "#SBATCH") +
                            directives_as_markdown(pbs_directives(), "#PBS");
  if (std::getenv("HPCBATCH_WRITE") != nullptr)
    std::ofstream(HPCBATCH_DIRECTIVES_PAGE) << text.substr(0, at + mark.size()) + lists;
  else
    EXPECT_EQ(text.substr(at + mark.size()), lists) << "HPCBATCH_WRITE=1 batch_test writes it";
}

}  // namespace
}  // namespace hpcbatch::batch
