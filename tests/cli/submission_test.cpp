// What the user said of a task -> the JSON that the engine is sent.
#include "cli/tasks/submission.hpp"
#include "cli/process/process.hpp"

#include <gmock/gmock.h>
#include <boost/json/parse.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

TEST(Submission, OnlyWhatWasSaidIsSent) {
  WorkOptions work;
  work.command = {"echo", "a b"};
  EXPECT_EQ(task_of(work, "/here"), json::parse(R"({"command": ["echo", "a b"]})"));
}

TEST(Submission, NeedsKeepTheUsersSpelling) {
  WorkOptions work;
  work.command = {"true"};
  work.said = {{"cpus", {"0.5"}},    {"memory", {"8G"}},
               {"disk", {"100"}},    {"output_limit", {"none"}},
               {"time", {"1h30m"}},  {"gpus", {"a100:2"}},
               {"site", {"quartz"}}, {"not_sites", {"flint", "slate"}},
               {"tags", {"big"}},    {"retries", {"0"}},
               {"priority", {"-3"}}, {"hold", {"true"}},
               {"after", {"12"}}};
  EXPECT_EQ(
      task_of(work, "/here"),
      json::parse(
          R"({"command": ["true"], "cpus": 0.5, "memory": "8G", "disk": "100", "output_limit": "none",
      "time": "1h30m", "gpus": {"a100": 2}, "site": "quartz", "not_sites": ["flint", "slate"], "tags": ["big"], "retries": 0, "priority": -3,
      "hold": true, "after": ["12"]})"));
}

TEST(Submission, GpusOfAnyKindAreANumber) {
  WorkOptions work;
  work.command = {"true"};
  work.said["gpus"] = {"1"};
  EXPECT_EQ(task_of(work, "/here").at("gpus"), 1);
}

TEST(Submission, PathsAreMadeAbsoluteFromTheDirectoryOfTheTask) {
  WorkOptions work;
  work.said = {{"tool", {"ina"}},
               {"directory", {"sub"}},
               {"stdin", {"in.txt"}},
               {"stdout", {"/out.txt"}},
               {"inputs", {"audio=a.wav", "more=1", "more=2"}},
               {"outputs", {"csv=../o.csv"}}};
  const json::object task = task_of(work, "/here");
  EXPECT_EQ(task.at("directory"), "/here/sub");
  EXPECT_EQ(task.at("stdin"), "/here/sub/in.txt");
  EXPECT_EQ(task.at("stdout"), "/out.txt");
  EXPECT_EQ(task.at("inputs"),
            json::parse(R"({"audio": "/here/a.wav", "more": ["/here/1", "/here/2"]})"));
  EXPECT_EQ(task.at("outputs"), json::parse(R"({"csv": "/o.csv"})"));
}

TEST(Submission, NoPathBeginsInAFolderThatIsMistakenForTheHome) {
  const auto refusal = [](const std::string& key, const std::string& path) {
    WorkOptions work;
    work.said = {{"command", {"true"}}, {key, {path}}};
    try {
      return "taken: " + std::string(task_of(work, "/here").at(key).as_string());
    } catch (const CommandError& error) {
      return std::string(error.what());
    }
  };
  for (const char* key : {"stdout", "stdin", "directory"})
    EXPECT_THAT(refusal(key, "~/x"), testing::HasSubstr("'~/x': ~ is not read as your home here"));
  EXPECT_EQ(refusal("stdout", "./~/x"), "taken: /here/~/x");
  EXPECT_EQ(refusal("stdout", "~x"), "taken: /here/~x");
}

TEST(Submission, SharesDirectoryAndEnvironment) {
  const Surroundings around{.directory = "/here", .environment = {{"A", "1"}}, .umask = 027};
  EXPECT_EQ(
      submission_of({}, around, "shell:alice", "k"),
      json::parse(
          R"({"client": "shell:alice", "key": "k", "directory": "/here", "environment": {"A": "1"}, "umask": "0027", "tasks": []})"));
}

TEST(Submission, NamesTheTaskInWhichItIsMade) {
  const Surroundings around{.directory = "/here", .within = OwnTask{"12.3", "hb1.0"}};
  EXPECT_EQ(submission_of({}, around, "shell:alice", "k").at("within"),
            json::parse(R"({"task": "12.3", "pilot": "hb1.0"})"));
}

TEST(Submission, WhatTheKernelTakesMayHoldAnyBytes) {
  WorkOptions work;
  work.command = {"echo", "\xff"};
  work.said = {{"directory", {"d\xe9"}}, {"env", {"A=\xff"}}};
  const json::object task = task_of(work, "/here");
  EXPECT_EQ(task.at("command").at(1), json::value("\xff"));
  EXPECT_EQ(task.at("directory"), json::value("/here/d\xe9"));
  EXPECT_EQ(task.at("env").at("A"), json::value("\xff"));
}

TEST(Submission, WordsForPeopleAreUtf8) {
  WorkOptions work;
  work.command = {"true"};
  work.said["name"] = {"\xff"};
  EXPECT_THROW(task_of(work, "/here"), CommandError);
}

TEST(Submission, PathsThatItemsMakeAbsoluteStay) {
  WorkOptions work;
  work.command = {"fit", "{1}"};
  work.said = {{"stdout", {"{2.}.out"}}, {"stderr", {"none"}}, {"directory", {"{1}"}}};
  Items items{json::parse(R"([["run 1", "/in/a.bam"], ["run 2", "/in/b.bam"]])").as_array(), {}};
  const json::object task = task_of(work, "/here", items);
  EXPECT_EQ(task.at("directory"), "/here/{1}");
  EXPECT_EQ(task.at("stdout"), "{2.}.out");
  EXPECT_EQ(task.at("stderr"), "/dev/null");
  EXPECT_EQ(task.at("items"), items.items);
  items.items = json::parse(R"([{"a": 1}])").as_array();
  work.said["stdout"] = {"{a}.out"};
  EXPECT_EQ(task_of(work, "/here", items).at("stdout"), "/here/{1}/{a}.out");
}

TEST(Submission, AnItemsFolderKeepsItsTwoSlashes) {
  EXPECT_EQ(absolute_path("/here", "o/./{//}/{1//}.txt", {}), "/here/o/./{//}/{1//}.txt");
  EXPECT_EQ(absolute_path("/here", "o/./x", {}), "/here/o/x");
  EXPECT_EQ(absolute_path("/here", "{1}.o", {json::parse("[[1, null]]").as_array(), {}}),
            "/here/{1}.o")
      << "what the engine will refuse is no trouble here";
}

TEST(Submission, NoTwoKeysAreEqual) {
  EXPECT_NE(random_key(), random_key());
}

}  // namespace
}  // namespace hpcbatch
