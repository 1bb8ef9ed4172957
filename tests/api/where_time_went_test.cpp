// Where a submission's time went, as people read it.
#include "api/answers/submission_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TimeSpent sweep() {
  TimeSpent spent{.submitted = Time{100s}, .started = Time{103s}, .ended = Time{203s}, .cpus = 2};
  spent.tasks = {.tasks = 100,
                 .ran = 400s,
                 .cpu = 600s,
                 .half_within = 3s,
                 .most_within = 8s,
                 .busy = 100s,
                 .half_waited = 50s,
                 .longest = TaskId{ArrayId{5}, 7},
                 .longest_ran = 41s};
  return spent;
}

TEST(WhereTimeWent, OfASweep) {
  TimeSpent spent = sweep();
  spent.longest_item = "chr9.bam";
  spent.tasks.earlier_attempts = 3;
  spent.tasks.earlier_ran = 9s;
  EXPECT_EQ(in_words(spent),
            (Lines{"of their last attempts the first started 3s after the submit, half of those "
                   "that ran had started "
                   "after 50s; the last ended "
                   "1m40s later: 4.0 at a time",
                   "100 ran 6m40s together: half of them within 3s, nine of ten within 8s, the "
                   "longest 41s: 5.7 (item chr9.bam)",
                   "cpu time 10m: each kept 1.50 cpus busy and asked for 2",
                   "3 earlier attempts ran 9s more"}));
  EXPECT_EQ(to_json(spent).at("longest").as_string(), "5.7");
}

TEST(WhereTimeWent, WhileItGoesOnAndOfAnEstimate) {
  TimeSpent spent = sweep();
  spent.ended.reset();
  spent.tasks.longest.reset();
  spent.tasks.is_estimate = true;
  EXPECT_EQ(in_words(spent).at(0),
            "the first started 3s after the submit, half of those that ran had started after 50s");
  EXPECT_EQ(in_words(spent).at(1),
            "100 ran about 6m40s together: half of them within 3s, nine of ten within 8s");
}

TEST(WhereTimeWent, ARetryLongAfterIsNotTakenForTasksThatRan) {
  TimeSpent spent = sweep();
  spent.tasks.busy = 50s;
  EXPECT_THAT(in_words(spent).at(0),
              testing::EndsWith("later, and 50s of it something ran: 8.0 at a time"));
}

TEST(WhereTimeWent, OfOneAndOfNone) {
  TimeSpent spent = sweep();
  spent.tasks = {.tasks = 1, .ran = 100s};
  EXPECT_EQ(in_words(spent),
            (Lines{"the first started 3s after the submit; the last ended 1m40s later",
                   "it ran 1m40s", "cpu time 0s: each kept 0.00 cpus busy and asked for 2"}));
  // Some run, none has ended.
  spent.tasks = {};
  spent.ended.reset();
  EXPECT_EQ(in_words(spent), (Lines{"the first started 3s after the submit"}));
  spent.started.reset();
  EXPECT_EQ(in_words(spent), Lines{});
}

}  // namespace
}  // namespace hpcbatch
