// `report`, and how far back people look.
#include "cli/parse/spelled.hpp"
#include "verb_test.hpp"

#include <boost/json/parse.hpp>

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace hpcbatch::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReportTest : public VerbTest {
 protected:
  static constexpr const char* kReport = R"({
    "since": "2026-11-19", "until": "2026-11-26",
    "total": {"runs": 1000, "done": 980, "failed": 15, "cancelled": 5, "never_ran": 0,
              "tried_again": 3, "wait_h": 12.5, "run_h": 250, "lost_h": 1.5, "cpu_h": 400,
              "cpu_asked_h": 1000, "memory_gb_h": 300, "memory_asked_gb_h": 6000, "time_h": 250,
              "time_asked_h": 1000, "gpu_asked_h": 0},
    "rows": [{"key": "bwa, <b>\"map\"</b>", "runs": 1000, "done": 980, "failed": 15,
              "cancelled": 5, "never_ran": 0, "tried_again": 3, "wait_h": 12.5, "run_h": 250,
              "lost_h": 1.5, "cpu_h": 400, "cpu_asked_h": 1000, "memory_gb_h": 300,
              "memory_asked_gb_h": 6000, "time_h": 250, "time_asked_h": 1000, "gpu_asked_h": 0,
              "took": {"seen": 980, "run_95_s": 1260}}],
    "batch_jobs": [{"site": "a", "jobs": 14, "wait_h": 3, "run_h": 300}], "held_cpu_h": 1250,
    "advice": [{"kind": "bwa_map",
                "text": "--mem 4G is enough for bwa_map, which asks for 32G: saves 310 GB-h a week"}]})";
  std::string page_of(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(ReportTest, SaysWhatWasAskedForAndUsedAndWhatWouldSaveMost) {
  engine_answers({{"GET /v1/report?by=kind", kReport}});
  const std::string out = cli({"report"}).out;
  EXPECT_THAT(out,
              HasSubstr("1000 runs: 980 done, 15 failed, 5 cancelled, 3 attempts tried again"));
  EXPECT_THAT(out, HasSubstr("14 allocations waited 3 h in queues; one by one it would have been "
                             "1003 batch jobs\npilots held 1250 h of cpus, of which tasks that "
                             "have ended had 1000 h (80 %)\n"));
  EXPECT_THAT(out, HasSubstr("all tasks together ran 250 h and waited 12.5 h before it, 45s "
                             "each\n1.5 h ran for nothing\n"));
  EXPECT_THAT(out, testing::ContainsRegex("cpu +1000 h +400 h +600 h +40 %"));
  EXPECT_THAT(out, testing::ContainsRegex("memory +6000 GB-h +300 GB-h +5700 GB-h +5 %"));
  EXPECT_THAT(out, HasSubstr("21m"));
  EXPECT_THAT(out, HasSubstr("--mem 4G is enough for bwa_map"));
}

TEST_F(ReportTest, WhatIsTriedAgainHasWaitedOnce) {
  engine_answers({{"GET /v1/report?by=kind",
                   R"({"since": "2026-11-26", "until": "2026-11-26", "rows": [],
                       "total": {"runs": 2, "done": 2, "tried_again": 38, "wait_h": 2}})"}});
  EXPECT_THAT(cli({"report"}).out, HasSubstr("waited 2 h before it, 1 h each"));
}

TEST_F(ReportTest, WhatIsIncompleteIsNoGoodEnd) {
  engine_answers({{"GET /v1/report?by=kind",
                   R"({"since": "2026-11-26", "until": "2026-11-26", "rows": [], "trouble": "full",
                       "total": {"runs": 2, "done": 2}})"}});
  EXPECT_EQ(cli({"report"}).exit_code, 1);
}

TEST_F(ReportTest, WhereNothingHasRunItSaysSo) {
  engine_answers({{"GET /v1/report?by=site",
                   R"({"since": "2026-11-26", "until": "2026-11-26", "total": {"runs": 0}})"}});
  EXPECT_EQ(cli({"report", "--by", "site"}).out,
            "2026-11-26 (UTC): nothing has run; `--since 30d` looks farther back\n");
}

TEST_F(ReportTest, ACsvIsReadBackWhateverKindsAreCalled) {
  engine_answers({{"GET /v1/report?by=kind", kReport}});
  const std::string out = cli({"report", "--csv"}).out;
  EXPECT_THAT(out, testing::StartsWith("kind,runs,done,failed,"));
  EXPECT_THAT(out, HasSubstr("\"bwa, <b>\"\"map\"\"</b>\",1000,980,15,5,0,3,12.5,250,"));
}

TEST_F(ReportTest, APageNeedsNothingBesideItAndRunsNothing) {
  engine_answers({{"GET /v1/report?by=kind", kReport}, {"GET /v1/report?by=day", kReport}});
  const std::string file = testing::TempDir() + "/report-test.html";
  EXPECT_EQ(cli({"report", "--html", file}).exit_code, 0);
  const std::string page = page_of(file);
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("bwa, &lt;b&gt;&quot;map&quot;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  std::filesystem::remove(file);
  const CliResult nowhere = cli({"report", "--html", "/nowhere/at/all.html"});
  EXPECT_NE(nowhere.exit_code, 0);
  EXPECT_THAT(nowhere.err, HasSubstr("cannot write /nowhere/at/all.html"));
}

TEST(Since, IsADurationOrADay) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const std::time_t now = 1'795'696'200;  // Thursday, 2026-11-26 12:30
  constexpr std::time_t kDay = 86'400;
  const std::time_t midnight = now - now % kDay;
  EXPECT_EQ(parse_since("2h", now), now - 7200);
  EXPECT_EQ(parse_since("today", now), midnight);
  EXPECT_EQ(parse_since("yesterday", now), midnight - kDay);
  EXPECT_EQ(parse_since("thursday", now), midnight);
  EXPECT_EQ(parse_since("wednesday", now), midnight - kDay);
  EXPECT_EQ(parse_since("friday", now), midnight - 6 * kDay);
  EXPECT_EQ(parse_since("2w", now), now - 14 * kDay);
  EXPECT_EQ(parse_since("Wednesday", now), midnight - kDay);
  EXPECT_EQ(parse_since("2026-11-20", now), midnight - 6 * kDay);
  EXPECT_EQ(parse_since("2026-11-20 14:30", now), midnight - 6 * kDay + 52'200);
}

TEST(Since, WhatIsNoneIsToldWithTheForms) {
  const std::time_t now = 1'795'696'200;
  for (const char* bad : {"", "soon", "2026-13-01", "2026-06-31", "2026-11-20x", "-2h", "0"}) {
    try {
      parse_since(bad, now);
      ADD_FAILURE() << bad;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("today, yesterday, monday, 2026-01-31"));
    }
  }
  EXPECT_THROW(parse_since("2030-01-01", now), std::invalid_argument);
  EXPECT_THROW(parse_since("0001-01-01", now), std::invalid_argument);
}

}  // namespace
}  // namespace hpcbatch::test
