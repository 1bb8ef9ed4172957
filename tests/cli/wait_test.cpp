// `wait` and the verbs that change tasks, against a fake engine.
#include "cli/client/engine_client.hpp"
#include "verb_test.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>

#include <signal.h>

namespace hpcbatch::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace json = boost::json;

class WaitTest : public VerbTest {};

constexpr const char* kWait = "POST /v1/tasks/wait";
constexpr const char* kAllWell =
    R"({"done": true, "total": 3, "ok": 3, "failed": 0, "cancelled": 0, "running": 0, "waiting": 0})";
constexpr const char* kUnderWay =
    R"({"done": false, "total": 3, "ok": 1, "failed": 0, "cancelled": 0, "running": 2, "waiting": 0})";

TEST_F(WaitTest, AllWellIsZeroAndSilent) {
  engine_answers({{kWait, kAllWell}});
  const CliResult result = cli({"wait", "12", "13.1-9"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_EQ(body_of("POST", "/v1/tasks/wait"),
            json::parse(R"({"ids": ["12", "13.1-9"], "timeout": 0.1})"));
}

TEST_F(WaitTest, SomeFailedOrCancelledIsOne) {
  engine_answers({{kWait, R"({"done": true, "total": 2, "ok": 1, "failed": 1, "cancelled": 0})"}});
  const CliResult failed = cli({"wait", "12"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr("1 of 2 done, 1 failed"));
  EXPECT_THAT(failed.err, HasSubstr("`hpcbatch explain 12` says why"));
  engine_answers({{kWait, R"({"done": true, "total": 2, "ok": 1, "failed": 0, "cancelled": 1})"}});
  EXPECT_EQ(cli({"wait", "12"}).exit_code, 1);
}

TEST_F(WaitTest, WhatIsHeldIsCalledSoAndWhatHelpsIsSaid) {
  std::atomic<int> asked{0};
  engine_does([&](const FakeRequest&, FakeConnection& connection) {
    connection.answer(
        200, ++asked == 1 ? R"({"done": false, "total": 3, "ok": 1, "held": 2})" : kAllWell);
  });
  EXPECT_THAT(cli({"wait", "12"}).err,
              HasSubstr("1/3 ended, 2 held: `hpcbatch release ID` lets them start"));
}

TEST_F(WaitTest, AnUnknownIdIsTwo) {
  engine_answers({});
  EXPECT_EQ(cli({"wait", "99"}).exit_code, 2);
}

TEST_F(WaitTest, OneOfSeveralIsEnough) {
  engine_answers({{kWait, R"({"done": false, "total": 2, "ok": 1, "running": 1, "waiting": 0,
                              "ended": ["13"]})"}});
  EXPECT_EQ(cli({"wait", "--any", "12", "13"}).out, "13\n");
  EXPECT_EQ(body_of("POST", "/v1/tasks/wait"),
            json::parse(R"({"ids": ["12", "13"], "timeout": 0.1, "any": true})"));
}

TEST_F(WaitTest, AWaitThatIsTooLongIsToldAsSuch) {
  engine_answers({{kWait, kUnderWay}});
  const CliResult result = cli({"wait", "--timeout", "0.01s", "12"});
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_THAT(result.err, HasSubstr("2 of 3 had not ended in time; the work goes on"));
}

TEST_F(WaitTest, AsksUntilDoneAlsoOverARestartOfTheEngine) {
  std::atomic<int> asked{0};
  engine_does([&](const FakeRequest&, FakeConnection& connection) {
    switch (++asked) {
      case 1:
        return connection.answer(200, kUnderWay);
      case 2:
        return connection.hang_up();
      default:
        return connection.answer(200, kAllWell);
    }
  });
  const CliResult result = cli({"wait", "--json", "12"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(json::parse(result.out), json::parse(kAllWell));
  EXPECT_EQ(asked, 3);
}

TEST_F(WaitTest, AsksAgainWhereTheEngineGoesBeforeItsFirstAnswer) {
  std::atomic<int> asked{0};
  engine_does([&](const FakeRequest&, FakeConnection& connection) {
    if (++asked < 3) return connection.hang_up();
    connection.answer(200, kAllWell);
  });
  EXPECT_EQ(cli({"wait", "12"}).exit_code, 0);
}

TEST_F(WaitTest, AsksAgainWhereTheEngineHasTooMuchToDo) {
  std::atomic<int> asked{0};
  engine_does([&](const FakeRequest&, FakeConnection& connection) {
    if (++asked < 3) return connection.answer(503, R"({"error": "too many clients"})");
    connection.answer(200, kAllWell);
  });
  EXPECT_EQ(cli({"wait", "12"}).exit_code, 0);
}

TEST_F(WaitTest, CtrlCOnlyStopsWaiting) {
  std::promise<void> asked;
  engine_does([&](const FakeRequest&, FakeConnection&) { asked.set_value(); });
  CliProcess wait(home(), {"wait", "12"});
  asked.get_future().wait();
  wait.signal(SIGINT);
  EXPECT_EQ(wait.wait().exit_code, 130);
  EXPECT_EQ(engine().requests().size(), 1u);
}

TEST_F(WaitTest, ProgressIsForTerminals) {
  using Clock = std::chrono::steady_clock;
  std::once_flag once;
  Clock::time_point first;
  engine_does([&](const FakeRequest&, FakeConnection& connection) {
    std::call_once(once, [&] { first = Clock::now(); });
    const bool is_over = Clock::now() - first > std::chrono::milliseconds{1500};
    connection.answer(200, is_over ? kAllWell : kUnderWay);
  });
  CliOptions options;
  options.is_terminal = true;
  const CliResult result = cli({"wait", "12"}, options);
  EXPECT_THAT(result.out, HasSubstr("] 1/3 ended, 2 running"));
  EXPECT_THAT(result.out, HasSubstr("\r\x1b[Kall 3 done, ")) << "the bar is taken away";
  EXPECT_THAT(result.out, HasSubstr("all 3 done, "));
  EXPECT_THAT(engine().requests().back().body, HasSubstr("\"timeout\":1}"));
}

TEST_F(WaitTest, WhatIsSoonOverShowsNoBar) {
  std::atomic<int> asked{0};
  engine_does([&](const FakeRequest&, FakeConnection& connection) {
    connection.answer(200, ++asked == 1 ? kUnderWay : kAllWell);
  });
  CliOptions options;
  options.is_terminal = true;
  const CliResult result = cli({"wait", "12"}, options);
  EXPECT_THAT(result.out, StartsWith("all 3 done, "));
}

TEST_F(WaitTest, ASubmitThatTakesLongSaysSo) {
  engine_does([](const FakeRequest&, FakeConnection& connection) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1200});
    connection.answer(200, R"({"ids": ["7"]})");
  });
  CliOptions options;
  options.is_terminal = true;
  const CliResult result = cli({"submit", "--", "true"}, options);
  EXPECT_THAT(result.out, testing::ContainsRegex("the engine takes in [0-9]+B of tasks, 1s"));
  EXPECT_THAT(result.out, testing::ContainsRegex("\r\x1b\\[K7\r\n$")) << "the line is taken away";
  EXPECT_EQ(cli({"submit", "--", "true"}).err, "");
}

TEST_F(WaitTest, WhatIsNotOverAtOnceIsToldOfAtOnceAndThenOnceAMinute) {
  std::atomic<int> asked{0};
  engine_does([&](const FakeRequest&, FakeConnection& connection) {
    connection.answer(200, ++asked < 3 ? kUnderWay : kAllWell);
  });
  const CliResult result = cli({"wait", "12"});
  EXPECT_THAT(result.err, testing::ContainsRegex("^.*1/3 ended, 2 running.*\nall 3 done.*\n$"));
  EXPECT_THAT(engine().requests().back().body, HasSubstr("\"timeout\":30"));
}

TEST_F(WaitTest, ChangesSayHowManyTheyChanged) {
  engine_answers({{"POST /v1/tasks/cancel", R"({"tasks": 3})"},
                  {"POST /v1/tasks/hold", R"({"tasks": 1})"},
                  {"POST /v1/tasks/release", R"({"tasks": 0})"},
                  {"POST /v1/tasks/retry", R"({"tasks": 2})"}});
  EXPECT_EQ(cli({"cancel", "12", "13.1-2"}).out, "3 tasks cancelled\n");
  EXPECT_EQ(body_of("POST", "/v1/tasks/cancel"), json::parse(R"({"ids": ["12", "13.1-2"]})"));
  EXPECT_EQ(cli({"hold", "12"}).out, "1 task held\n");
  EXPECT_EQ(cli({"release", "12"}).out, "nothing to do: none of these tasks is held\n");
  EXPECT_EQ(cli({"retry", "--json", "12"}).out, "{\"tasks\":2}\n");
}

TEST(AwayTest, AnEngineThatComesAndGoesIsWaitedFor) {
  EngineAbsence::Clock::time_point now{};
  EngineAbsence away(now);
  for (int times = 0; times < 10; ++times) {
    now += std::chrono::minutes{9};
    EXPECT_FALSE(away.is_too_long(now));
    away.seen(now);
  }
  now += std::chrono::minutes{10};
  EXPECT_TRUE(away.is_too_long(now));
}

TEST(AwayTest, IsToldOnceEachTime) {
  EngineAbsence::Clock::time_point now{};
  EngineAbsence away(now);
  EXPECT_FALSE(away.is_to_be_told(now + std::chrono::seconds{4}));
  EXPECT_TRUE(away.is_to_be_told(now + std::chrono::seconds{5}));
  EXPECT_FALSE(away.is_to_be_told(now + std::chrono::seconds{6}));
  away.seen(now + std::chrono::seconds{7});
  EXPECT_TRUE(away.is_to_be_told(now + std::chrono::seconds{12}));
}

}  // namespace
}  // namespace hpcbatch::test
