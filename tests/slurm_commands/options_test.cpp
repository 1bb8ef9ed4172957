// The command line of Slurm's commands, times and lists of nodes.
#include "slurm_commands/options.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/times.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <ctime>

namespace hpcbatch::slurm_commands {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string why_refused(const OptionTable& table, const std::vector<std::string>& words) {
  try {
    parse_options(table, words);
    return "taken";
  } catch (const CommandFailed& error) {
    return error.what();
  }
}

TEST(SlurmCommandLine, AllSpellingsMeanTheSame) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"-J", "a b"}, {"-Ja b"}, {"--job-name=a b"}, {"--job-name", "a b"}, {"--job-na=a b"}}) {
    EXPECT_THAT(parse_options(sbatch_options(), words).options,
                ElementsAre(Pair("job-name", "a b")));
  }
  EXPECT_THAT(parse_options(squeue_options(), {"-hu", "me", "-o%i"}).options,
              ElementsAre(Pair("noheader", ""), Pair("user", "me"), Pair("format", "%i")));
}

TEST(SlurmCommandLine, WhatStandsBehindAScriptIsTheScripts) {
  const Parsed parsed = parse_options(sbatch_options(), {"-c", "2", "job.sh", "-c", "3"});
  EXPECT_THAT(parsed.options, ElementsAre(Pair("cpus-per-task", "2")));
  EXPECT_THAT(parsed.words, ElementsAre("job.sh", "-c", "3"));
  const Parsed mixed = parse_options(scancel_options(), {"12", "-Q", "--", "-13"});
  EXPECT_TRUE(mixed.has("quiet"));
  EXPECT_THAT(mixed.words, ElementsAre("12", "-13"));
}

TEST(SlurmCommandLine, OptionsThatMayHaveAValue) {
  const Parsed parsed = parse_options(squeue_options(), {"-j", "12"});
  EXPECT_THAT(parsed.options, ElementsAre(Pair("jobs", "")));
  EXPECT_THAT(parsed.words, ElementsAre("12"));
  EXPECT_EQ(parse_options(squeue_options(), {"--job=1,2"}).value("jobs"), "1,2");
  EXPECT_THAT(parse_options(sacct_options(), {"-j", "1,2", "--jobs=3"}).list("jobs"),
              ElementsAre("1", "2", "3"));
}

TEST(SlurmCommandLine, MistakesAreToldAsByGetopt) {
  EXPECT_THAT(why_refused(sbatch_options(), {"--nonsense"}),
              HasSubstr("sbatch: unrecognized option '--nonsense'\nTry \"sbatch --help\""));
  EXPECT_THAT(why_refused(sbatch_options(), {"-J"}), HasSubstr("requires an argument -- 'J'"));
  EXPECT_THAT(why_refused(sbatch_options(), {"--gpu=1"}), HasSubstr("ambiguous"));
  EXPECT_THAT(why_refused(sbatch_options(), {"--parsable=1"}), HasSubstr("doesn't allow"));
  EXPECT_THAT(why_refused(srun_options(), {"--pty", "x"}),
              HasSubstr("srun: error: --pty has nothing like it"));
}

TEST(SlurmCommandLine, WhatTakesNoValueGetsNoneFromAVariable) {
  EXPECT_EQ(sbatch_word("requeue", "1"), "--requeue");
  EXPECT_EQ(sbatch_word("no-requeue", "yes"), "--no-requeue");
  EXPECT_EQ(sbatch_word("exclusive", "1"), "--exclusive");
  EXPECT_EQ(sbatch_word("exclusive", "user"), "--exclusive=user");
  EXPECT_EQ(sbatch_word("nice", ""), "--nice");
  EXPECT_EQ(sbatch_word("comment", ""), "--comment=");
  EXPECT_EQ(sbatch_word("job-name", "it's \"1\""), "--job-name=it's \"1\"");
}

TEST(SlurmTimes, DurationsAndMemory) {
  EXPECT_EQ(short_duration(5), "0:05");
  EXPECT_EQ(short_duration(3723), "1:02:03");
  EXPECT_EQ(short_duration(90061), "1-01:01:01");
  EXPECT_EQ(long_duration(5.9), "00:00:05");
  EXPECT_EQ(long_duration(90061), "1-01:01:01");
  EXPECT_EQ(short_duration(-1), "0:00");
  EXPECT_EQ(memory_text(0), "0M");
  EXPECT_EQ(memory_text(std::uint64_t{1500} << 20U), "1500M");
  EXPECT_EQ(memory_text(std::uint64_t{4} << 30U), "4G");
}

TEST(SlurmTimes, AreWrittenAsSlurmWritesThem) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  constexpr double kNow = 1'800'000'000;  // 2027-01-15T08:00:00
  EXPECT_EQ(moment(kNow, ""), "2027-01-15T08:00:00");
  EXPECT_EQ(moment(kNow, "%s"), "1800000000");
}

TEST(SlurmHosts, NamesShareBrackets) {
  EXPECT_EQ(host_list({"n1", "n2", "n3", "m01", "m03", "login"}), "n[1-3],m[01,03],login");
  EXPECT_EQ(host_list({"n9", "n10", "n011"}), "n[9-10,011]");
  EXPECT_EQ(host_list({"n7"}), "n7");
  EXPECT_EQ(host_list({}), "");
}

TEST(SlurmHosts, BracketsStandForEachName) {
  EXPECT_THAT(expand_hosts("a,n[1-3,07-08]x"),
              ElementsAre("a", "n1x", "n2x", "n3x", "n07x", "n08x"));
  EXPECT_THAT(expand_hosts("r[1-2]n[1-2]"), ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
  EXPECT_THAT(expand_hosts(""), IsEmpty());
  EXPECT_THAT(expand_hosts("n[18446744073709551615]"), ElementsAre("n18446744073709551615"));
  for (const char* wrong :
       {"n[1-3", "n[3-1]", "n[a]", "n[1x-2]", "n[1-100000]", "n[1-60000]x[1-60000]"})
    EXPECT_THROW(expand_hosts(wrong), CommandFailed) << wrong;
}

}  // namespace
}  // namespace hpcbatch::slurm_commands
