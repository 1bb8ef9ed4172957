// Files of tasks: what is read, and what a bad line is told.
#include "cli/process/process.hpp"
#include "cli/tasks/submission.hpp"
#include "documents/view.hpp"

#include <gmock/gmock.h>
#include <boost/json/parse.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

std::string file_refusal(const auto& read, const std::string& text) {
  try {
    read(text, "t");
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "";
}

/// Without their places, which TaskPlaces takes out.
json::value tasks_alone(json::array tasks) {
  const TaskPlaces places(tasks);
  return tasks;
}

TEST(TaskFile, JsonLinesAreTakenAsTheyAre) {
  EXPECT_EQ(tasks_alone(tasks_of_json_lines(
                "{\"command\": [\"a\"], \"cpus\": 2}\n\n {\"tool\": \"t\"} \r\n", "t")),
            json::parse(R"([{"command": ["a"], "cpus": 2}, {"tool": "t"}])"));
}

TEST(TaskFile, NumbersOfJsonLinesThatAreTextsKeepTheirLetters) {
  EXPECT_EQ(
      tasks_alone(tasks_of_json_lines(
          R"({"command": ["a", 1e3, "-5"], "items": [{"a": 0.10, "b": "1,\"2"}, [1.0, 100000000000000000000]],)"
          R"( "env": {"A": -0.50}, "after": [23], "cpus": 0.50, "gpus": {"a100": 2}, "time": 60, "hold": true})",
          "t")),
      json::parse(
          R"([{"command": ["a", "1e3", "-5"], "items": [{"a": "0.10", "b": "1,\"2"}, ["1.0", "100000000000000000000"]],
                             "env": {"A": "-0.50"}, "after": ["23"], "cpus": 0.5, "gpus": {"a100": 2}, "time": "60", "hold": true}])"));
}

TEST(TaskFile, ABadLineIsNamed) {
  EXPECT_THAT(file_refusal(tasks_of_json_lines, "{\"command\": []}\n{oops"),
              HasSubstr("t:2: this line is not valid JSON"));
  EXPECT_THAT(file_refusal(tasks_of_json_lines, "\n[]"),
              HasSubstr("t:2: a task must be a JSON object"));
  EXPECT_THAT(file_refusal(tasks_of_json_lines, "{}"), HasSubstr("t:1: a task needs"));
  EXPECT_THAT(file_refusal(tasks_of_json_lines, "{\"command\": [\"a\"], \"comand\": 1}"),
              HasSubstr("did you mean 'command'?"));
}

TEST(TaskFile, YamlScalarsBecomeWhatTheirKeyCallsFor) {
  EXPECT_EQ(tasks_alone(tasks_of_yaml("tasks:\n"
                                      "  - command: [sleep, 010]\n"
                                      "    cpus: 2\n"
                                      "    memory: 8G\n"
                                      "    time: 3600\n"
                                      "    gpus: {a100: 2}\n"
                                      "    hold: yes\n"
                                      "    env: {N: 1}\n",
                                      "t")),
            json::parse(R"([{"command": ["sleep", "010"], "cpus": 2, "memory": "8G", "time": "3600",
                             "gpus": {"a100": 2}, "hold": true, "env": {"N": "1"}}])"));
  EXPECT_EQ(tasks_alone(tasks_of_yaml("- {tool: t, gpus: 1, not_sites: [far, slow]}", "t")),
            json::parse(R"([{"tool": "t", "gpus": 1, "not_sites": ["far", "slow"]}])"));
}

TEST(TaskFile, TomlSaysTheSame) {
  EXPECT_EQ(tasks_alone(tasks_of_toml(
                "[[tasks]]\ncommand = [\"sleep\", \"010\"]\ncpus = 2\nmemory = \"8G\"\n"
                "time = 3600\ngpus = {a100 = 2}\nhold = true\nitems = [0.10, 1e-3]\n"
                "[tasks.env]\nN = 1\n",
                "t")),
            json::parse(R"([{"command": ["sleep", "010"], "cpus": 2, "memory": "8G", "time": "3600",
                             "gpus": {"a100": 2}, "hold": true, "items": ["0.10", "1e-3"],
                             "env": {"N": "1"}}])"));
  EXPECT_THAT(file_refusal(tasks_of_toml, "[[tasks]]\ncommand = [\"a\"]\ncpu = 2\n"),
              HasSubstr("t:3: a task has no key 'cpu'; did you mean 'cpus'?"));
  EXPECT_THAT(file_refusal(tasks_of_toml, "[[task]]\ncommand = [\"a\"]\n"), HasSubstr("tasks"));
}

TEST(TaskFile, ABadYamlTaskIsNamedWithItsLine) {
  EXPECT_THAT(file_refusal(tasks_of_yaml, "- command: [a]\n  cpu: 2\n"),
              HasSubstr("t:2: a task has no key 'cpu'; did you mean 'cpus'?"));
  EXPECT_THAT(file_refusal(tasks_of_yaml, "- command: [a]\n- cpus: 1\n"),
              HasSubstr("t:2: a task needs"));
  EXPECT_THAT(file_refusal(tasks_of_yaml, "- command: [a]\n  cpus: many\n"), HasSubstr("t:2:"));
  EXPECT_THAT(file_refusal(tasks_of_yaml, "job: 1"), HasSubstr("tasks"));
}

TEST(TaskFile, WhatOtherProgramsCallAKeyIsProposed) {
  for (const auto& [theirs, ours] :
       {std::pair{"mem", "memory"}, {"cwd", "directory"}, {"walltime", "time"}, {"cmd", "command"}})
    EXPECT_THAT(file_refusal(tasks_of_yaml, std::string("- ") + theirs + ": 1\n"),
                HasSubstr(std::string("did you mean '") + ours + "'?"));
  EXPECT_THAT(file_refusal(tasks_of_yaml, "- zzzzzz: 1\n"),
              HasSubstr("t:1: a task has no key 'zzzzzz'; `hpcbatch help task-file` lists them"));
}

TEST(TaskFile, AValueOfTheWrongKindIsNamedWithItsLine) {
  const auto yaml = [](const std::string& key) {
    return file_refusal(tasks_of_yaml, "- command: [a]\n  " + key + "\n");
  };
  EXPECT_THAT(
      file_refusal(tasks_of_yaml, "- command: echo hi\n"),
      HasSubstr("t:1: `command` is a list of words, as [echo, hi]; for a shell that reads a "
                "text write [sh, -c, \"echo hi\"]"));
  EXPECT_THAT(yaml("items: list.txt"), HasSubstr("t:2: `items` is a list, as [a.wav, b.wav]"));
  EXPECT_THAT(yaml("memory: 3X"), HasSubstr("t:2: `memory`: '3X' is not a size, like 512M, 8G"));
  EXPECT_THAT(yaml("time: soon"),
              HasSubstr("t:2: `time`: 'soon' is not a duration, like 90s, 1h30m"));
  EXPECT_THAT(yaml("retries: often"),
              HasSubstr("t:2: `retries`: 'often' is not a whole number from 0 to 1000"));
  EXPECT_THAT(yaml("estimate: us"), HasSubstr("t:2: `estimate`: 'us' is none of off, advise, use"));
  EXPECT_THAT(yaml("gpus: a100:few"), HasSubstr("t:2: `gpus`: 'a100:few' is not a number of GPUs"));
  EXPECT_THAT(yaml("one_of: gpus=1; cups=4"), HasSubstr("t:2: `one_of`: 'cups' is none of cpus"));
  EXPECT_THAT(yaml("array: 1-10%"),
              HasSubstr("t:2: `array`: '1-10%' is not an array; arrays are like 1-100,"));
  EXPECT_THAT(yaml("array: ten"), HasSubstr("t:2: `array`: 'ten' is not an array"));
  EXPECT_THAT(file_refusal(tasks_of_json_lines, "{\"command\": [\"a\"]}\n{\"command\": \"a b\"}"),
              HasSubstr("t:2: `command` is a list of words, as [a, b]"));
}

TEST(TaskFile, HowManyOfAnArrayRunAtOnceMayStandInIt) {
  EXPECT_EQ(tasks_alone(tasks_of_yaml("- {command: [a], array: 1-10%2}", "t")),
            json::parse(R"([{"command": ["a"], "array": "1-10", "max_running": 2}])"));
  EXPECT_EQ(tasks_alone(tasks_of_json_lines(
                R"({"command": ["a"], "array": "1-10%2", "max_running": 3})", "t")),
            json::parse(R"([{"command": ["a"], "array": "1-10", "max_running": 3}])"));
}

TEST(TaskFile, WaysMayBeWrittenInWords) {
  EXPECT_EQ(tasks_alone(tasks_of_yaml(
                "- {command: [a], one_of: 'gpus=1,cpus=4; cpus=16', gpu_memory: 40G}", "t")),
            json::parse(R"([{"command": ["a"], "one_of": [{"gpus": 1, "cpus": 4}, {"cpus": 16}],
                             "gpu_memory": "40G"}])"));
}

TEST(TaskFile, AServiceHasItsNumbers) {
  EXPECT_EQ(tasks_alone(tasks_of_yaml(
                "- command: [a]\n  service: {name: s, command: [b, 010], requests: 100, "
                "memory: 2G}\n",
                "t")),
            json::parse(R"([{"command": ["a"], "service": {"name": "s", "command": ["b", "010"],
                             "requests": 100, "memory": "2G"}}])"));
}

TEST(TaskFile, AFileOfAnUnknownKindIsRefused) {
  const Interrupt interrupt;
  EXPECT_THROW(read_tasks("/nowhere/tasks.csv", interrupt), CommandError);
  EXPECT_THROW(read_tasks("/nowhere/tasks.yaml", interrupt), CommandError);
}

}  // namespace
}  // namespace hpcbatch
