// Each promise has histories that keep it and histories that break it.
#include "history/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace hpcbatch::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One record a line, "SECONDS BY WHAT FACTS"; E, P, Q and O stand for an engine, two pilots and
/// the outside.
History history(const std::string& text) {
  History all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    double seconds = 0;
    std::string by;
    if (!(words >> seconds >> by)) continue;
    std::string rest;
    std::getline(words, rest);
    const std::string who = by == "E"   ? "engine/1"
                            : by == "P" ? "pilot/hone.0/1"
                            : by == "Q" ? "pilot/htwo.0/1"
                            : by == "R" ? "pilot/hone.0/2"
                                        : "outside";
    std::string stamped = std::to_string(static_cast<std::int64_t>(seconds * 1e6));
    stamped.append(" ").append(who).append(rest);
    auto record = read_history_line(stamped);
    EXPECT_TRUE(record) << line;
    all.push_back(record.value());
  }
  return all;
}

std::vector<std::string> promises(const History& records, const Options& options = {}) {
  std::vector<std::string> broken;
  for (const Breach& breach : check(records, options)) broken.push_back(breach.promise);
  return broken;
}

const char* const kOneTask = R"(
1 E engine-started start=1
1 E site site=here max_queued=1 max_running=2
2 E accepted array=1 indices=0
3 E allocation-asked allocation=hone site=here shape=cpu
4 O job-created name=hone number=7 site=here
5 O job-running name=hone number=7 site=here
6 P pilot-started idle_us=60000000
6 P linked
6 E pilot-registered pilot=hone.0 incarnation=1
7 E leased task=1 attempt=1 epoch=101 pilot=hone.0
8 P attempt-started task=1 attempt=1 epoch=101
)";

std::string one_task(const std::string& rest) {
  return kOneTask + rest;
}

TEST(CheckTest, ATaskThatRunsBreaksNothing) {
  EXPECT_THAT(promises(history(one_task(R"(
9 P attempt-ended task=1 epoch=101 failure=ok
9 E publish-permitted task=1 epoch=101 pilot=hone.0
10 P published task=1 epoch=101
11 E result task=1 epoch=101 failure=ok pilot=hone.0
50 P pilot-ended reason=idle
51 O job-ended name=hone number=7 site=here
52 E allocation-ended allocation=hone
53 E engine-ended
)"))),
              IsEmpty());
}

TEST(CheckTest, ABreachNamesItsRecords) {
  const History records = history(
      "1 E accepted array=3 indices=1-4\n2 E never-ran array=3 indices=1-3 failure=cancelled\n3 E "
      "engine-ended\n");
  const auto breaches = check(records);
  ASSERT_EQ(breaches.size(), 1U);
  EXPECT_THAT(breaches[0].records, ElementsAre(0, 2));
  const std::string text = to_text(breaches[0], records);
  EXPECT_THAT(text, HasSubstr("G1 is broken: 1 of array 3"));
  EXPECT_THAT(text, HasSubstr("accepted array=3 indices=1-4"));
}

// --- G1 and G4 ---------------------------------------------------------------------------------

TEST(CheckTest, WhatWasAcceptedIsNotForgotten) {
  const History records = history("1 E accepted array=1 indices=1-9\n");
  EXPECT_THAT(promises(records), IsEmpty()) << "the run may go on";
  EXPECT_THAT(promises(records, {.ended = true}), ElementsAre("G1"));
  EXPECT_THAT(promises(history("1 E accepted array=1 indices=1-9\n2 E waits array=1 indices=1-9 "
                               "reason=held\n3 E engine-ended\n")),
              IsEmpty());
  EXPECT_THAT(promises(history("1 E accepted array=1 indices=1-9\n2 E waits array=1 indices=1-8 "
                               "reason=held\n3 E engine-ended\n")),
              ElementsAre("G1"));
}

TEST(CheckTest, ARestartLosesNothing) {
  const std::string ran =
      "1 E accepted array=1 indices=1-3\n2 E result task=1.1 epoch=0 failure=tool_failed\n3 E "
      "engine-started start=2\n";
  EXPECT_THAT(
      promises(history(ran + "3 E restored-open array=1 indices=2-3\n3 E restored next_array=2\n")),
      IsEmpty());
  EXPECT_THAT(
      promises(history(ran + "3 E restored-open array=1 indices=3\n3 E restored next_array=2\n"
                             "4 E waits array=1 indices=3 reason=held\n5 E engine-ended\n")),
      IsEmpty())
      << "it was killed before it could record the result of 1.2";
  EXPECT_THAT(
      promises(history(ran + "3 E restored-open array=1 indices=1-3\n3 E restored next_array=2\n")),
      ElementsAre("G1"))
      << "a result is gone";
  EXPECT_THAT(promises(history(ran + "3 E restored next_array=1\n")), ElementsAre("G1"))
      << "the array is gone";
}

TEST(CheckTest, WhatRunsAgainHasToEndAgain) {
  EXPECT_THAT(
      promises(history(
          "1 E accepted array=1 indices=0\n2 E never-ran array=1 indices=0 failure=cancelled\n"
          "3 E revived array=1 indices=0\n4 E engine-ended\n")),
      ElementsAre("G1"));
}

TEST(CheckTest, AReasonToWaitIsSaid) {
  EXPECT_THAT(promises(history("1 E accepted array=1 indices=0\n2 E waits array=1 indices=0 "
                               "reason=\n3 E engine-ended\n")),
              ElementsAre("G4"));
}

// --- G2 ----------------------------------------------------------------------------------------

TEST(CheckTest, ATaskHasOneResult) {
  const std::string ends = one_task(
      "9 P attempt-ended task=1 epoch=101 failure=ok\n10 E result task=1 epoch=101 failure=ok "
      "pilot=hone.0\n");
  EXPECT_THAT(promises(history(ends)), IsEmpty());
  EXPECT_THAT(promises(history(ends + "11 E result task=1 epoch=101 failure=ok pilot=hone.0\n")),
              ElementsAre("G2"));
  EXPECT_THAT(promises(history(ends + "11 E never-ran array=1 indices=0 failure=cancelled\n")),
              ElementsAre("G2"));
  EXPECT_THAT(
      promises(history(
          ends +
          "11 E revived array=1 indices=0\n12 E never-ran array=1 indices=0 failure=cancelled\n")),
      IsEmpty());
  EXPECT_THAT(promises(history(ends + "11 E leased task=1 attempt=2 epoch=102 pilot=htwo.0\n")),
              ElementsAre("G2"));
}

TEST(CheckTest, AResultIsThatOfTheAttemptLeasedLast) {
  EXPECT_THAT(promises(history(one_task("9 P attempt-ended task=1 epoch=101 failure=node_lost\n"
                                        "9 E attempt-failed task=1 epoch=101 failure=node_lost\n"
                                        "10 E leased task=1 attempt=2 epoch=102 pilot=hone.0\n"
                                        "11 E result task=1 epoch=101 failure=ok pilot=hone.0\n"))),
              ElementsAre("G2", "G2"));
}

TEST(CheckTest, AGoodResultIsOneThatThePilotSaw) {
  EXPECT_THAT(promises(history(one_task("10 E result task=1 epoch=101 failure=ok pilot=hone.0\n"))),
              ElementsAre("G2"));
  EXPECT_THAT(promises(history(one_task("9 P attempt-ended task=1 epoch=101 failure=tool_failed\n"
                                        "10 E result task=1 epoch=101 failure=ok pilot=hone.0\n"))),
              ElementsAre("G2"));
}

TEST(CheckTest, OutputsAreThereBeforeTheResultAndOnce) {
  const std::string permitted = one_task(
      "9 P attempt-ended task=1 epoch=101 failure=ok\n"
      "9 E publish-permitted task=1 epoch=101 pilot=hone.0\n");
  EXPECT_THAT(
      promises(history(permitted + "10 E result task=1 epoch=101 failure=ok pilot=hone.0\n")),
      ElementsAre("G2"));
  EXPECT_THAT(promises(history(
                  permitted + "10 E result task=1 epoch=101 failure=stage_out_failed pilot=hone.0\n"
                              "11 P published task=1 epoch=101\n")),
              ElementsAre("G2", "G3"));
  EXPECT_THAT(promises(history(permitted + R"(
10 P published task=1 epoch=101
12 E leased task=1 attempt=2 epoch=102 pilot=htwo.0
13 Q attempt-started task=1 attempt=2 epoch=102
14 Q attempt-ended task=1 epoch=102 failure=ok
14 E publish-permitted task=1 epoch=102 pilot=htwo.0
15 Q published task=1 epoch=102
)")),
              ElementsAre("G2", "G3"));
  EXPECT_THAT(promises(history(permitted + R"(
10 P published task=1 epoch=101
11 E allocation-ended allocation=hone
11 E attempt-failed task=1 epoch=101 failure=node_lost pilot=hone.0
12 E leased task=1 attempt=2 epoch=102 pilot=htwo.0
13 Q attempt-started task=1 attempt=2 epoch=102
14 Q attempt-ended task=1 epoch=102 failure=ok
14 E publish-permitted task=1 epoch=102 pilot=htwo.0
15 Q published task=1 epoch=102
)")),
              IsEmpty())
      << "the node went before it could tell";
}

// --- G3 ----------------------------------------------------------------------------------------

TEST(CheckTest, SilenceAloneNeverLeasesAgain) {
  const std::string silent = "20 E lease-returned task=1\n";
  const std::string again = "22 E leased task=1 attempt=2 epoch=102 pilot=htwo.0\n";
  EXPECT_THAT(promises(history(one_task(silent + again))), ElementsAre("G3"));
  EXPECT_THAT(
      promises(history(one_task(silent + "21 E allocation-ended allocation=hone\n" + again))),
      IsEmpty());
  EXPECT_THAT(promises(history(one_task(
                  silent + "21 P attempt-ended task=1 epoch=101 failure=cancelled\n" + again))),
              IsEmpty());
  EXPECT_THAT(promises(history(one_task(silent + "21 O pilot-killed process=hone.0/1\n" + again))),
              IsEmpty());
  EXPECT_THAT(promises(history(one_task(silent + "21 R pilot-started idle_us=1\n" + again))),
              IsEmpty())
      << "the batch system started it anew";
}

TEST(CheckTest, ALeaseEndsBeforeTheNext) {
  EXPECT_THAT(promises(history(one_task("22 E leased task=1 attempt=2 epoch=102 pilot=hone.0\n"))),
              ElementsAre("G3"));
}

TEST(CheckTest, EpochsRise) {
  EXPECT_THAT(promises(history(one_task("9 P attempt-ended task=1 epoch=101 failure=node_lost\n"
                                        "9 E attempt-failed task=1 epoch=101 failure=node_lost\n"
                                        "22 E leased task=1 attempt=2 epoch=100 pilot=hone.0\n"))),
              ElementsAre("G3"));
}

TEST(CheckTest, AnAttemptStartsOnceAndOnlyWhereItWasLeased) {
  EXPECT_THAT(promises(history(one_task("9 P attempt-started task=1 attempt=1 epoch=101\n"))),
              ElementsAre("G3"));
  EXPECT_THAT(promises(history(one_task("9 Q attempt-started task=1 attempt=1 epoch=101\n"))),
              ElementsAre("G3"));
  EXPECT_THAT(promises(history(one_task("9 P attempt-started task=2 attempt=1 epoch=102\n"))),
              ElementsAre("G3"));
}

TEST(CheckTest, AnOldAttemptDoesNotStart) {
  EXPECT_THAT(promises(history(R"(
1 E leased task=1 attempt=1 epoch=101 pilot=hone.0
2 E lease-returned task=1
3 E leased task=1 attempt=2 epoch=102 pilot=htwo.0
4 P attempt-started task=1 attempt=1 epoch=101
)")),
              ElementsAre("G3"));
}

TEST(CheckTest, OnlyTheCurrentAttemptPublishes) {
  EXPECT_THAT(promises(history(one_task("9 P published task=1 epoch=101\n"))), ElementsAre("G3"));
  EXPECT_THAT(promises(history(one_task("9 P attempt-ended task=1 epoch=101 failure=ok\n"
                                        "10 E attempt-failed task=1 epoch=101 failure=node_lost\n"
                                        "11 E publish-permitted task=1 epoch=101 pilot=hone.0\n"))),
              ElementsAre("G3"));
}

TEST(CheckTest, WhoIsFencedOffStartsNothing) {
  EXPECT_THAT(
      promises(history(one_task("9 P attempt-ended task=1 epoch=101 failure=cancelled\n9 P fenced\n"
                                "10 E leased task=2 attempt=1 epoch=103 pilot=hone.0\n"
                                "11 P attempt-started task=2 attempt=1 epoch=103\n"))),
      ElementsAre("G3"));
}

// --- G5 ----------------------------------------------------------------------------------------

TEST(CheckTest, AnIdlePilotEnds) {
  const std::string ended = one_task("9 P attempt-ended task=1 epoch=101 failure=ok\n");
  EXPECT_THAT(promises(history(ended + "70 P pilot-ended reason=idle\n")), IsEmpty());
  EXPECT_THAT(promises(history(ended + "190 P pilot-ended reason=idle\n")), ElementsAre("G5"));
  EXPECT_THAT(
      promises(history(ended + "10 P link-lost\n500 P linked\n560 P pilot-ended reason=idle\n")),
      IsEmpty())
      << "it had a result to deliver";
  EXPECT_THAT(promises(history(ended + "10 P stays ms=170000\n190 P pilot-ended reason=idle\n")),
              IsEmpty())
      << "it was to stay";
  EXPECT_THAT(promises(history(ended + "10 P stays ms=20000\n190 P pilot-ended reason=idle\n")),
              ElementsAre("G5"))
      << "and not that long";
  EXPECT_THAT(promises(history(one_task("500 P attempt-ended task=1 epoch=101 failure=ok\n"))),
              IsEmpty())
      << "it worked";
}

TEST(CheckTest, FailingPilotsAreAskedForEverMoreSlowly) {
  std::string text;
  double now = 0;
  const auto fails = [&](int number, double pause) {
    now += pause;
    text += std::to_string(now) + " E allocation-asked allocation=h" + std::to_string(number) +
            " site=here shape=cpu\n";
    now += 1;
    text +=
        std::to_string(now) + " E allocation-ended allocation=h" + std::to_string(number) + "\n";
  };
  fails(1, 0);
  fails(2, 0.1);
  fails(3, 0.6);
  fails(4, 1.1);
  EXPECT_THAT(promises(history(text)), IsEmpty());
  fails(5, 1.1);
  EXPECT_THAT(promises(history(text)), ElementsAre("G5"));
}

TEST(CheckTest, WhatFailsAfterAnAllocationWasDecidedOnSaysNothingAgainstIt) {
  const std::string shape = " site=here shape=cpu\n";
  const std::string text = "1 E allocation-asked allocation=h1" + shape +
                           "2 E allocation-ended allocation=h1\n"
                           "3 E allocation-asked allocation=h2" +
                           shape;
  const std::string late = "3.9 E allocation-decided allocation=h3" + shape +
                           "4 E allocation-ended allocation=h2\n"
                           "4.1 E allocation-asked allocation=h3" +
                           shape;
  EXPECT_THAT(promises(history(text + late)), IsEmpty());
  const std::string rash =
      "4 E allocation-ended allocation=h2\n"
      "4.05 E allocation-decided allocation=h3" +
      shape + "4.9 E allocation-asked allocation=h3" + shape;
  EXPECT_THAT(promises(history(text + rash)), ElementsAre("G5"));
}

TEST(CheckTest, ManyThatFailAtOnceAreOneFailure) {
  std::string text;
  for (int i = 0; i < 9; ++i)
    text += "1 E allocation-asked allocation=h" + std::to_string(i) + " site=here shape=cpu\n";
  for (int i = 0; i < 9; ++i)
    text += "2 E allocation-ended allocation=h" + std::to_string(i) + "\n";
  EXPECT_THAT(
      promises(history(text + "2.1 E allocation-asked allocation=hz site=here shape=cpu\n")),
      IsEmpty());
}

// --- G6 ----------------------------------------------------------------------------------------

TEST(CheckTest, NoAllocationIsAskedForTwice) {
  const std::string asked = "1 E allocation-asked allocation=hone site=here shape=cpu\n";
  EXPECT_THAT(
      promises(history(asked + "9 E allocation-asked allocation=hone site=here shape=cpu\n")),
      ElementsAre("G6"));
  EXPECT_THAT(promises(history(asked + "8 E allocation-absent allocation=hone\n9 E "
                                       "allocation-asked allocation=hone site=here shape=cpu\n")),
              IsEmpty());
}

TEST(CheckTest, TwoBatchJobsOfOneNameNeverLive) {
  const std::string first = "1 O job-created name=hone number=1 site=here\n";
  const std::string second = "3 O job-created name=hone number=2 site=here\n";
  EXPECT_THAT(promises(history(first + second)), ElementsAre("G6"));
  EXPECT_THAT(promises(history(first + "2 O job-ended name=hone number=1 site=here\n" + second)),
              IsEmpty());
}

TEST(CheckTest, ASitesLimitsAreKept) {
  const std::string site = "1 E site site=here max_queued=1 max_running=2\n";
  const std::string first = "2 O job-created name=hone number=1 site=here\n";
  const std::string second = "4 O job-created name=htwo number=2 site=here\n";
  EXPECT_THAT(promises(history(site + first + second)), ElementsAre("G6"))
      << "two wait where one may";
  const std::string both = site + first + "3 O job-running name=hone number=1 site=here\n" + second;
  EXPECT_THAT(promises(history(both)), IsEmpty());
  EXPECT_THAT(promises(history(both + "5 O job-running name=htwo number=2 site=here\n6 O "
                                      "job-created name=hx number=3 site=here\n")),
              ElementsAre("G6"));
}

}  // namespace
}  // namespace hpcbatch::history
