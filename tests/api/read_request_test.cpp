// The API refuses what is wrong with one sentence that names it, and takes the rest as it was
// meant.
#include "api/read/read_request.hpp"
#include "api/read/read_task.hpp"
#include "documents/task_keys.hpp"

#include <fmt/format.h>
#include <boost/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <map>
#include <random>

namespace hpcbatch {
namespace {

SubmitRequest read(const std::string& task) {
  return read_submit(parse_body_of_submits(R"({"client": "tester", "tasks": [)" + task + "]}"));
}

std::string refusal(const std::string& body) {
  try {
    read_submit(parse_body_of_submits(body));
  } catch (const BadRequest& e) {
    return e.what();
  }
  return "accepted";
}

/// What a body comes to, refusal or request, and what identifies it.
std::string outcome(const std::string& body, bool piece_by_piece) {
  try {
    SubmitWithContent read;
    if (piece_by_piece) {
      read = read_submit_body(body);
    } else {
      const boost::json::value whole = parse_body_of_submits(body);
      read = {read_submit(whole), content_of(whole)};
    }
    std::string text = read.request.client + " " + read.request.directory + " " +
                       std::to_string(read.request.environment.size());
    for (const TaskRequest& task : read.request.tasks) text += " " + task.command.at(0);
    return text + " " + std::to_string(read.content);
  } catch (const BadRequest& e) {
    return e.what();
  }
}

TEST(ReadRequest, SeveralWaysToRunATask) {
  const TaskRequest task =
      read_task(boost::json::parse(R"({"command": ["true"], "memory": "2G", "one_of": [
          {"gpus": {"count": 1, "memory": "40G"}, "cpus": 4}, {"cpus": 16, "memory": "8G"}]})"),
                "task");
  ASSERT_EQ(task.one_of.size(), 2U);
  EXPECT_EQ(task.one_of[0].amounts.get("gpus"), Amount::of(1));
  EXPECT_EQ(task.one_of[0].gpu_terms.memory, std::uint64_t{40} << 30);
  EXPECT_EQ(task.one_of[1].amounts.get(kCpus), Amount::of(16));
  EXPECT_EQ(task.one_of[1].amounts.get(kMemory), Amount::of(std::int64_t{8} << 30));
}

TEST(ReadSubmit, ReadPieceByPieceABodyIsTheSame) {
  const std::string bodies[] = {
      "",
      "{}",
      "[]",
      "7",
      R"(["tasks", [1], {"tasks": [2]}])",
      R"({"client": "t", "tasks": [{"command": ["a"]}]} x)",
      R"({"client": "t", "tasks": [{"command": ["a"]})",
      R"({"client": "t", "tasks": [{"command": 7}, {]})",
      R"({"client": "t", "tasks": [{"command": 7}]})",
      R"({"client": "t", "tasks": [{"command": 7}, {"command": ["a"]}]})",
      R"({"client": "t", "tasks": [7, null]})",
      R"({"client": "t", "tasks": [[[]]]})",
      R"({"client": "t", "tasks": []})",
      R"({"client": "t", "tasks": {"tasks": [1]}})",
      R"({"client": 1, "tasks": [{"command": 7}]})",
      R"({"tasks": [{"command": 7}], "client": 1})",
      R"({"tasks": [{"command": ["a"]}], "client": "t", "directory": "/d", "key": "k",
          "environment": {"A": "\u00e4\n", "B": "b"}, "umask": "022"})",
      R"({"tasks": [{"command": ["a"]}, {"command": ["b"]}], "client": "t", "tasks":
          [{"command": ["c"], "cpus": 0.1, "env": {"X": "1", "X": "2"}}]})",
      R"({"client": "t", "client": "u", "tasks": [{"command": ["a"]}]})",
      R"({"client": "t", "t\u0061sks": [{"command": ["a"], "memory": 18446744073709551615}]})",
      R"({"client": "t", "tasks": [{"command": ["a"], "stdout": "/o"}, {"command": ["a"], "stdout": "/o"}]})",
  };
  for (const std::string& body : bodies)
    EXPECT_EQ(outcome(body, true), outcome(body, false)) << body;
  EXPECT_EQ(outcome(bodies[8], true), "task.command must be a list of texts");
  EXPECT_EQ(outcome(bodies[9], true), "task 1.command must be a list of texts");
}

TEST(ReadSubmit, ContentIsWhatItAlwaysWas) {
  const std::string body =
      R"({"client": "c", "key": "k", "environment": {"A": "b"}, "tasks": [{"command": ["true"]},
          {"command": ["a b"], "after": ["#1"], "cpus": 1.50}], "umask": "022"})";
  EXPECT_EQ(read_submit_body(body).content, 8244925662625398344U);
  EXPECT_EQ(content_of(parse_body(body)), 8244925662625398344U);
  const std::string inner = R"({"within": {"task": "12.3", "pilot": "hb1.0"}, )" + body.substr(1);
  EXPECT_EQ(read_submit_body(inner).content, 8244925662625398344U);
}

TEST(ReadSubmit, NamesTheTaskInWhichItsClientRuns) {
  const auto within = [](const std::string& value) {
    return read_submit_body(R"({"client": "c", "tasks": [{"command": ["true"]}], "within": )" +
                            value + "}")
        .request.within;
  };
  const auto task = within(R"({"task": "12.3", "pilot": "hb1.2"})");
  ASSERT_TRUE(task);
  EXPECT_EQ(to_string(task->task), "12.3");
  EXPECT_EQ(to_string(task->pilot), "hb1.2");
  EXPECT_FALSE(within(R"({"task": "ann", "pilot": "hb1.2"})")) << "no name of ours";
  EXPECT_FALSE(within(R"({"task": "12.3", "pilot": "here"})"));
  EXPECT_THROW(within("[]"), BadRequest);
  EXPECT_THROW(within(R"({"task": "12.3"})"), BadRequest);
  EXPECT_THROW(within(R"({"task": "12.3", "pilot": "hb1.2", "node": "n"})"), BadRequest);
}

TEST(ReadSubmit, TakesNeedsInBothSpellings) {
  const TaskRequest task =
      read(
          R"({"command": ["true"], "cpus": 1.5, "memory": "2G", "time": 90, "gpus": {"a100": 2}, "tags": ["b", "a"]})")
          .tasks[0];
  EXPECT_EQ(task.array.needs.amounts.get(kCpus), Amount::of_fraction(1.5));
  EXPECT_EQ(task.array.needs.amounts.get(kMemory), Amount::of(std::int64_t{2} << 30));
  EXPECT_EQ(task.array.needs.amounts.get("gpus/a100"), Amount::of(2));
  EXPECT_EQ(task.array.needs.time, Duration(std::chrono::seconds{90}));
  EXPECT_EQ(task.array.needs.tags, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(to_string(task.array.indices), "0");
}

TEST(ReadSubmit, ATaskRequestsNoMoreTimeThanItsLimit) {
  const auto needs_with = [](const std::string& keys) {
    return read(R"({"command": ["true"], )" + keys + "}").tasks[0].array.needs;
  };
  const Needs both = needs_with(R"("time_request": "10m", "time": "1h")");
  EXPECT_EQ(time_to_begin(both), Duration(std::chrono::minutes{10}));
  EXPECT_EQ(both.time, Duration(std::chrono::hours{1}));
  EXPECT_FALSE(needs_with(R"("time_request": "10m")").time);
  EXPECT_THROW(needs_with(R"("time_request": "2h", "time": "1h")"), BadRequest);
}

TEST(ReadSubmit, SeveralTasksDoNotWriteOneFile) {
  const auto of_one = [](const std::string& keys) {
    return refusal(R"({"client": "t", "directory": "/d", "tasks": [{"command": ["c"], )" + keys +
                   "}]}");
  };
  EXPECT_EQ(of_one(R"("array": "1-5", "stdout": "/same.txt")"),
            "task: all 5 tasks would write /same.txt (stdout); put {index}, {id} or, for the item, "
            "{} into the path; without it 'log' and 'show' tell what each of them printed");
  EXPECT_EQ(of_one(R"("array": "1-5", "stderr": "/same.txt")").substr(0, 40),
            "task: all 5 tasks would write /same.txt ");
  EXPECT_EQ(of_one(R"("tool": "t", "array": "1-5", "outputs": {"o": "/same"})").substr(0, 5),
            "task ")
      << "it has a command and a tool";
  for (const char* path : {"/o.{}", "/o.{index}", "/o.{id}", "/dev/null"}) {
    EXPECT_EQ(of_one(R"("array": "1-5", "stderr": ")" + std::string(path) + "\""), "accepted")
        << path;
  }
  EXPECT_EQ(of_one(R"("array": "7", "stdout": "/one.txt")"), "accepted");
  EXPECT_EQ(of_one(R"("stdout": "/one.txt", "stderr": "/one.txt")"), "accepted");
  EXPECT_EQ(of_one(R"("stdout": "/one.{id}")"), "accepted");
  EXPECT_EQ(
      of_one(R"("stdout": "/one.{}")"),
      "task: stdout '/one.{}' asks for an index or an item, which a task alone does not have; "
      "write {id} for its id; a brace that is meant as it stands is doubled: {{ or }}");
  EXPECT_EQ(of_one(R"("stdout": "/one.{{}}", "stdin": "/{{id}}")"), "accepted");
  EXPECT_THAT(of_one(R"("stdin": "/one.{index}")"), testing::HasSubstr("asks for an index"));
  EXPECT_EQ(of_one(R"("array": "1-5", "stdout": "/log", "open_mode": "append")"), "accepted")
      << "several may add to a file";
  EXPECT_EQ(of_one(R"("inputs": {"a": "/one.{}"})"), "accepted") << "a file may be called that";
  EXPECT_EQ(of_one(R"("stdin": "/d/./f", "stdout": "/d/f")"),
            "task: stdin and stdout are the same file, /d/f, which would be emptied before it is "
            "read; write to another file");
  EXPECT_THAT(of_one(R"("items": ["/a", "/b"], "stdin": "{}", "stderr": "{}")"),
              testing::HasSubstr("stdin and stderr are the same file"));
  EXPECT_EQ(of_one(R"("stdin": "/dev/null", "stdout": "/dev/null")"), "accepted");
  EXPECT_EQ(of_one(R"("stdin": "/f", "stdout": "/f", "open_mode": "append")"), "accepted");
  EXPECT_EQ(of_one(R"("items": ["a", "b", "a"], "stdout": "/o.{}")"),
            "task: items 1 and 3 are both 'a', and both would write /o.{}; put {index} into the "
            "path");
  EXPECT_EQ(of_one(R"("items": ["a", "b", "a"], "stdout": "/o.{}.{index}")"), "accepted");
  EXPECT_EQ(of_one(R"("items": ["/x/a", "/y/b", "/y/a"], "stdout": "/o/{/}")"),
            "task: items 1 and 3, '/x/a' and '/y/a', would both write /o/a (/o/{/}); put {index} "
            "into the path");
  EXPECT_EQ(of_one(R"("items": ["/x/a", "/y/a"], "stdout": "{//}/o")"), "accepted");
  EXPECT_EQ(of_one(R"("items": ["/x/a", "/y/a"], "stdout": "/o/{/}.{#}")"), "accepted");
  EXPECT_EQ(of_one(R"("items": ["/x/a", "b"], "stdout": "{.}.o")"),
            "task: the item 'b' is no absolute path, as '{.}.o' needs it");
  EXPECT_EQ(of_one(R"("items": ["a", "b"], "stdout": "{}.txt")"),
            "task: the item 'a' is no absolute path, as '{}.txt' needs it");

  const auto of_two = [](const std::string& first, const std::string& second) {
    return refusal(R"({"client": "t", "directory": "/d", "tasks": [{"command": ["c"], )" + first +
                   R"(}, {"command": ["c"], )" + second + "}]}");
  };
  EXPECT_EQ(of_two(R"("stdout": "/a")", R"("stderr": "/a")"),
            "tasks 1 and 2 would both write /a (stderr); without it 'log' and 'show' tell what "
            "each of them printed");
  EXPECT_EQ(of_two(R"("outputs": {"o": "/a"})", R"("outputs": {"p": "/a"})"),
            "tasks 1 and 2 would both write /a (p)");
  EXPECT_EQ(of_two(R"("stdout": "/a")", R"("stdout": "/b")"), "accepted");
  EXPECT_EQ(of_two(R"("stdout": "/dev/null")", R"("stdout": "/dev/null")"), "accepted");
}

TEST(ReadSubmit, ACommandsFilesHaveNamesInItsDirectory) {
  const TaskRequest task =
      read(
          R"({"command": ["c"], "inputs": {"a/in.wav": "/x.wav"}, "outputs": {"o": "/y"}, "shared": ["/s"]})")
          .tasks[0];
  EXPECT_EQ(task.inputs.at("a/in.wav"), std::vector<std::string>{"/x.wav"});
  EXPECT_EQ(task.outputs.at("o"), "/y");
  EXPECT_EQ(task.shared, std::vector<std::string>{"/s"});
  const auto refused = [](const std::string& keys) {
    return refusal(R"({"client": "t", "tasks": [{"command": ["c"], )" + keys + "}]}");
  };
  for (const char* name : {"", "/in", "../in", "a/../b", "a//b", "in/", "."}) {
    EXPECT_NE(refused(R"("inputs": {")" + std::string(name) + R"(": "/x"})").find("must be named"),
              std::string::npos)
        << name;
  }
  EXPECT_EQ(refused(R"("inputs": {"a": ["/x", "/y"]})"),
            "task: the input 'a' of a command must be one file");
  EXPECT_EQ(refused(R"("inputs": {"a": "/x"}, "outputs": {"a": "/y"})"),
            "task: 'a' is an input and an output");
  EXPECT_EQ(refused(R"("outputs": {"a": "/y", "b": "/y"})"), "task: two outputs go to /y");
  EXPECT_EQ(refused(R"("inputs": {"a": "/x"}, "outputs": {"a/b": "/y"})"),
            "task: 'a' is the name of a file, and 'a/b' would lie in it");
  EXPECT_EQ(refused(R"("outputs": {"a": "/y/"})"),
            "task: the output 'a' must go to a file, not to the folder /y/");
  EXPECT_EQ(
      refused(R"("array": "1-3", "outputs": {"a": "/y"})"),
      "task: all 3 tasks would write /y (a); put {index}, {id} or, for the item, {} into the path");
  EXPECT_EQ(refused(R"("array": "1-3", "outputs": {"a": "/y{index}"})"), "accepted");
  EXPECT_EQ(refused(R"("array": "1-3", "outputs": {"a": "/y{}"})"), "accepted");
  EXPECT_EQ(refused(R"("items": ["1", "2"], "outputs": {"a": "/y{}"})"), "accepted");
  EXPECT_EQ(refused(R"("items": ["/1"], "inputs": {"a": "{}"})"), "accepted");
  EXPECT_EQ(refused(R"("items": ["1"], "inputs": {"a": "{}"})"),
            "task: the item '1' is no absolute path, as '{}' needs it");
  EXPECT_EQ(refused(R"("inputs": {"a": "{}"})"),
            "task: '{}' is no absolute path, and there are no items that could make it one");
  EXPECT_EQ(refused(R"("inputs": {"a": "/x"}, "directory": "/d")"),
            "task: a command with 'inputs' or 'outputs' runs in a directory of its own; leave "
            "'directory' out");
  EXPECT_EQ(refused(R"("inputs": {"a": "x"})"), "task.inputs 'x' must be an absolute path");
}

/// Each is more than the room that a task usually takes: what is asked for beside it must not grow.
TEST(ReadSubmit, TakesManyLargeTasks) {
  const std::string word(40'000, 'x');
  std::string body = R"({"client": "t", "tasks": [)";
  for (int i = 0; i < 200; ++i)
    body += std::string(i == 0 ? "" : ",") + R"({"command": ["echo", ")" + word + R"("]})";
  EXPECT_EQ(read_submit_body(body + "]}").request.tasks.size(), 200U);
}

TEST(ReadSubmit, TakesSitesThatMayNotRunIt) {
  const auto not_on = [](const std::string& said) {
    return read(R"({"command": ["true"], "not_sites": )" + said + "}").tasks[0].array.needs.not_on;
  };
  EXPECT_EQ(not_on(R"(["there", "far", "there"])"), (std::vector<std::string>{"far", "there"}));
  EXPECT_EQ(not_on(R"("far")"), std::vector<std::string>{"far"});
  EXPECT_TRUE(not_on("[]").empty());
}

TEST(ReadSubmit, TakesArraysItemsAndDependencies) {
  EXPECT_EQ(to_string(read(R"({"command": ["true"], "array": "1-9:4,20"})").tasks[0].array.indices),
            "1,5,9,20");
  const TaskRequest items = read(R"({"command": ["echo", "{}"], "items": ["x", "y"]})").tasks[0];
  EXPECT_EQ(to_string(items.array.indices), "1-2");
  const TaskRequest some =
      read(R"({"command": ["echo", "{}"], "items": ["x", "y", "z"], "array": "1,3"})").tasks[0];
  EXPECT_EQ(to_string(some.array.indices), "1,3");
  const TaskRequest after =
      read(R"({"command": ["true"], "after": ["3", "4.5"], "after_any": ["6"]})").tasks[0];
  ASSERT_EQ(after.array.after.size(), 3U);
  EXPECT_EQ(after.array.after[1].index, 5U);
  EXPECT_EQ(after.array.after[2].kind, Dependency::Kind::AnyEnd);
  const TaskRequest sibling = read(R"({"command": ["true"], "after": ["#3", "#2.5"]})").tasks[0];
  ASSERT_EQ(sibling.array.after.size(), 2U);
  EXPECT_EQ(sibling.array.after[0], (Dependency{.sibling = 3}));
  EXPECT_EQ(sibling.array.after[1], (Dependency{.index = 5U, .sibling = 2}));
}

TEST(ReadSubmit, TakesAnOctalUmask) {
  const auto with = [](const std::string& umask) {
    return R"({"client": "tester", "umask": )" + umask + R"(, "tasks": [{"command": ["true"]}]})";
  };
  EXPECT_EQ(read_submit(parse_body(with(R"("0027")"))).umask, 027U);
  EXPECT_FALSE(read(R"({"command": ["true"]})").umask);
  for (const char* wrong : {R"("8")", R"("01777")", R"("")", R"("-1")", "18"}) {
    EXPECT_NE(refusal(with(wrong)).find("umask"), std::string::npos) << wrong;
  }
}

TEST(ReadSubmit, TakesWhoWaitsAndHowLongItMayBeAway) {
  const auto with = [](const std::string& keys) {
    return R"({"client": "tester", )" + keys + R"("tasks": [{"command": ["true"]}]})";
  };
  const std::string whole = with(R"("reader": "one", "lease_s": 1.5, )");
  const SubmitRequest request = read_submit(parse_body(whole));
  EXPECT_EQ(request.reader, "one");
  EXPECT_EQ(request.lease, std::chrono::milliseconds{1500});
  EXPECT_FALSE(read(R"({"command": ["true"]})").lease);
  EXPECT_EQ(read_submit_body(whole).content, read_submit_body(with("")).content)
      << "the same work for another is the same work";
  for (const char* wrong : {"0.9", "86401", "-1", "true", R"("60")"}) {
    EXPECT_NE(refusal(with(R"("reader": "one", "lease_s": )" + std::string(wrong) + ", "))
                  .find("'lease_s' must be a number of seconds from 1 to 86400"),
              std::string::npos)
        << wrong;
  }
  EXPECT_NE(refusal(with(R"("reader": "", "lease_s": 5, )")).find("'reader' must have"),
            std::string::npos);
  for (const char* half : {R"("reader": "one", )", R"("lease_s": 5, )"}) {
    EXPECT_NE(refusal(with(half)).find("'reader' and 'lease_s' go together"), std::string::npos)
        << half;
  }
}

struct Case {
  std::string task;
  std::string says;
};
class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, WithASentenceThatNamesIt) {
  const std::string said = refusal(R"({"client": "tester", "tasks": [)" + GetParam().task + "]}");
  EXPECT_NE(said.find(GetParam().says), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Tasks, Refused,
    testing::Values(
        Case{R"({"command": ["true"], "cpu": 1})", "task.cpu is no key"},
        Case{R"({"cpus": 1})", "'command' or 'tool'"},
        Case{R"({"command": ["true"], "site": "a", "not_sites": ["b", "a"]})",
             "'a' is both the 'site' and among 'not_sites'"},
        Case{R"({"command": ["true"], "not_sites": [1]})", "task.not_sites"},
        Case{R"({"command": ["true"], "tool": "x"})", "'command' or 'tool'"},
        Case{R"({"command": "true"})", "task.command must be a list"},
        Case{R"({"command": []})", "must name a program"},
        Case{R"({"command": ["true"], "cpus": 0})", "more than 0"},
        Case{R"({"command": ["true"], "cpus": -1})", "from 0 up"},
        Case{R"({"command": ["true"], "memory": "lots"})", "'lots' is not a size"},
        Case{R"({"command": ["true"], "memory": "600T"})", "or a number of bytes, 512T at most"},
        Case{R"({"command": ["true"], "cpus": 9.3e14})",
             "cpus is 9.3e+14, which is more than could be had anywhere"},
        Case{R"({"command": ["true"], "one_of": [{"cpus": 1}]})",
             "one_of must be a list of 2 to 8 ways to run it"},
        Case{R"({"command": ["true"], "one_of": [{"cpus": 1}, {"time": 9}]})",
             "one_of[1].time: ways differ by cpus, memory, disk, gpus and resources"},
        Case{R"({"command": ["true"], "cpus": 2, "one_of": [{"cpus": 1}, {"gpus": 1}]})",
             "say 'cpus' and 'gpus' in each of 'one_of', not beside it"},
        Case{R"({"command": ["true"], "memory": "all", "one_of": [{"cpus": 1}, {"gpus": 1}]})",
             "'all' goes without 'one_of'"},
        Case{R"({"command": ["true"], "gpus": 1e15})",
             "gpus is 1e+15, which is more than could be had anywhere"},
        Case{R"({"command": ["true"], "time": 1e15})", "must be a time"},
        Case{R"({"command": ["true"], "memory": 1024})", "1024 bytes are too few"},
        Case{R"({"command": ["true"], "time": "soon"})", "'soon' is not a duration"},
        Case{R"({"command": ["true"], "array": "9-1"})", "no list of indices"},
        Case{R"({"command": ["true"], "stdin": "relative"})", "absolute path"},
        Case{R"({"command": ["true"], "items": []})", "nothing to do"},
        Case{R"({"command": ["true"], "after": ["x"]})", "'x' is no id"},
        Case{R"({"command": ["true"], "after": ["#"]})", "'' is no id"},
        Case{R"({"command": ["true"], "after": ["#99999999999"]})", "no such task"},
        Case{R"({"command": ["true"], "after_each": ["1.2"]})", "whole array"},
        Case{R"({"command": ["true"], "retries": 1.5})", "whole number"},
        Case{R"({"command": ["true"], "parameters": {"o": "x"}})", "belong to a tool"},
        Case{R"({"command": ["a\u0000b"]})", "zero byte"}));

TEST(ReadSubmit, RefusesWhatIsNoSubmit) {
  EXPECT_NE(refusal("{").find("no JSON"), std::string::npos);
  EXPECT_NE(refusal("[]").find("must be a JSON object"), std::string::npos);
  EXPECT_NE(refusal(R"({"client": "t"})").find("'tasks' is missing"), std::string::npos);
  EXPECT_NE(refusal(R"({"tasks": [{"command": ["true"]}]})").find("'client' is missing"),
            std::string::npos);
  EXPECT_NE(
      refusal(R"({"client": "t", "tasks": [{"command": ["true"]}, {"command": ["true"], "x": 1}]})")
          .find("task 2.x"),
      std::string::npos);
}

TEST(ParseSelection, TakesIdsAndRefusesTheRest) {
  EXPECT_EQ(parse_selection("12").array, ArrayId{12});
  EXPECT_EQ(to_string(*parse_selection("12.1-99").indices), "1-99");
  for (const char* text : {"", "0", "x", "12.", "12.x", "12-13", "-1", "12.3.4"}) {
    EXPECT_THROW(parse_selection(text), BadRequest) << text;
  }
}

TEST(ReadRequest, ItemsHaveColumnsOrFields) {
  const TaskRequest rows =
      read(R"({"command": ["fit", "{lambda}", "{1}"], "columns": ["sample", "lambda"],
               "items": [["a b", "0.1"], ["c", "0.2"]]})")
          .tasks[0];
  EXPECT_TRUE(rows.items_have_columns);
  EXPECT_EQ(item_at(rows, 2).text(), "c 0.2");
  EXPECT_EQ(*item_at(rows, 1).column("sample"), "a b");
  EXPECT_EQ(*item_at(rows, 1).column("2"), "0.1");
  const TaskRequest fields =
      read(R"({"items": [{"s": "x", "n": 4, "f": 0.1, "no": null, "yes": true, "l": [1, "a"]}],
               "command": ["fit", "{s}"]})")
          .tasks[0];
  const Item item = item_at(fields, 1);
  EXPECT_EQ(item.text(), R"({"s":"x","n":4,"f":0.1,"no":null,"yes":true,"l":[1,"a"]})");
  EXPECT_EQ(*item.column("n") + *item.column("f") + *item.column("no") + *item.column("yes") +
                *item.column("l"),
            R"(40.1true[1,"a"])");
}

TEST(ReadRequest, AColumnThatIsAskedForIsThereInEachItem) {
  const auto of = [](const std::string& items, const std::string& command,
                     const std::string& more = "") {
    return refusal(R"({"client": "t", "directory": "/d", "tasks": [{"items": )" + items +
                   R"(, "command": )" + command + more + "}]}");
  };
  const std::string pairs = R"([["a", "1"], ["b", "2"]])";
  EXPECT_EQ(of(pairs, R"(["x", "{2}", "${HOME}", "{a b}"])"), "accepted");
  EXPECT_EQ(of(R"([{"a b": "x"}])", R"(["x", "{a b}"])"),
            "task: '{a b}' is no placeholder: a name in one has letters, digits, '_' and '-' only; "
            "write {1} for that column");
  EXPECT_EQ(of("[\"" + std::string(140'000, 'x') + "\"]", R"(["x", "{}"])").substr(0, 31),
            "task.items 1 has 140000 bytes, ");
  EXPECT_EQ(of("[[\"" + std::string(90'000, 'x') + "\"]]", R"(["x", "{}"])"), "accepted")
      << "what is kept of its columns does not count";
  EXPECT_EQ(of(R"(["x", "./x"])", R"(["x"])", R"(, "stdout": "/o/{}")").substr(0, 30),
            "task: items 1 and 2, 'x' and '");
  EXPECT_EQ(of(pairs, R"(["x", "{3}"])"),
            "task: '{3}' stands for a column, and the items have 2; a text that is meant as it "
            "stands belongs into a script");
  EXPECT_EQ(of(R"([{"sample": "a"}])", R"(["x", "{smaple}"])"),
            "task: '{smaple}' is no column of the items, which have sample; did you mean "
            "'{sample}'?");
  EXPECT_EQ(of(R"([{"sample": "a"}, {"lane": 1}])", R"(["x", "{sample}"])"),
            R"(task: item 2 has no column 'sample': {"lane":1})");
  EXPECT_EQ(of(R"([{"sample": "a"}])", R"(["x"])", R"(, "stdout": "/o/{smaple}")").substr(0, 16),
            "task: '{smaple}'");
  EXPECT_EQ(of(pairs, R"(["x"])", R"(, "stdout": "/o/{2}.{1}")"), "accepted");
  EXPECT_EQ(
      of(R"([["a", "1"], ["b", "1"]])", R"(["x"])", R"(, "stdout": "/o/{2}")"),
      "task: items 1 and 2, 'a 1' and 'b 1', would both write /o/1 (/o/{2}); put {index} into "
      "the path");
  EXPECT_EQ(of(pairs, R"(["x"])", R"(, "stdout": "/o/{x}")").substr(0, 12), "task: '{x}' ");
  EXPECT_EQ(of(R"(["a", ["b"]])", R"(["x"])"),
            "task.items 2 is of another kind than the first: all are texts, lists of texts, or "
            "objects");
  EXPECT_EQ(of(R"([["a", "1"], ["b"]])", R"(["x", "{2}"])"), "task: item 2 has no column '2': b");
  EXPECT_EQ(of(R"([["a"]])", R"(["x"])", R"(, "columns": ["a", "b"])"),
            "task.items 1 has 1 values, and there are 2 columns");
  EXPECT_EQ(of(R"(["a"])", R"(["x"])", R"(, "columns": ["a"])"),
            "task: 'columns' name those of 'items' that are lists");
  EXPECT_EQ(of(R"([["a\u001f"]])", R"(["x"])"),
            "task.items 1 holds one of the control characters 0x1e and 0x1f; leave them out");
  EXPECT_EQ(of(R"([["a"]])", R"(["x"])", R"(, "columns": ["1"])"),
            "task.columns: '1' is no name; columns have numbers by themselves");
}

TEST(ReadSubmit, AnArrayWhoseTasksAreNumberedComesAlone) {
  const TaskRequest one =
      read(R"({"command": ["true"], "array": "1-3", "numbered": true, "stdout": "/o.{number}"})")
          .tasks[0];
  EXPECT_TRUE(one.array.numbered);
  const auto refused = [](const std::string& tasks) {
    return refusal(R"({"client": "t", "directory": "/d", "tasks": [)" + tasks + "]}");
  };
  const std::string single = R"({"command": ["true"], "numbered": true})";
  EXPECT_THAT(refused(single + R"(, {"command": ["true"], "array": "1-3", "numbered": true})"),
              testing::HasSubstr("task 2: an array with 'numbered'"));
  EXPECT_THAT(refused(R"({"command": ["true"], "array": "0-1000001", "numbered": true})"),
              testing::HasSubstr("has 1000002 indices; at most 1000001"));
  EXPECT_EQ(refused(R"({"command": ["true"], "array": "0-1000000", "numbered": true})"),
            "accepted");
  EXPECT_EQ(
      refused(
          R"({"command": ["true"], "numbered": true, "items": ["a", "b{node}"], "stdout": "/o.{}"})"),
      "accepted");
  EXPECT_THAT(refused(R"({"tool": "t", "numbered": true})"),
              testing::HasSubstr("goes with a 'command'"));
  EXPECT_THAT(refused(R"({"command": ["true"], "array": "1-3", "stdout": "/o.{number}"})"),
              testing::HasSubstr("'{number}' stands for nothing"));
}

TEST(ReadSubmit, ADoubledBraceOfATaskAloneIsOne) {
  const TaskRequest one =
      read(R"({"command": ["{{a}}"], "directory": "/{{d}}", "name": "{{n}}", "stdout": "/{{o}}"})")
          .tasks[0];
  EXPECT_EQ(one.directory, "/{d}");
  EXPECT_EQ(one.name, "{n}");
  EXPECT_EQ(one.command.front(), "{{a}}");
  EXPECT_EQ(one.standard_output, "/{{o}}") << "its id is put in later";
}

TEST(ReadSubmit, AnArrayMayCountFromZero) {
  const TaskRequest zero = read(R"({"command": ["true"], "array": "0-3,8"})").tasks[0];
  EXPECT_EQ(to_string(zero.array.indices), "1-4,9") << "as in ids";
  EXPECT_TRUE(zero.from_zero);
  EXPECT_FALSE(read(R"({"command": ["true"], "array": "1-3"})").tasks[0].from_zero);
  const auto refused = [](const std::string& task) {
    return refusal(R"({"client": "t", "directory": "/d", "tasks": [{"command": ["echo"], )" + task +
                   "}]}");
  };
  EXPECT_THAT(refused(R"("items": ["x"], "array": "0")"),
              testing::HasSubstr("by their numbers, from 1, and has 0"));
  EXPECT_THAT(refused(R"("array": "0,4294967294")"), testing::HasSubstr("ends too high"));
}

std::string with_places_refused(const std::string& task) {
  return refusal(R"({"client": "t", "directory": "/d", "tasks": [{)" + task + "}]}");
}

TEST(ReadRequest, WhatLooksLikeAPlaceAndIsNoneIsRefused) {
  const std::string one = R"("items": ["a"], )";
  EXPECT_EQ(
      with_places_refused(one + R"("command": ["echo", "{foo}"])"),
      "task: '{foo}' stands for nothing: the items are single texts, and {} is the item; names "
      "and numbers stand for columns (--columns, --header, JSON lines), a text that is meant as "
      "it stands belongs into a script");
  for (const char* word : {"{2}", "x-{foo/.}.txt", "{foo:q}", "{1:s}", "{%}", "{..}", "{/..}",
                           "{+/}", "{index}", "{id}", "{##}", "{foo}{}", "a.{3}"}) {
    for (const char* items : {R"("items": ["a"], )", R"("items": [["a"]], )"})
      EXPECT_NE(
          with_places_refused(items + (R"("command": ["echo", ")" + std::string(word) + "\"]")),
          "accepted")
          << items << word;
  }
  for (const char* rest :
       {R"("command": ["x"], "name": "{foo}")", R"("command": ["x"], "stdin": "/i/{foo}")",
        R"("command": ["x"], "directory": "/d/{foo}")",
        R"("command": ["x"], "inputs": {"a": "/{foo}"})",
        R"("command": ["x"], "stdout": "/o/{foo}.{id}")",
        R"("command": ["sh", "-c", "echo {foo}"])"})
    EXPECT_THAT(with_places_refused(one + rest), testing::HasSubstr("'{foo}' stands for nothing"))
        << rest;
}

TEST(ReadRequest, PlacesOfTasksWithoutItemsAreTheirIndexAndId) {
  EXPECT_THAT(with_places_refused(R"("array": "1-3", "command": ["echo", "{index}"])"),
              testing::HasSubstr("write $HPCBATCH_TASK_INDEX"));
  EXPECT_THAT(
      with_places_refused(R"("array": "1-3", "command": ["x"], "stdout": "/o/{index}.{foo}")"),
      testing::HasSubstr("'{foo}' stands for nothing that a task without items has"));
  EXPECT_THAT(with_places_refused(R"("command": ["x"], "stderr": "/o/{foo}")"),
              testing::HasSubstr("write {id}"));
  EXPECT_EQ(with_places_refused(
                R"("array": "1-3", "command": ["find", "-exec", "ls", "{}", "{foo}", "+"])"),
            "accepted")
      << "nothing is filled into it";
  EXPECT_EQ(with_places_refused(R"("command": ["echo", "{index}", "{foo}"])"), "accepted");
}

TEST(ReadRequest, BracesOfOtherLanguagesStay) {
  for (
      const char* command :
      {R"x(["awk", "{print}", "{}"])x", R"x(["python3", "-c", "print(f'{x}')", "{}"])x",
       R"x(["curl", "-w", "%{http_code}", "{}"])x", R"x(["grep", "-E", "[0-9]{4}", "{}"])x",
       R"x(["grep", "-P", "\\d{4}", "{}"])x", R"x(["git", "show", "HEAD@{1}", "{}"])x",
       R"x(["bash", "-c", "for i in {1..3} {a,b}; do { echo $i ${HOME} ${1} ${#}; }; done", "x", "{}"])x",
       R"x(["jq", "{a: .b}", "{}"])x", R"x(["echo", "{\"a\": 1}", "{a.b}", "{x:.2f}", "{}"])x"})
    EXPECT_EQ(with_places_refused(R"("items": ["a"], "command": )" + std::string(command)),
              "accepted")
        << command;
}

TEST(ReadRequest, SomeMayFailAndOutputMayGoNowhere) {
  const TaskRequest task =
      read(R"({"command": ["x"], "array": "1-5", "max_failures": 2, "halt_running": true,
               "stdout": "none", "stderr": "none"})")
          .tasks[0];
  EXPECT_EQ(task.array.give_up_at, 3U);
  EXPECT_TRUE(task.array.gives_up_running);
  EXPECT_EQ(task.standard_output, "/dev/null");
  EXPECT_EQ(read(R"({"command": ["x"]})").tasks[0].array.give_up_at, 0U);
}

TEST(ReadRequest, AnItemIsNeverAShellsProgram) {
  const auto refused = [](const std::string& command) {
    return refusal(R"({"client": "t", "directory": "/d", "tasks": [{"items": ["a"], "command": )" +
                   command + "}]}");
  };
  EXPECT_EQ(refused(R"(["sh", "-c", "echo {}"])"),
            "task: '{}' stands in the program of a shell, which would run what it holds; hand it "
            "over as an argument, sh -c '... \"$1\"' sh {}, or write {:q} there, which puts it in "
            "quotes; or write \"$HPCBATCH_ITEM\" there (items that are commands: sh -c 'eval "
            "\"$1\"' sh {})");
  EXPECT_THAT(refused(R"(["echo {} | wc -c"])"),
              testing::HasSubstr("a line for a shell is: sh -c 'echo {:q} | wc -c'"));
  EXPECT_THAT(refused(R"(["foo", "cat {/.} > x"])"), testing::HasSubstr("or write {/.:raw} if"));
  for (const char* wrong :
       {R"(["/bin/bash", "-euo", "pipefail", "-c", "x {/}"])", R"(["nice", "zsh", "-lc", "{.}"])",
        R"(["sh", "-c", "--", "{}"])", R"(["bash", "-c", "-e", "{}"])",
        R"(["bash", "--rcfile", "x", "-c", "{}"])", R"(["bash", "-O", "extglob", "-c", "{}"])",
        R"(["rbash", "-c", "{}"])", R"(["env", "-S", "bash -c 'echo {}'"])",
        R"(["flock", "f", "-c", "{}"])", R"(["script", "-qc", "{}", "/dev/null"])",
        R"(["su", "root", "-c", "{}"])", R"(["sh", "x", "sh", "-c", "{}"])"})
    EXPECT_EQ(refused(wrong).substr(0, 8), "task: '{") << wrong;
  for (const char* right :
       {R"(["sh", "-c", "echo \"$1\"", "sh", "{}"])", R"(["echo", "-c", "{}"])", R"(["sh", "{}"])",
        R"(["bash", "--norc", "{}"])", R"(["sh", "-c", "echo {#}"])",
        R"(["bash", "-x", "script.sh", "-c", "{}"])", R"(["env", "A=b", "tool", "{}"])"})
    EXPECT_EQ(refused(right), "accepted") << right;
}

/// `count` elements of what `one` makes of a number, with commas between them.
template <class One>
std::string many(std::size_t count, One one) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : ",") + std::string(one(std::to_string(i)));
  return text;
}

TEST(ReadRequest, ATaskAsksForABoundedNumberOfAmounts) {
  for (const char* key : {"resources", "gpus"}) {
    const std::string amounts = many(101, [](const std::string& i) { return "\"r" + i + "\": 1"; });
    EXPECT_EQ(refusal(R"({"client": "t", "directory": "/d", "tasks": [{"command": ["x"], ")" +
                      std::string(key) + "\": {" + amounts + "}}]}"),
              "task." + std::string(key) + " has 101 names; a task may have 100");
  }
}

TEST(ReadRequest, LongListsCostNoMoreThanTheirLength) {
  const auto word = [](const std::string& i) { return "\"a" + i + "\""; };
  const auto path = [](const std::string& i) { return "\"/a/" + i + "\""; };
  const auto pair = [](const std::string& i) { return "\"a" + i + "\": \"/b/" + i + "\""; };
  const auto column = [](const std::string& i) { return "\"c" + i + "\""; };
  const auto number = [](const std::string& i) { return i; };
  const auto amount = [](const std::string& i) { return "\"r" + i + "\": 1"; };
  const auto range = [](const std::string& i) { return i + "0"; };
  constexpr std::size_t kMany = 20'000;
  const std::string command = R"({"command": ["x"], )";
  const std::map<std::string, std::string> bodies{
      {"command", R"({"command": [)" + many(kMany, word) + "]}"},
      {"command of shells", R"({"items": ["x"], "command": [)" +
                                many(kMany, [](const std::string&) { return "\"sh\""; }) + "]}"},
      {"parameters", R"({"tool": "t", "parameters": {)" + many(kMany, pair) + "}}"},
      {"items", command + R"("items": [)" + many(kMany, word) + "]}"},
      {"items of lists", command + R"("items": [[)" + many(kMany, word) + "]]}"},
      {"items of maps", command + R"("items": [{)" + many(kMany, pair) + "}]}"},
      {"columns", command + R"("columns": [)" + many(kMany, column) + R"(], "items": [[)" +
                      many(kMany, word) + "]]}"},
      {"item_texts",
       command + R"("item_texts": [)" + many(kMany, word) + R"(], "items": [)" +
           many(kMany, [](const std::string& i) { return R"({"a": ")" + i + "\"}"; }) + "]}"},
      {"env", command + R"("env": {)" + many(kMany, pair) + "}}"},
      {"environment", command + R"("environment": {)" + many(kMany, pair) + "}}"},
      {"inputs", command + R"("inputs": {)" + many(kMany, pair) + "}}"},
      {"outputs", command + R"("outputs": {)" + many(kMany, pair) + "}}"},
      {"shared", command + R"("shared": [)" + many(kMany, path) + "]}"},
      {"follows", command + R"("follows": [)" + many(kMany, number) + "]}"},
      {"after", command + R"("after": [)" + many(kMany, word) + "]}"},
      {"after as numbers", command + R"("after": [)" + many(kMany, number) + "]}"},
      {"not_sites", command + R"("not_sites": [)" + many(kMany, word) + "]}"},
      {"tags", command + R"("tags": [)" + many(kMany, word) + "]}"},
      {"resources", command + R"("resources": {)" + many(kMany, amount) + "}}"},
      {"gpus", command + R"("gpus": {)" + many(kMany, amount) + "}}"},
      {"gpus as text", command + R"("gpus": ")" +
                           many(kMany, [](const std::string& i) { return "k" + i + ":1"; }) +
                           "\"}"},
      {"kinds of gpus", command + R"("gpus": ")" +
                            many(kMany, [](const std::string& i) { return "k" + i + "|x"; }) +
                            ":1\"}"},
      {"array", command + R"("array": ")" + many(kMany, range) + "\"}"},
      {"array backwards",
       command + R"("array": ")" +
           many(kMany,
                [](const std::string& i) { return std::to_string(900'000 - 2 * std::stoi(i)); }) +
           "\"}"},
      {"binds", command + R"("container": {"image": "i", "binds": [)" + many(kMany, path) + "]}}"},
      {"container environment",
       command + R"("container": {"image": "i", "environment": {)" + many(kMany, pair) + "}}}"},
      {"service", command + R"("service": {"name": "s", "command": [)" + many(kMany, word) + "]}}"},
      {"unknown keys", "{" + many(kMany, pair) + "}"},
      {"places", R"({"items": ["x"], "command": [")" + std::string(kMany, '{') + "\"]}"},
      {"columns asked for",
       R"({"columns": ["a"], "items": [["x"]], "command": [")" +
           many(kMany, [](const std::string& i) { return "{a}{b" + i + "}"; }) + "\"]}"}};
  // CPU of this thread: others may use the machine.
  const auto cpu = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  for (const auto& [key, body] : bodies) {
    const std::string whole = R"({"client": "t", "directory": "/d", "tasks": [)" + body + "]}";
    const double begin = cpu();
    try {
      (void)read_submit_body(whole);
    } catch (const BadRequest&) {
      // That is an answer, too.
    }
    EXPECT_LT(cpu() - begin, 1.2) << key << ": others are read within a third of that";
  }
}

TEST(ReadRequest, AContainerIsAnImageOrMore) {
  const auto with = [](const std::string& container) {
    return R"({"client": "t", "directory": "/d", "tasks": [{"command": ["c"], "container": )" +
           container + "}]}";
  };
  const auto of = [&](const std::string& container) {
    return read(R"({"command": ["c"], "container": )" + container + "}").tasks[0].container;
  };
  EXPECT_EQ(of(R"("a.sif")").image, "a.sif");
  EXPECT_EQ(of(R"("a.sif")").terms, ContainerTerms());
  const ContainerTerms terms =
      of(R"({"image": "docker://a", "binds": ["/a", "/b:/c:ro"], "network": "none", "gpu": false,
             "entrypoint": "keep", "environment": {"A": "b"}, "runtime": "podman"})")
          .terms;
  EXPECT_EQ(terms, (ContainerTerms{.binds = {{"/a", "/a", false}, {"/b", "/c", true}},
                                   .no_network = true,
                                   .gpus = false,
                                   .keeps_entrypoint = true,
                                   .variables = {{"A", "b"}},
                                   .runtime = "podman"}));
  EXPECT_EQ(of(R"({"image": "a", "gpu": "true"})").terms.gpus, true);
  for (const auto& [wrong, says] : {
           std::pair{R"({"binds": []})", "container.image is missing"},
           {R"({"image": "a", "binds": ["a:b"]})", "container.binds: 'a:b' is no bind; write"},
           {R"({"image": "a", "binds": ["/a:/b:/c"]})", "container.binds: '/a:/b:/c' is no bind"},
           {R"({"image": "a", "network": "off"})", "container.network must be host or none"},
           {R"({"image": "a", "gpu": "2"})", "container.gpu must be true or false"},
           {R"({"image": "a", "entrypoint": "sh"})", "container.entrypoint must be keep or none"},
           {R"({"image": "a", "runtime": "rkt"})", "container.runtime must be apptainer, "},
           {R"({"image": "a", "bind": "x"})", "container.bind is no key of a container; it has"},
           {"3", "container must be the name of an image, or an object with 'image'"},
       })
    EXPECT_THAT(refusal(with(wrong)), testing::HasSubstr(says)) << wrong;
}

TEST(ReadTask, NumbersAreReadToTheirLastDigit) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> some(-1, 1);
  for (int i = 0; i < 2000; ++i) {
    const double number = std::ldexp(some(random), static_cast<int>(random() % 120) - 60);
    const std::string text = fmt::format("{}", number);
    const std::string body = R"({"tasks": [], "x": [)" + text + "]}";
    EXPECT_EQ(parse_body(body).at("x").at(0).to_number<double>(), number) << text;
  }
  const std::string body =
      R"({"client": "me", "directory": "/", "tasks": [{"command": ["{a}"], "items": [)"
      R"({"a": 0.00012103975866529293}]}]})";
  EXPECT_THAT(read_submit_body(body).request.tasks.at(0).items.at(0),
              testing::HasSubstr("0.00012103975866529293"));
}

TEST(ReadTask, ANumberThatNoDoubleHoldsIsRefusedAndNotCalledInfinity) {
  const auto of_item = [](const std::string& item) {
    return R"({"client": "me", "directory": "/", "tasks": [{"command": ["x", "{a}"], "items": [)" +
           item + "]}]}";
  };
  for (const char* item : {R"({"a": 1e400})", R"({"a": -0.1e4005})"}) {
    const std::string body = of_item(item);
    EXPECT_THAT(refusal(body), testing::HasSubstr("larger than 1.8e308")) << item;
    EXPECT_EQ(outcome(body, true), outcome(body, false));
  }
  EXPECT_EQ(refusal(of_item(R"({"a": 1.7e308})")), "accepted");
}

TEST(ReadTask, TakesValuesAsPeopleWriteThem) {
  const auto read = [](const std::string& keys) {
    return read_task(boost::json::parse(R"({"command": ["true"], )" + keys + "}"), "task");
  };
  const TaskRequest task = read(
      R"("cpus": "1.5", "retries": "2", "hold": "true", "gpus": ["a100:2", "v100"], "time": "1h")");
  EXPECT_EQ(task.array.needs.amounts.get(kCpus), Amount::of_fraction(1.5));
  EXPECT_EQ(task.array.retries, 2U);
  EXPECT_TRUE(task.array.held);
  EXPECT_EQ(task.array.needs.amounts.get("gpus/a100"), Amount::of(2));
  EXPECT_EQ(task.array.needs.amounts.get("gpus/v100"), Amount::of(1));
  const TaskRequest open = read(R"("gpu_memory": "40G", "gpu_capability": "8.0")");
  EXPECT_EQ(open.array.needs.amounts.get("gpus"), Amount::of(1));
  EXPECT_EQ(open.gpu_terms, (GpuTerms{std::uint64_t{40} << 30, 80}));
  const TaskRequest ways = read(R"("one_of": "gpus=a100,gpu-memory=40G,cpus=4; cpus=16,mem=8G")");
  ASSERT_EQ(ways.one_of.size(), 2U);
  EXPECT_EQ(ways.one_of[0].amounts.get("gpus/a100"), Amount::of(1));
  EXPECT_EQ(ways.one_of[0].gpu_terms.memory, std::uint64_t{40} << 30);
  EXPECT_EQ(ways.one_of[1].amounts.get(kMemory), Amount::of(std::int64_t{8} << 30));
}

TEST(ReadTask, ATextThatIsNoSuchValueIsNamedWithItsKey) {
  const auto refused = [](const std::string& keys) {
    try {
      read_task(boost::json::parse(R"({"command": ["true"], )" + keys + "}"), "task");
    } catch (const BadRequest& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const auto& [keys, says] : {
           std::pair{R"("cpus": "many")", "task.cpus: 'many' is not a number, like 4 or 0.5"},
           {R"("memory": "8Q")", "task.memory: '8Q' is not a size, like 512M, 8G"},
           {R"("retries": "-1")", "task.retries: '-1' is not a whole number from 0 to 1000"},
           {R"("retries": 1001)", "task.retries must be a whole number from 0 to 1000"},
           {R"("cpu_bind": "near")",
            "task.cpu_bind: 'near' is none of compact, scatter, numa, none"},
           {R"("gpus": "a100:few")", "task.gpus: 'a100:few' is not a number of GPUs"},
           {R"("gpus": ["1", "a100"])", "task.gpus: say a number of any kind or numbers by kind"},
           {R"("one_of": "gpus=1; cpus=x")", "task.one_of: cpus: 'x' is not a number"},
           {R"("one_of": "gpus=1")", "task.one_of must be a list of 2 to 8 ways"},
           {R"("gpus": {"a100": 1, "v100": 1}, "gpu_memory": "40G")", "go with GPUs of one kind"},
       })
    EXPECT_THAT(refused(keys), testing::HasSubstr(says)) << keys;
}

/// What the help and files of tasks know of is what is taken.
TEST(ReadTask, TakesTheKeysThatAreListed) {
  for (const TaskKey& key : task_keys()) EXPECT_TRUE(is_read(key)) << key.name;
}

TEST(ReadChosen, TakesTasksAndWholeSubmits) {
  const Chosen chosen = read_chosen(boost::json::parse(R"({"ids": ["12", "7.1-9", "12-15"]})"));
  ASSERT_EQ(chosen.tasks.size(), 2U);
  EXPECT_EQ(chosen.tasks[1].array, ArrayId{7});
  EXPECT_TRUE(chosen.tasks[1].indices);
  ASSERT_EQ(chosen.submits.size(), 1U);
  EXPECT_EQ(chosen.submits[0], std::pair(ArrayId{12}, ArrayId{15}));
  for (const char* wrong : {R"({"ids": ["15-12"]})", R"({"ids": ["12-"]})", R"({"ids": ["-12"]})",
                            R"({"ids": ["1-2-3"]})", R"({"ids": []})"})
    EXPECT_THROW(read_chosen(boost::json::parse(wrong)), BadRequest) << wrong;
}

}  // namespace
}  // namespace hpcbatch
