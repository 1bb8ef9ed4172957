// What the user typed -> what is to be done.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "cli/process/process.hpp"

#include <gmock/gmock.h>

#include <ctime>
#include <filesystem>

#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

template <class Wanted>
Wanted parsed(const std::vector<std::string>& words) {
  return std::get<Wanted>(parse_command(words));
}

struct Refusal {
  int exit_code{0};
  std::string text;
};

Refusal refusal(const std::vector<std::string>& words) {
  try {
    parse_command(words);
  } catch (const CommandError& error) {
    return {error.exit_code(), error.what()};
  }
  return {};
}

TEST(Parse, InAFolderThatIsGoneOnlyWhatNeedsItIsRefused) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path gone =
      std::filesystem::temp_directory_path() / ("hpcbatch-gone-" + std::to_string(::getpid()));
  std::filesystem::create_directory(gone);
  std::filesystem::current_path(gone);
  std::filesystem::remove(gone);
  EXPECT_EQ(refusal({"list"}).text, "");
  EXPECT_EQ(refusal({"wait", "12"}).text, "");
  EXPECT_THAT(refusal({"tools", "new", "loudness"}).text,
              HasSubstr("cannot tell the current directory: No such file or directory; change to "
                        "one that exists"));
  std::filesystem::current_path(before);
}

TEST(Parse, RunTakesNeedsAndWhateverStandsAfterTheDashes) {
  const auto run = parsed<RunCommand>(
      {"run", "--cpus", "4",    "--mem", "8G",    "--gpus", "a100:2", "--time", "1h30m", "--tag",
       "big", "--tag",  "fast", "--env", "K=a=b", "--",     "sh",     "--cpus", "--",    "-c"});
  EXPECT_EQ(run.work.one("cpus"), "4");
  EXPECT_EQ(run.work.one("memory"), "8G");
  EXPECT_EQ(run.work.one("gpus"), "a100:2");
  EXPECT_EQ(run.work.one("time"), "1h30m");
  EXPECT_THAT(run.work.said.at("tags"), ElementsAre("big", "fast"));
  EXPECT_THAT(run.work.pairs("env"), ElementsAre(Pair("K", "a=b")));
  EXPECT_THAT(run.work.command, ElementsAre("sh", "--cpus", "--", "-c"));
}

TEST(Parse, SitesMayBeNamedAndExcluded) {
  const auto submit =
      parsed<SubmitCommand>({"submit", "--not-site", "far", "--not-site", "slow", "--", "true"});
  EXPECT_THAT(submit.work.said.at("not_sites"), ElementsAre("far", "slow"));
  EXPECT_EQ(parsed<RunCommand>({"run", "--site", "near", "--", "true"}).work.one("site"), "near");
}

TEST(Parse, SubmitTakesArraysDependenciesAndKeys) {
  const auto submit = parsed<SubmitCommand>(
      {"submit",       "--array", "1-100:5%20", "--after", "12",     "--after-any", "13.1-9",
       "--after-each", "14",      "--key",      "k",       "--hold", "--priority",  "-5",
       "--retries",    "2",       "--nodes",    "1",       "--json", "--",          "true"});
  ASSERT_TRUE(submit.many.array);
  EXPECT_EQ(submit.many.array->indices, "1-100:5");
  EXPECT_EQ(submit.many.array->max_running, 20u);
  EXPECT_THAT(submit.work.said.at("after"), ElementsAre("12"));
  EXPECT_THAT(submit.work.said.at("after_any"), ElementsAre("13.1-9"));
  EXPECT_THAT(submit.work.said.at("after_each"), ElementsAre("14"));
  EXPECT_EQ(submit.key, "k");
  EXPECT_TRUE(submit.work.says("hold"));
  EXPECT_EQ(submit.work.one("priority"), "-5");
  EXPECT_EQ(submit.work.one("retries"), "2");
  EXPECT_TRUE(submit.json);
}

TEST(Parse, AToolStandsInPlaceOfACommand) {
  const auto submit = parsed<SubmitCommand>({"submit", "--tool", "ina", "--param", "a=1", "--input",
                                             "audio=x.wav", "--output", "csv=/o.csv"});
  EXPECT_EQ(submit.work.one("tool"), "ina");
  EXPECT_THAT(submit.work.pairs("parameters"), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(submit.work.pairs("inputs"), ElementsAre(Pair("audio", "x.wav")));
  EXPECT_THAT(submit.work.pairs("outputs"), ElementsAre(Pair("csv", "/o.csv")));
  EXPECT_EQ(refusal({"submit", "--tool", "ina", "--", "true"}).exit_code, 2);
  EXPECT_EQ(refusal({"submit", "--param", "a=1", "--", "true"}).exit_code, 2);
}

TEST(Parse, NodesAreAWholeNumber) {
  EXPECT_EQ(parsed<SubmitCommand>({"submit", "--nodes", "2", "--", "true"}).work.one("nodes"), "2");
  const Refusal refused = refusal({"submit", "--nodes", "0", "--", "true"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.text, HasSubstr("--nodes"));
}

TEST(Parse, MalformedNeedsNameTheirFlag) {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--cpus", "many"},
                                                        {"--cpus", "-1"},
                                                        {"--mem", "8Q"},
                                                        {"--disk", ""},
                                                        {"--output-limit", "all"},
                                                        {"--gpus", "a100:x"},
                                                        {"--gpus", ":2"},
                                                        {"--time", "soon"},
                                                        {"--env", "HPCBATCH_NOT_SET_ANYWHERE"},
                                                        {"--after", "x"},
                                                        {"--array", "9-1"},
                                                        {"--array", "1-9%0"}}) {
    const Refusal refused = refusal({"submit", flag, value, "--", "true"});
    EXPECT_EQ(refused.exit_code, 2) << flag << " " << value;
    EXPECT_THAT(refused.text, HasSubstr(flag)) << value;
  }
}

TEST(Parse, AnEmptyValueIsNotAsIfNothingHadBeenSaid) {
  for (const std::string flag :
       {"--site", "--key", "--each", "--tool", "--container", "--cwd", "--stdin", "--stdout",
        "--name", "--mem", "--tag", "--account", "--not-site"}) {
    const Refusal refused = refusal({"submit", flag, "", "--", "true"});
    EXPECT_EQ(refused.exit_code, 2) << flag;
    EXPECT_THAT(refused.text, HasSubstr(flag + ": an empty value; leave the option out"));
  }
  EXPECT_EQ(refusal({"submit", "--file", ""}).exit_code, 2);
  EXPECT_EQ(refusal({"run", "--site", "", "--", "true"}).exit_code, 125);
  parsed<SubmitCommand>({"submit", "--env", "EMPTY=", "--", "printf", ""});
}

TEST(Parse, ANumberOfLinesIsFromOneUp) {
  for (const char* wrong : {"0", "-1", "1.5", "many"})
    EXPECT_THAT(refusal({"list", "--limit", wrong}).text,
                HasSubstr(std::string("'") + wrong + "' is no number from 1 up"));
}

TEST(Parse, RunFailsWithItsOwnCodeBecauseTheOthersAreTheTasks) {
  EXPECT_EQ(refusal({"run", "--cpus", "x", "--", "true"}).exit_code, 125);
  EXPECT_EQ(refusal({"run"}).exit_code, 125);
  EXPECT_THAT(refusal({"run", "true"}).text, HasSubstr("true"));
}

TEST(Parse, ASplitRunsNoNameOfAFile) {
  const auto split = [](std::vector<std::string> command) {
    std::vector<std::string> words{"split", "--inputs", "l", "--files-per-task",
                                   "2",     "--result", "r", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  };
  const Refusal refused = refusal(split({"sh", "-c", "cat {files} > {out}"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.text, HasSubstr("'{files}' stands in the program of a shell"));
  EXPECT_THAT(refused.text, HasSubstr("sh -c '... \"$1\"' sh {files}, or write {files:q} there"));
  EXPECT_EQ(refusal(split({"yash", "-c", "cat {reuse} {list} > {out}"})).exit_code, 2);
  EXPECT_NO_THROW(parsed<SplitCommand>(split({"sh", "-c", "cat {files:q} > {out}"})));
  EXPECT_THAT(refusal(split({"cat", "{files}", "{file}", "{out}"})).text,
              HasSubstr("'{file}' stands for nothing"));
  EXPECT_NO_THROW(parsed<SplitCommand>(split({"awk", "{print}", "{files}", "{out}"})));
  EXPECT_NO_THROW(parsed<SplitCommand>(split({"sh", "-c", "cat \"$@\" > {out}", "sh", "{files}"})));
}

TEST(Parse, AFileSaysWhatItsTasksRun) {
  EXPECT_EQ(parsed<SubmitCommand>({"submit", "--file", "-"}).file, "-");
  EXPECT_EQ(refusal({"submit", "--file", "t.yaml", "--", "true"}).exit_code, 2);
  EXPECT_EQ(refusal({"submit", "--skip-done", "1", "--array", "1-3", "--", "true"}).exit_code, 2);
}

TEST(Parse, ItemsMayBeginAsOptionsDo) {
  const auto words = [](std::vector<std::string> items) {
    items.insert(items.begin(), "run");
    items.insert(items.end(), {"--", "tool", "{}"});
    return parsed<RunCommand>(items).many.items.sources.at(0).words;
  };
  EXPECT_THAT(words({"--items", "-5", "0", "-0.5"}), ElementsAre("-5", "0", "-0.5"));
  EXPECT_THAT(words({"--items", "-l -a", "-x", "b", "--cpus", "2"}),
              ElementsAre("-l -a", "-x", "b"));
  EXPECT_THAT(words({"--items=-h"}), ElementsAre("-h"));
  EXPECT_THAT(words({"--items=--cpus", "2"}), ElementsAre("--cpus", "2"));
  EXPECT_THAT(words({"--items", "a", "--", "-x"}), ElementsAre("a")) << "the command is its own";
}

TEST(Parse, ItemsKeepTheOrderInWhichTheyAreNamed) {
  const auto run = parsed<RunCommand>({"run", "--each", "a", "--items", "x", "y", "--each", "b",
                                       "--items", "1", "--link", "--", "tool", "{1}"});
  const auto& sources = run.many.items.sources;
  ASSERT_EQ(sources.size(), 4U);
  EXPECT_EQ(sources[0].file, "a");
  EXPECT_THAT(sources[1].words, ElementsAre("x", "y"));
  EXPECT_EQ(sources[2].file, "b");
  EXPECT_THAT(sources[3].words, ElementsAre("1"));
  EXPECT_TRUE(run.many.items.link);
  EXPECT_THAT(run.work.command, ElementsAre("tool", "{1}"));
}

TEST(Parse, HaltsAreSpelledAsGnuParallelsOrByANumber) {
  const auto halt = [](const std::string& flag, const std::string& value) {
    return parsed<SubmitCommand>({"submit", flag, value, "--array", "1-9", "--", "true"}).many.halt;
  };
  EXPECT_EQ(halt("--max-fails", "3")->failures, 3U);
  EXPECT_FALSE(halt("--max-fails", "3")->ends_running);
  EXPECT_EQ(halt("--halt", "soon,fail=3")->failures, 2U);
  EXPECT_TRUE(halt("--halt", "now,fail=1")->ends_running);
  EXPECT_EQ(halt("--halt", "now,fail=12.5%")->share, 0.125);
  EXPECT_FALSE(halt("--halt", "never"));
  for (const char* wrong : {"", "soon", "soon,fail", "soon,fail=0", "later,fail=1", "now,fail=200%",
                            "now,fail=-1", "soon,fail=x%"})
    EXPECT_EQ(refusal({"submit", "--halt", wrong, "--array", "1-9", "--", "true"}).exit_code, 2)
        << wrong;
  EXPECT_THAT(refusal({"submit", "--halt", "now,success=1", "--array", "1-9", "--", "true"}).text,
              HasSubstr("failures alone"));
  EXPECT_THAT(refusal({"submit", "--max-fails", "1", "--", "true"}).text,
              HasSubstr("belong to --each, --items or --array"));
}

TEST(Parse, IdsAreCheckedBeforeTheEngineIsAsked) {
  EXPECT_THAT(
      parsed<WaitCommand>({"wait", "12", "12.345", "12.1-99", "12.3,7-9", "last", "last.4"}).ids,
      ElementsAre("12", "12.345", "12.1-99", "12.3,7-9", "last", "last.4"));
  for (const char* bad :
       {"", "x", "12.", "12.x", "0", "-1", "12.9-1", "lasts", "last.", "12/../13", "12?x=1"}) {
    EXPECT_EQ(refusal({"cancel", "--", bad}).exit_code, 2) << bad;
  }
  EXPECT_EQ(refusal({"wait"}).exit_code, 2);
  EXPECT_THAT(refusal({"cancel"}).text, HasSubstr("which ones? Say ids"));
  EXPECT_EQ(parsed<ChangeCommand>({"cancel", "--name", "sweep*"}).name, "sweep*");
}

TEST(Parse, AListIsOfSubmissionsOrOfTasks) {
  EXPECT_THAT(parsed<ListCommand>({"list"}).ids, IsEmpty());
  EXPECT_THAT(parsed<ListCommand>({"list", "12", "14-16"}).ids, ElementsAre("12", "14-16"));
  EXPECT_TRUE(parsed<ListCommand>({"list", "--tasks"}).tasks);
  const auto since = parsed<ListCommand>({"list", "--since", "2h"}).since;
  EXPECT_NEAR(static_cast<double>(*since), static_cast<double>(std::time(nullptr) - 7200), 5);
  EXPECT_EQ(parsed<ListCommand>({"list", "-n", "7"}).limit, 7U);
  EXPECT_THAT(refusal({"list", "--since", "soon"}).text, HasSubstr("is neither a duration"));
  EXPECT_THAT(refusal({"list", "--failure", "oom"}).text, HasSubstr("'oom' is not a failure"));
  EXPECT_THAT(refusal({"list", "12", "--tool", "ina"}).text, HasSubstr("choose submissions"));
}

TEST(Parse, EveryVerbHasItsCommand) {
  using Change = ChangeCommand::Change;
  EXPECT_EQ(parsed<ChangeCommand>({"cancel", "1"}).change, Change::Cancel);
  EXPECT_EQ(parsed<ChangeCommand>({"hold", "1"}).change, Change::Hold);
  EXPECT_EQ(parsed<ChangeCommand>({"release", "1"}).change, Change::Release);
  EXPECT_EQ(parsed<ChangeCommand>({"retry", "1"}).change, Change::Retry);
  EXPECT_EQ(parsed<ListCommand>({"list", "--state", "failed"}).state, "failed");
  EXPECT_THAT(parsed<ShowCommand>({"show", "12.3"}).ids, ElementsAre("12.3"));
  EXPECT_EQ(parsed<ShowCommand>({"show", "--name", "sweep"}).name, "sweep");
  EXPECT_EQ(refusal({"show"}).exit_code, 2);
  EXPECT_TRUE(parsed<LogCommand>({"log", "-f", "12"}).follow);
  EXPECT_FALSE(parsed<LogCommand>({"log", "--stderr", "12"}).standard_output);
  EXPECT_THAT(parsed<ExplainCommand>({"explain", "12", "last"}).ids, ElementsAre("12", "last"));
  EXPECT_EQ(refusal({"explain"}).exit_code, 2);
  EXPECT_EQ(refusal({"log"}).exit_code, 2);
  EXPECT_EQ(parsed<EngineStopCommand>({"engine", "stop", "--drain"}).mode(),
            EngineStopCommand::Mode::Drain);
  EXPECT_EQ(parsed<EngineStopCommand>({"engine", "stop"}).mode(), EngineStopCommand::Mode::Leave);
  EXPECT_TRUE(parsed<EngineStatusCommand>({"engine", "status", "--json"}).json);
  EXPECT_TRUE(parsed<DoctorCommand>({"doctor", "--json"}).json);
  EXPECT_EQ(parsed<FsckOptions>({"fsck"}).store, "");
  const FsckOptions salvage = parsed<FsckOptions>({"fsck", "/a/b.db", "--salvage", "/c", "--json"});
  EXPECT_EQ(salvage.store + salvage.salvage, "/a/b.db/c");
  EXPECT_TRUE(salvage.json);
  EXPECT_EQ(parsed<BackupCommand>({"backup", "/a/copy.db"}).file, "/a/copy.db");
  EXPECT_EQ(parsed<WebCommand>({"web", "--port", "8080", "--view"}).port, 8080);
  EXPECT_EQ(parsed<BatchCommandsCommand>({"slurm-commands", "/a/bin"}).directory, "/a/bin");
  EXPECT_TRUE(parsed<BatchCommandsCommand>({"pbs-commands", "/a/bin"}).of_pbs);
  EXPECT_TRUE(parsed<TopCommand>({"top", "--once"}).once);
}

TEST(Parse, ThingsAreListedShownAndChecked) {
  using Act = InventoryCommand::Act;
  const auto list = parsed<InventoryCommand>({"pilots", "--json"});
  EXPECT_EQ(list.kind, InventoryCommand::Kind::Pilots);
  EXPECT_EQ(list.act, Act::List);
  EXPECT_TRUE(list.json);
  const auto check = parsed<InventoryCommand>({"sites", "check", "list"});
  EXPECT_EQ(check.act, Act::Check);
  EXPECT_EQ(check.name, "list");
  EXPECT_EQ(parsed<InventoryCommand>({"tools", "show", "ina"}).act, Act::Show);
  EXPECT_EQ(refusal({"pilots", "check", "x"}).exit_code, 2);
  const auto clean = parsed<InventoryCommand>({"sites", "clean", "here", "--dry-run", "--json"});
  EXPECT_EQ(clean.act, Act::Clean);
  EXPECT_EQ(clean.name, "here");
  EXPECT_TRUE(clean.dry_run && clean.json);
  EXPECT_FALSE(parsed<InventoryCommand>({"sites", "clean", "here"}).dry_run);
  EXPECT_EQ(refusal({"sites", "clean"}).exit_code, 2);
  const auto resume = parsed<InventoryCommand>({"sites", "resume", "here", "--json"});
  EXPECT_EQ(resume.act, Act::Resume);
  EXPECT_EQ(resume.name, "here");
  EXPECT_TRUE(resume.json);
  EXPECT_EQ(refusal({"sites", "resume"}).exit_code, 2);
  EXPECT_EQ(refusal({"tools", "clean", "x"}).exit_code, 2);
  EXPECT_EQ(refusal({"sites", "show"}).exit_code, 2);
}

TEST(Parse, AToolIsBegunSomewhere) {
  const auto here = parsed<NewToolCommand>({"tools", "new", "mine"});
  EXPECT_EQ(here.name, "mine");
  EXPECT_EQ(here.directory, std::filesystem::current_path());
  EXPECT_EQ(parsed<NewToolCommand>({"tools", "new", "mine", "--dir", "/a/b/"}).directory, "/a/b");
  EXPECT_EQ(refusal({"tools", "new"}).exit_code, 2);
  EXPECT_EQ(refusal({"sites", "new", "x"}).exit_code, 2);
}

TEST(Parse, TheEngineIsToldHowItWasStarted) {
  const auto options = parsed<EngineOptions>(
      {"engine", "run", "--started-by-client", "--ready-fd", "3", "--config", "/c.yaml"});
  EXPECT_TRUE(options.started_by_client);
  EXPECT_FALSE(options.limits_of_session);
  EXPECT_TRUE(parsed<EngineOptions>({"engine", "run", "--limits-of-session"}).limits_of_session);
  EXPECT_EQ(options.ready_descriptor, 3);
  EXPECT_EQ(options.config, "/c.yaml");
  EXPECT_TRUE(parsed<EngineOptions>({"engine", "run", "--check-config"}).check_config);
}

TEST(Parse, ADropBoxHasAbsoluteFolders) {
  const auto box = parsed<DropboxCommand>(
      {"dropbox", "/in/../box/", "--allow", "/a", "--allow", "/b", "--var", "k=v"});
  EXPECT_EQ(box.directory, "/box");
  EXPECT_THAT(box.allow, ElementsAre("/a", "/b"));
  EXPECT_THAT(box.variables, ElementsAre(Pair("k", "v")));
  EXPECT_EQ(parsed<DropboxCommand>({"dropbox"}).directory, "");
  EXPECT_EQ(refusal({"dropbox", "--allow", "/a"}).exit_code, 2);
  EXPECT_TRUE(parsed<DropboxCommand>({"dropbox", "/box", "--remove"}).remove);
  EXPECT_EQ(refusal({"dropbox", "--remove"}).exit_code, 2);
  EXPECT_EQ(refusal({"dropbox", "/box", "--remove", "--allow", "/a"}).exit_code, 2);
}

TEST(Parse, HelpIsThereForAllAndForEachVerb) {
  EXPECT_THAT(parsed<ShowText>({}).text, HasSubstr("submit -- CMD"));
  EXPECT_TRUE(std::holds_alternative<ShowVersion>(parse_command({"--version"})));
  for (const char* verb :
       {"run",   "submit", "wait",   "cancel",  "hold",    "release",     "retry",
        "list",  "show",   "log",    "explain", "sites",   "allocations", "pilots",
        "tools", "engine", "doctor", "top",     "dropbox", "fsck",        "backup"}) {
    EXPECT_THAT(parsed<ShowText>({verb, "--help"}).text, HasSubstr(std::string("hpcbatch ") + verb))
        << verb;
    EXPECT_THAT(parsed<ShowText>({verb, "--help"}).text, HasSubstr("Example")) << verb;
  }
  EXPECT_THAT(refusal({"lits"}).text, HasSubstr("did you mean 'list'?"));
  EXPECT_THAT(refusal({"submit", "--cpu", "2", "--", "true"}).text,
              HasSubstr("did you mean --cpus?"));
}

TEST(Spelled, GpusAreANumberOrKindsAndNotBoth) {
  EXPECT_EQ(refusal({"run", "--gpus", "1", "--gpus", "a100:1", "--", "true"}).exit_code, 125);
}

}  // namespace
}  // namespace hpcbatch
