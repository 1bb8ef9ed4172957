// How many tasks a submission may have fail, and what a joblog says of one.
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/tasks/submission.hpp"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

namespace hpcbatch {
namespace {

HaltOption share(double of) {
  HaltOption halt;
  halt.share = of;
  return halt;
}

TEST(ManyTest, AShareOfFailuresIsRoundedUp) {
  EXPECT_EQ(failures_allowed(share(0.1), 40), 3U) << "the fourth is a tenth";
  EXPECT_EQ(failures_allowed(share(0.1), 41), 4U);
  EXPECT_EQ(failures_allowed(share(0.01), 5), 0U) << "one is more than that";
  EXPECT_EQ(failures_allowed(share(1), 5), 4U);
  HaltOption number;
  number.failures = 7;
  EXPECT_EQ(failures_allowed(number, 5), 7U);
}

std::string doubt(std::vector<std::string> command, const char* task) {
  WorkOptions work;
  work.command = std::move(command);
  ManyOptions many;
  const boost::json::object json = boost::json::parse(task).as_object();
  if (json.contains("items"))
    many.items.sources.push_back({"", {"a", "b"}});
  else
    many.array = ArrayOption{"1-3", 0};
  return doubt_of(work, many, json);
}

TEST(ManyTest, ACommandThatDoesNotUseItsItemIsDoubted) {
  constexpr const char* kItems = R"({"items": ["a", "b"]})";
  EXPECT_NE(doubt({"echo", "hi"}, kItems), "");
  EXPECT_NE(doubt({"echo", "{item}"}, kItems), "");
  EXPECT_EQ(doubt({"echo", "{/}"}, kItems), "");
  EXPECT_EQ(doubt({"sh", "-c", "echo $HPCBATCH_ITEM"}, kItems), "");
  EXPECT_EQ(doubt({"echo", "{s}"}, R"({"items": [["a", "1"]], "columns": ["s", "n"]})"), "");
  EXPECT_NE(doubt({"echo", "{}"}, "{}"), "") << "an array has no items";
  EXPECT_EQ(doubt({"echo"}, "{}"), "");
}

std::string refusal_of(std::vector<std::string> command, const std::string& item) {
  WorkOptions work;
  work.command = std::move(command);
  ManyOptions many;
  many.items.sources.push_back({"", {item}});
  try {
    const Interrupt interrupt;
    task_of_many(work, many, "/", interrupt);
    return "";
  } catch (const CommandError& e) {
    return e.what();
  }
}

TEST(ManyTest, APatternThatNoFileMatchesIsRefused) {
  EXPECT_NE(refusal_of({"ffmpeg", "-i", "{}"}, "*.flac").find("no file matches '*.flac'"),
            std::string::npos);
  EXPECT_EQ(refusal_of({"expr", "{}"}, "2*3"), "");
  EXPECT_EQ(refusal_of({"curl", "{}"}, "http://x/a.html?b=1"), "");
}

TEST(ManyTest, AColumnOfItemsThatHaveOneIsRefusedWhereTheyLookLikeMore) {
  EXPECT_NE(refusal_of({"fit", "{1}", "{2}"}, "s1\t3").find("say --columns tab"),
            std::string::npos);
  EXPECT_NE(refusal_of({"fit", "{2}"}, "s1,3").find("say --columns ','"), std::string::npos);
  EXPECT_EQ(refusal_of({"fit", "{1}"}, "s1\t3"), "");
  EXPECT_EQ(refusal_of({"grep", "x{2}"}, "s1"), "");
  EXPECT_NE(doubt({"grep", "x{2}", "{}"}, R"({"items": ["a"]})").find("{2} stays as it is"),
            std::string::npos);
}

TEST(ManyTest, ALineIsNoProgram) {
  EXPECT_NE(refusal_of({"{}"}, "fit a.txt | sort").find("eval"), std::string::npos);
  EXPECT_EQ(refusal_of({"{}"}, "fit.sh"), "");
  EXPECT_EQ(refusal_of({"cat", "{}"}, "my file"), "");
}

TEST(JoblogTest, ALineHasWhatGnuParallelWrites) {
  EXPECT_EQ(joblog_line(7, boost::json::parse(R"({"node": "n1", "started_at": 1764072000.1234,
                                                  "run_s": 2.5, "exit_code": 3,
                                                  "command": ["sh", "-c", "a\n\tb"]})")
                               .as_object()),
            "7\tn1\t1764072000.123\t2.500\t0\t0\t3\t0\tsh -c 'a  b'");
  EXPECT_EQ(joblog_line(8, boost::json::parse(R"({"command": ["x"]})").as_object()),
            "8\t-\t0.000\t0.000\t0\t0\t-1\t0\tx")
      << "it never ran";
}

}  // namespace
}  // namespace hpcbatch
