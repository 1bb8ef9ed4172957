// How many tasks a submission may have fail, and what a joblog says of one.
#include "cli/work/many.hpp"
#include "cli/verbs/joblog.hpp"

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
