// A file's tasks name each other, in whatever order they stand.
#include "cli/process/process.hpp"
#include "cli/tasks/submission.hpp"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string ordered(const std::string& tasks) {
  json::array array = json::parse(tasks).as_array();
  try {
    order_tasks(array, "t.yaml");
  } catch (const CommandError& error) {
    return error.what();
  }
  std::string out;
  for (const json::value& task : array) out += (out.empty() ? "" : " ") + json::serialize(task);
  return out;
}

TEST(TaskGraph, NamesAndPlacesBecomeWhatTheEngineTakes) {
  EXPECT_EQ(ordered(R"([{"name": "a"}, {"name": "b.1", "after": "a"},
                        {"after": ["b.1", "#1", "a.7", "12.3"], "after_each": ["b.1"]}])"),
            R"({"name":"a"} {"name":"b.1","after":["#1"]} )"
            R"({"after":["#2","#1","#1.7","12.3"],"after_each":["#2"]})");
}

TEST(TaskGraph, TasksStandBehindThoseTheyWaitFor) {
  EXPECT_EQ(ordered(R"([{"name": "z", "after": ["y"]}, {"name": "x"}, {"name": "y", "after": "#2"},
                        {"after_any": "#1"}])"),
            R"({"name":"x"} {"name":"y","after":["#1"]} {"name":"z","after":["#2"]} )"
            R"({"after_any":["#3"]})");
}

TEST(TaskGraph, WhatIsNotThereIsSaid) {
  EXPECT_EQ(ordered(R"([{"name": "prepare"}, {"name": "fit", "after": ["prepar"]}])"),
            "t.yaml: task 2 (fit) waits for 'prepar', which is no id and no task's name; did you "
            "mean 'prepare'?");
  EXPECT_EQ(ordered(R"([{"after": "#2"}])"),
            "t.yaml: task 1 waits for '#2': the file has no such task");
  EXPECT_EQ(ordered(R"([{"name": "a"}, {"name": "a"}, {"after": "a"}])"),
            "t.yaml: task 3 waits for 'a', and 2 tasks are called so; write #N for the Nth task");
}

TEST(TaskGraph, ACircleIsNamed) {
  EXPECT_EQ(ordered(R"([{"name": "in", "after": "b"}, {"name": "a", "after": "b"},
                        {"name": "b", "after": "c"}, {"name": "c", "after": "a"}])"),
            "t.yaml: task 3 (b), which waits for task 4 (c), which waits for task 2 (a), which "
            "waits for the first: none of them can ever start");
  EXPECT_EQ(ordered(R"([{"name": "a", "after": "a"}])"),
            "t.yaml: task 1 (a) waits for itself: it can never start");
}

}  // namespace
}  // namespace hpcbatch
