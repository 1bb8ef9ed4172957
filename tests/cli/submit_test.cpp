// `submit` against a fake engine: what it sends, what it prints, and that an answer that is lost
// submits nothing twice.
#include "verb_test.hpp"

#include <atomic>
#include <filesystem>

#include <signal.h>

namespace hpcbatch::test {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

class SubmitTest : public VerbTest {
 protected:
  void accept(const std::string& ids = R"(["12"])") {
    engine_answers({{"POST /v1/tasks", "{\"ids\": " + ids + "}"}});
  }
  json::array tasks() { return body_of("POST", "/v1/tasks").at("tasks").as_array(); }
};

TEST_F(SubmitTest, PrintsTheIdAlone) {
  accept();
  const CliResult result = cli({"submit", "--array", "1-100:5%20", "--", "true"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "12\n");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(tasks(),
            json::parse(R"([{"command": ["true"], "array": "1-100:5", "max_running": 20}])"));
}

TEST_F(SubmitTest, JsonIsOneObjectALine) {
  accept(R"(["12", "13"])");
  EXPECT_EQ(cli({"submit", "--json", "--file",
                 file("t.jsonl", "{\"command\": [\"a\"]}\n{\"command\": [\"b\"]}\n")})
                .out,
            "{\"id\":\"12\"}\n{\"id\":\"13\"}\n");
}

TEST_F(SubmitTest, AFileIsOneId) {
  accept(R"(["12", "13", "14"])");
  const std::string tasks = file("t.toml", "[[tasks]]\ncommand = [\"a\"]\n");
  EXPECT_EQ(cli({"submit", "--file", tasks}).out, "12-14\n");
}

TEST_F(SubmitTest, RangesAndTheLastAreWaitedFor) {
  engine_answers(
      {{"GET /v1/arrays?limit=1&client=" + me(), R"({"arrays": [{"id": "9", "submit": "8-9"}]})"},
       {"POST /v1/tasks", R"({"ids": ["12"]})"}});
  EXPECT_EQ(
      cli({"submit", "--after", "last", "--after-any", "3-4", "--after", "7", "--", "a"}).exit_code,
      0);
  EXPECT_EQ(
      tasks(),
      json::parse(R"([{"command": ["a"], "after": ["8", "9", "7"], "after_any": ["3", "4"]}])"));
}

TEST_F(SubmitTest, EachLineIsATask) {
  accept();
  CliOptions options;
  options.input = "a.wav\nb c.wav\n";
  EXPECT_EQ(cli({"submit", "--each", "-", "--", "play", "{}"}, options).exit_code, 0);
  EXPECT_EQ(tasks(),
            json::parse(R"([{"command": ["play", "{}"], "items": ["a.wav", "b c.wav"]}])"));
}

TEST_F(SubmitTest, CtrlCEndsTheReadingOfStandardInput) {
  CliOptions options;
  options.keep_input_open = true;
  CliProcess submit(home(), {"submit", "--each", "-", "--", "echo", "{}"}, options);
  submit.wait_until_it_reads(SIGINT);
  submit.signal(SIGINT);
  const CliResult result = submit.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_FALSE(result.is_killed) << "who starts it without a shell is told the same";
}

TEST_F(SubmitTest, ATerminationIsToldAsSuch) {
  CliOptions options;
  options.keep_input_open = true;
  CliProcess submit(home(), {"submit", "--each", "-", "--", "echo", "{}"}, options);
  submit.wait_until_it_reads(SIGTERM);
  submit.signal(SIGTERM);
  const CliResult result = submit.wait();
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_FALSE(result.is_killed);
}

TEST_F(SubmitTest, FlagsHoldForTheTasksOfAFileThatDoNotSay) {
  accept(R"(["12", "13"])");
  const std::string tasks_file = file("t.yaml", "- {command: [a], cpus: 4}\n- {command: [b]}\n");
  EXPECT_EQ(cli({"submit", "--cpus", "2", "--file", tasks_file}).exit_code, 0);
  EXPECT_EQ(tasks(),
            json::parse(R"([{"command": ["a"], "cpus": 4}, {"command": ["b"], "cpus": 2}])"));
}

TEST_F(SubmitTest, TagsOfFlagsAreAddedToThoseOfAFile) {
  accept(R"(["12", "13", "14"])");
  const std::string tasks_file =
      file("t.jsonl",
           "{\"command\": [\"a\"], \"tags\": [\"partition=cpu\"]}\n{\"command\": [\"b\"], "
           "\"tags\": \"account=mine\"}\n{\"command\": [\"c\"]}\n");
  EXPECT_EQ(cli({"submit", "--account", "lab", "--tag", "ssd", "--file", tasks_file}).exit_code, 0);
  EXPECT_EQ(tasks(), json::parse(R"([
      {"command": ["a"], "tags": ["partition=cpu", "ssd", "account=lab"]},
      {"command": ["b"], "tags": ["account=mine", "ssd"]},
      {"command": ["c"], "tags": ["ssd", "account=lab"]}])"));
}

TEST_F(SubmitTest, PathsOfAFileAreTakenFromTheCurrentDirectory) {
  accept(R"(["12", "13"])");
  const std::string tasks_file =
      file("t.yaml",
           "- {command: [a], stdout: '/o/{//}/x', stderr: none}\n"
           "- {command: [b], items: [/in/a], stdout: '{.}.o', outputs: {r: '/o/r.{#}'}}\n");
  EXPECT_EQ(cli({"submit", "--file", tasks_file}).exit_code, 0);
  EXPECT_EQ(tasks(), json::parse(R"([
      {"command": ["a"], "stdout": "/o/{//}/x", "stderr": "none"},
      {"command": ["b"], "items": ["/in/a"], "stdout": "{.}.o", "outputs": {"r": "/o/r.{#}"}}])"));
}

TEST_F(SubmitTest, ABadFileSubmitsNothing) {
  accept();
  const std::string bad = file("t.jsonl", "{\"command\": [\"a\"]}\n{oops\n");
  const CliResult result = cli({"submit", "--file", bad});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr(bad + ":2: "));
  EXPECT_EQ(cli({"submit", "--each", file("empty", "\n"), "--", "true"}).exit_code, 2);
  EXPECT_TRUE(engine().requests().empty());
}

TEST_F(SubmitTest, AFileOfWhichAPartWouldBeLostIsRefused) {
  accept();
  const auto refusal = [&](const std::string& name, const std::string& text) {
    const CliResult result = cli({"submit", "--file", file(name, text)});
    EXPECT_EQ(result.exit_code, 2) << text;
    return result.err;
  };
  EXPECT_THAT(refusal("t.jsonl", "{\"command\": [\"a\"], \"command\": [\"b\"]}\n"),
              HasSubstr("t.jsonl:1: the key 'command' stands here a second time"));
  EXPECT_THAT(
      refusal("t.jsonl", "{\"command\": [\"a\"], \"env\": {\"A\": \"1\", \"\\u0041\": \"2\"}}\n"),
      HasSubstr("t.jsonl:1: the key 'A' stands here a second time"));
  EXPECT_THAT(
      refusal("t.jsonl", "{\"command\": [\"a\"]}\n{\"command\": [\"a\"], \"cpus\": 1e999}\n"),
      HasSubstr("t.jsonl:2: a number is larger than 1.8e308"));
  EXPECT_THAT(refusal("t.jsonl", "{\"command\": [\"a\", null]}\n"),
              HasSubstr("t.jsonl:1: word 2 of `command` is null"));
  EXPECT_THAT(refusal("t.yaml", "- command: [ls, ~]\n"),
              HasSubstr("t.yaml:1: word 2 of `command` is null; write \"\" for an empty word"));
  EXPECT_THAT(refusal("t.yaml", "- command:\n  - rm\n  -\n"),
              HasSubstr("word 2 of `command` is null"));
  EXPECT_TRUE(engine().requests().empty());
}

TEST_F(SubmitTest, AScriptThatReliesOnVariablesOfABatchSystemIsRefused) {
  accept();
  const std::string script =
      file("job.sh", "#!/bin/bash\nW=/scratch/$SLURM_JOB_ID\nrm -rf $W $PBS_NODEFILE\n");
  const CliResult refused = cli({"submit", script});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("uses SLURM_JOB_ID (line 2), PBS_NODEFILE (line 3), which "
                                     "nobody sets here; $HPCBATCH_TASK_ID says the same"));
  CliOptions own;
  own.environment["PBS_NODEFILE"] = "/nodes";
  EXPECT_EQ(cli({"submit", "--env", "SLURM_JOB_ID=1", script}, own).exit_code, 0)
      << "the user gives both a value";
  const std::string array = file("array.sh", "#!/bin/bash\nrm -rf /tmp/x/$SLURM_ARRAY_TASK_ID\n");
  EXPECT_THAT(cli({"submit", array}).err, HasSubstr("--array sets SLURM_ARRAY_TASK_ID"));
  EXPECT_EQ(cli({"submit", "--array", "1-3", array}).exit_code, 0);
}

TEST_F(SubmitTest, AScriptWithLinesOfABatchSystemFindsItsVariables) {
  accept();
  const std::string script =
      file("job.sh",
           "#!/bin/bash\n#SBATCH -a 0-9:3%2 -J fit -o %x.%A_%4a --mem=0 -p cpu -n 2\n"
           "rm -rf /scratch/$SLURM_JOB_ID $SLURM_NTASKS_PER_CORE\n");
  const CliResult taken = cli({"submit", script});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const json::array sent = tasks();
  const json::object& task = sent.at(0).as_object();
  EXPECT_EQ(task.at("numbered"), json::value(true));
  EXPECT_EQ(task.at("memory"), "all");
  EXPECT_EQ(task.at("max_running"), 2);
  EXPECT_THAT(task.at("stdout").as_string().c_str(),
              testing::EndsWith("/fit.{array_number}_{index:4}"));
  EXPECT_EQ(task.at("stderr"), task.at("stdout"));
  const json::object& env = task.at("env").as_object();
  EXPECT_EQ(env.at("SLURM_ARRAY_TASK_COUNT"), "4");
  EXPECT_EQ(env.at("SLURM_ARRAY_TASK_MAX"), "9");
  EXPECT_EQ(env.at("SLURM_ARRAY_TASK_STEP"), "3");
  EXPECT_EQ(env.at("SLURM_JOB_PARTITION"), "cpu");
  EXPECT_EQ(env.at("SLURM_NTASKS"), "2");
  const std::string other = file("other.sh", "#!/bin/sh\n#SBATCH -c 1\nrm -r /x/$SLURM_NO_SUCH\n");
  EXPECT_THAT(cli({"submit", other}).err, HasSubstr("uses SLURM_NO_SUCH (line 3)"));
}

TEST_F(SubmitTest, AJobOfPbsBeginsAtHomeAndItsFilesLieWhereItWasSubmitted) {
  accept();
  CliOptions own;
  own.environment["HOME"] = "/home/me";
  const std::string script =
      file("job.sh",
           "#!/bin/bash\n#PBS -N fit -o out.txt -j oe\ncd $PBS_O_WORKDIR/$PBS_JOBID\n"
           "if [ -n \"$SLURM_JOB_ID\" ]; then echo $SLURM_JOB_ID; fi\n");
  const CliResult taken = cli({"submit", script}, own);
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const json::array sent = tasks();
  const json::object& task = sent.at(0).as_object();
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(task.at("directory"), "/home/me");
  EXPECT_EQ(task.at("stdout"), json::string(here + "/out.txt"));
  EXPECT_EQ(task.at("stderr"), task.at("stdout"));
  EXPECT_EQ(task.at("env").at("PBS_O_WORKDIR"), json::string(here));
}

TEST_F(SubmitTest, FilesOfPbsMayBearTheJobsVariables) {
  accept();
  const std::string script = file(
      "job.sh",
      "#!/bin/sh\n#PBS -N a{b -t 1-2\n#PBS -o $PBS_O_WORKDIR/${PBS_JOBNAME}_$HOME.${PBS_ARRAYID}\n"
      "#PBS -e ${PBS_JOBID}.$PBS_JOBID\n");
  const CliResult taken = cli({"submit", script});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const json::array sent = tasks();
  const std::string here = std::filesystem::current_path().string() + "/";
  const std::string number = "{array_number}[{index}].hpcbatch";
  EXPECT_EQ(sent.at(0).at("stdout"), json::string(here + "a{{b_$HOME.{index}"));
  EXPECT_EQ(sent.at(0).at("stderr"), json::string(here + number + "." + number));
}

TEST_F(SubmitTest, OfTheCallersVariablesThoseGoAlongThatAreExported) {
  accept();
  CliOptions own;
  own.environment["HOME"] = "/home/me";
  own.environment["SECRET"] = "1";
  own.environment["KEPT"] = "2";
  ASSERT_EQ(cli({"submit", "--export", "KEPT,A=b", "--", "true"}, own).exit_code, 0);
  const json::array sent = tasks();
  const json::object& environment = sent.at(0).at("environment").as_object();
  EXPECT_EQ(environment.at("HOME"), "/home/me");
  EXPECT_EQ(environment.at("KEPT"), "2");
  EXPECT_FALSE(environment.contains("SECRET"));
  EXPECT_EQ(sent.at(0).at("env").at("A"), "b");
  EXPECT_EQ(cli({"submit", "--export", "A,,KEPT,", "--", "true"}, own).exit_code, 0);
  EXPECT_EQ(cli({"submit", "--export", "A,=B", "--", "true"}, own).exit_code, 2);
}

TEST_F(SubmitTest, AScriptFindsWhatSlurmWouldHaveSetWhereThatIsTrueHere) {
  accept();
  const std::string script =
      file("job.sh",
           "\xef\xbb\xbf#!/bin/bash\n#SBATCH --export=ALL,SLURM_NTASKS=3\ncd $SLURM_SUBMIT_DIR\n");
  const CliResult taken = cli({"submit", script});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const json::array sent = tasks();
  const json::object& env = sent.at(0).at("env").as_object();
  EXPECT_EQ(env.at("SLURM_SUBMIT_DIR"), json::string(std::filesystem::current_path().string()));
  EXPECT_EQ(env.at("SLURM_JOB_NAME"), "job.sh");
  EXPECT_EQ(env.at("SLURM_NTASKS"), "3") << "what the user says holds";
  EXPECT_TRUE(env.at("HPCBATCH_SCRIPT").as_string().starts_with("#!/bin/bash"))
      << "a byte order mark is no part of it";
}

TEST_F(SubmitTest, ALostAnswerIsAskedForWithTheSameKey) {
  std::atomic<int> asked{0};
  engine_does([&](const FakeRequest&, FakeConnection& connection) {
    if (++asked == 1) return connection.hang_up();
    connection.answer(200, R"({"ids": ["12"]})");
  });
  const CliResult result = cli({"submit", "--", "true"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "12\n");
  const auto requests = engine().requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].body, requests[1].body);
  EXPECT_THAT(requests[0].body, HasSubstr("\"key\":\"once-"));
}

TEST_F(SubmitTest, AKeyOfTheUsersIsSentAsItIs) {
  accept();
  cli({"submit", "--key", "run-7/step-3", "--", "true"});
  EXPECT_EQ(body_of("POST", "/v1/tasks").at("key"), "run-7/step-3");
}

TEST_F(SubmitTest, ARefusalIsTheEnginesSentence) {
  engine_does([](const FakeRequest&, FakeConnection& connection) {
    connection.answer(409, R"({"error": "the key k was used with other content"})");
  });
  const CliResult result = cli({"submit", "--key", "k", "--", "true"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "hpcbatch: the key k was used with other content\n");
}

TEST_F(SubmitTest, AnOlderEngineThatKnowsNoWithinIsGivenTheRest) {
  engine_does([](const FakeRequest& request, FakeConnection& connection) {
    if (request.body.find("\"within\"") != std::string::npos) {
      connection.answer(400,
                        R"({"error": "'within' is no key of a submit; docs/api.md lists them"})");
    } else {
      connection.answer(200, R"({"ids": ["12"]})");
    }
  });
  CliOptions options;
  options.environment["HPCBATCH_TASK_ID"] = "7";
  options.environment["HPCBATCH_PILOT"] = "hb1.0";
  const CliResult result = cli({"submit", "--", "true"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "12\n");
  EXPECT_EQ(engine().requests().size(), 2u);
}

TEST_F(SubmitTest, AVariableThatIsNoUtf8IsHandedOn) {
  engine_does([](const FakeRequest& request, FakeConnection& connection) {
    EXPECT_THAT(request.body, HasSubstr("\"STRANGE\":\"\xff\""));
    connection.answer(200, R"({"ids": ["1"]})");
  });
  CliOptions options;
  options.environment["STRANGE"] = "\xff";
  const CliResult result = cli({"submit", "--", "true"}, options);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace hpcbatch::test
