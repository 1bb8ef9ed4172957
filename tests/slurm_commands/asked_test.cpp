// What Slurm's commands ask the engine for.
#include "fake_engine.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace hpcbatch::slurm_commands {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SlurmQuestions : public testing::Test {
 public:
  SlurmQuestions() {
    std::string pattern = testing::TempDir() + "slurm-asks-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SlurmQuestions() override { std::filesystem::remove_all(folder_); }

 protected:
  /// Of an engine with the array 12; what was asked of tasks.
  std::vector<std::string> asked_by(int (*command)(const Call&, const Session&),
                                    const std::vector<std::string>& words) {
    const std::string socket = folder_ + "/socket";
    std::filesystem::remove(socket);
    std::vector<std::string> targets;
    test::FakeEngine engine(
        socket, [](const test::FakeRequest& request, test::FakeConnection& connection) {
          const std::string_view target = request.target;
          const bool is_none = target.starts_with("/v1/arrays/") && target != "/v1/arrays/12";
          if (target.starts_with("/v1/tasks?"))
            connection.answer(
                200,
                R"({"tasks": [{"id": "12.1-9", "state": "waiting", "slurm_tasks": "2", "needs":
                    {"cpus": 2, "time": 600, "tags": ["account=lab", "partition=cpu"]}}]})");
          else
            connection.answer(is_none ? 404 : 200, R"({"id": "12", "total": 9, "arrays": []})");
        });
    Interrupt interrupt;
    command({"command", words, {}}, Session{Places{.home = folder_, .socket = socket}, interrupt});
    posted_ = "";
    for (const test::FakeRequest& request : engine.requests()) {
      if (request.target.starts_with("/v1/tasks?")) targets.push_back(request.target);
      if (request.method == "POST") posted_ = request.target + " " + request.body;
    }
    return targets;
  }
  std::string folder_, posted_;
};

TEST_F(SlurmQuestions, WhatAnUpdateCannotDoIsNotLeftOut) {
  const auto complaint = [&](const std::string& job, const std::string& change) {
    try {
      asked_by(scontrol, {"update", "JobId=" + job, change});
    } catch (const CommandFailed& failed) {
      return std::string(failed.what());
    }
    return "changed: " + posted_;
  };
  for (const std::string jobs :
       {"singleton", "afterok:2000000003,singleton", "afterok:2000000003?afterok:2000000004"})
    EXPECT_THAT(complaint("2000000012", "Dependency=" + jobs), HasSubstr("with a submit alone"));
  EXPECT_THAT(complaint("2000000012_3", "TimeLimit=5"), HasSubstr("changes arrays as a whole"));
  EXPECT_THAT(complaint("2000000012", "TimeLimit=5"), HasSubstr("changed: /v1/tasks/update"));
}

TEST_F(SlurmQuestions, AnUpdateIsToldAsItIsMeantHere) {
  const auto set_by = [&](std::vector<std::string> changes) {
    changes.insert(changes.begin(), {"update", "JobId=2000000012"});
    posted_ = "";
    try {
      asked_by(scontrol, changes);
    } catch (const CommandFailed& failed) {
      return std::string(failed.what());
    }
    const std::size_t set = posted_.find("\"set\":");
    return set == std::string::npos ? posted_ : posted_.substr(set + 6);
  };
  EXPECT_EQ(set_by({"TimeLimit=0:30"}), R"({"time":"60s"}})");
  EXPECT_EQ(set_by({"TimeLimit=+10"}), R"({"time":"1200s"}})");
  EXPECT_EQ(set_by({"timelimit-=1:00"}), R"({"time":"540s"}})");
  EXPECT_EQ(set_by({"TimeLimit=UNLIMITED"}), R"({"time":null}})");
  EXPECT_EQ(set_by({"Partition=gpu", "qos=long"}),
            R"({"tags":["account=lab","partition=gpu","qos=long"]}})");
  EXPECT_EQ(set_by({"Partition=hpcbatch", "Account="}), R"({"tags":[]}})");
  EXPECT_EQ(set_by({"CPUsPerTask=3", "MinMemoryCPU=100"}), R"({"cpus":6,"memory":"600M"}})");
  EXPECT_EQ(set_by({"MinMemoryNode=100", "Nice=-5", "JobName=a{b}"}),
            R"({"memory":"100M","priority":5,"name":"a{{b}}"}})");
  EXPECT_EQ(set_by({"Nice"}), R"({"priority":-100}})");
  EXPECT_EQ(set_by({"Priority=4294901770"}), R"({"priority":10}})");
  EXPECT_EQ(set_by({"Priority=100"}), R"({"priority":-1000000}})") << "behind all others";
  EXPECT_THAT(set_by({"Priority=0"}), HasSubstr("/v1/tasks/hold"));
  EXPECT_EQ(set_by({"nic=5"}), R"({"priority":-5}})");
  for (const char* unclear : {"n=5", "min=5", "p=5", "comment=why", "JobName"})
    EXPECT_THAT(set_by({unclear}), HasSubstr("not supported")) << unclear;
  for (const char* wrong : {"Requeue=maybe", "MinMemoryNode=lots", "NumCPUs=x", "TimeLimit=soon",
                            "TimeLimit=-10", "Deadline=2020-01-01", "StartTime=whenever"})
    EXPECT_THAT(set_by({wrong}), HasSubstr("Invalid")) << wrong;
}

TEST_F(SlurmQuestions, WhatHasEndedIsAskedForWhereItIsShown) {
  const auto open_alone = AllOf(HasSubstr("&open=1"), Not(HasSubstr("ended_since")));
  EXPECT_THAT(asked_by(squeue, {"-h"}), ElementsAre(open_alone));
  EXPECT_THAT(asked_by(squeue, {"-h", "-t", "PD,R"}), ElementsAre(open_alone));
  EXPECT_THAT(asked_by(squeue, {"-h", "-t", "all"}), ElementsAre(HasSubstr("&ended_since=")));
  EXPECT_THAT(asked_by(squeue, {"-h", "-t", "F"}), ElementsAre(HasSubstr("&ended_since=")));
  EXPECT_THAT(asked_by(sacct, {"-n"}), ElementsAre(HasSubstr("&ended_since=")));
  EXPECT_THAT(asked_by(scancel, {"--me"}), ElementsAre(open_alone));
}

TEST_F(SlurmQuestions, AnArraysHistoryIsForThoseThatTellIt) {
  const auto recent = AllOf(HasSubstr("&array=12&open=1&ended_since="));
  EXPECT_THAT(asked_by(squeue, {"-h", "-j", "2000000012"}), ElementsAre(recent));
  EXPECT_THAT(asked_by(scancel, {"2000000012"}), ElementsAre(recent));
  EXPECT_THAT(asked_by(scontrol, {"hold", "2000000012"}), ElementsAre(recent));
  const auto whole = AllOf(HasSubstr("&array=12"), Not(HasSubstr("&open=1")));
  EXPECT_THAT(asked_by(sacct, {"-n", "-j", "2000000012"}), ElementsAre(whole));
  EXPECT_THAT(asked_by(scontrol, {"show", "job", "2000000012"}), ElementsAre(whole));
  EXPECT_THAT(asked_by(scancel, {"2000000077"}), IsEmpty()) << "there is none";
}

TEST_F(SlurmQuestions, NodesAreToldByTheirStatesAndNames) {
  const auto told = [&](const std::vector<std::string>& words) {
    testing::internal::CaptureStdout();
    asked_by(sinfo, words);
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
  };
  const std::string all = told({"-h", "-o", "%P %t"});
  EXPECT_EQ(all, "hpcbatch* idle\n");
  EXPECT_EQ(told({"-h", "-o", "%P %t", "-t", "IDLE,mix"}), all);
  EXPECT_EQ(told({"-h", "-o", "%P %t", "-t", "down,drain"}), "");
  EXPECT_EQ(told({"-h", "-o", "%P %t", "-n", "hpcbatch,n[1-2]"}), all);
  EXPECT_EQ(told({"-h", "-o", "%P %t", "-n", "n[1-2]"}), "");
  EXPECT_THROW(asked_by(sinfo, {"-t", "tired"}), CommandFailed);
}

TEST_F(SlurmQuestions, AccountingLooksAtAWindow) {
  const auto since = [&](const std::vector<std::string>& words) {
    const auto targets = asked_by(sacct, words);
    return targets.at(0).substr(targets.at(0).find("ended_since="));
  };
  EXPECT_EQ(since({"-n", "-S", "uts1700000000"}), "ended_since=1700000000");
  EXPECT_NE(since({"-n", "-s", "F"}), since({"-n"})) << "those that fail now, not today";
  EXPECT_THROW(asked_by(sacct, {"-S", "now", "-E", "now-1hour"}), CommandFailed);
  EXPECT_THROW(asked_by(sacct, {"-u", "nobody-of-that-name"}), CommandFailed);
  EXPECT_THROW(asked_by(sacct, {"-s", "tired"}), CommandFailed);
}

TEST_F(SlurmQuestions, NothingElseIsCancelledWhereAWordIsEmpty) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{""},
                                             {"", "2000000012"},
                                             {"-u", ""},
                                             {"-u", "nobody-of-that-name"},
                                             {","},
                                             {"-t", ""},
                                             {"-t", "PD,R"},
                                             {"-t", "tired"}}) {
    posted_ = "";
    EXPECT_THROW(asked_by(scancel, words), CommandFailed);
    EXPECT_EQ(posted_, "");
  }
  for (const char* option : {"-n", "-p", "-A", "-q", "-w"}) {
    asked_by(scancel, {option, ""});
    EXPECT_EQ(posted_, "") << option;
    asked_by(scancel, {option, "", "2000000012"});
    EXPECT_EQ(posted_, "") << option;
  }
}

TEST_F(SlurmQuestions, OnlyTheNamedElementsAreHeld) {
  asked_by(scontrol, {"hold", "2000000012_5"});
  EXPECT_EQ(posted_, R"(/v1/tasks/hold {"ids":["12.5"]})");
  asked_by(scancel, {"2000000012_[2-3]"});
  EXPECT_EQ(posted_, R"(/v1/tasks/cancel {"ids":["12.2-3"]})");
}

}  // namespace
}  // namespace hpcbatch::slurm_commands
