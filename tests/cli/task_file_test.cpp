// Files of tasks: what is read, and what a bad line is told.
#include "cli/work/task_file.hpp"
#include "cli/process/exit.hpp"
#include "documents/node.hpp"

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

TEST(TaskFile, JsonLinesAreTakenAsTheyAre) {
  EXPECT_EQ(
      tasks_of_json_lines("{\"command\": [\"a\"], \"cpus\": 2}\n\n {\"tool\": \"t\"} \r\n", "t"),
      json::parse(R"([{"command": ["a"], "cpus": 2}, {"tool": "t"}])"));
}

TEST(TaskFile, NumbersOfJsonLinesThatAreTextsKeepTheirLetters) {
  EXPECT_EQ(
      tasks_of_json_lines(
          R"({"command": ["a", 1e3, "-5"], "items": [{"a": 0.10, "b": "1,\"2"}, [1.0, 100000000000000000000]],)"
          R"( "env": {"A": -0.50}, "after": [23], "cpus": 0.50, "gpus": {"a100": 2}, "time": 60, "hold": true})",
          "t"),
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
  EXPECT_EQ(tasks_of_yaml("tasks:\n"
                          "  - command: [sleep, 010]\n"
                          "    cpus: 2\n"
                          "    memory: 8G\n"
                          "    time: 3600\n"
                          "    gpus: {a100: 2}\n"
                          "    hold: yes\n"
                          "    env: {N: 1}\n",
                          "t"),
            json::parse(R"([{"command": ["sleep", "010"], "cpus": 2, "memory": "8G", "time": "3600",
                             "gpus": {"a100": 2}, "hold": true, "env": {"N": "1"}}])"));
  EXPECT_EQ(tasks_of_yaml("- {tool: t, gpus: 1, not_sites: [far, slow]}", "t"),
            json::parse(R"([{"tool": "t", "gpus": 1, "not_sites": ["far", "slow"]}])"));
}

TEST(TaskFile, TomlSaysTheSame) {
  EXPECT_EQ(tasks_of_toml("[[tasks]]\ncommand = [\"sleep\", \"010\"]\ncpus = 2\nmemory = \"8G\"\n"
                          "time = 3600\ngpus = {a100 = 2}\nhold = true\nitems = [0.10, 1e-3]\n"
                          "[tasks.env]\nN = 1\n",
                          "t"),
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

TEST(TaskFile, AFileOfAnUnknownKindIsRefused) {
  const Interrupt interrupt;
  EXPECT_THROW(read_tasks("/nowhere/tasks.csv", interrupt), CommandError);
  EXPECT_THROW(read_tasks("/nowhere/tasks.yaml", interrupt), CommandError);
}

}  // namespace
}  // namespace hpcbatch
