// `run` against a fake engine: output, exit codes, input, Ctrl-C, and an engine that goes away.
#include "verb_test.hpp"

#include <atomic>
#include <future>
#include <mutex>

#include <signal.h>

namespace hpcbatch::test {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

constexpr const char* kDone =
    R"({"end": {"id": "7", "state": "done", "failure": "ok", "exit_code": 0}})"
    "\n";

class RunTest : public VerbTest {
 protected:
  /// One task, 7, whose log is streamed by `follow`; `other` answers what is neither submit nor
  /// follow.
  void task_does(const Handle& follow, const Handle& other = {}) {
    engine_does([follow, other](const FakeRequest& request, FakeConnection& connection) {
      if (request.method == "POST" && request.target == "/v1/tasks")
        connection.answer(200, R"({"ids": ["7"]})");
      else if (request.target == "/v1/tasks/7/log?follow=1")
        follow(request, connection);
      else if (other)
        other(request, connection);
      else
        connection.answer(200, R"({"tasks": 1})");
    });
  }
  static Handle lines(const std::vector<std::string>& texts) {
    return [texts](const FakeRequest&, FakeConnection& connection) {
      connection.begin_chunks();
      for (const std::string& text : texts) connection.chunk(text);
      connection.end_chunks();
    };
  }
  json::object submitted_task() {
    return body_of("POST", "/v1/tasks").at("tasks").as_array().at(0).as_object();
  }
};

TEST_F(RunTest, PrintsWhatTheTaskPrintsAndExitsAsItExits) {
  task_does(
      lines({R"({"stream": "stdout", "base64": "aGkK"})"
             "\n",
             R"({"stream": "stderr", "base64": "b2gK"})"
             "\n",
             R"({"end": {"id": "7", "state": "failed", "failure": "tool_failed", "exit_code": 3}})"
             "\n"}));
  const CliResult result = cli({"run", "--cpus", "2", "--", "sh", "-c", "x"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "hi\n");
  EXPECT_EQ(result.err, "oh\n");
  EXPECT_EQ(submitted_task(),
            json::parse(R"({"command": ["sh", "-c", "x"], "cpus": 2, "output_limit": "none"})"));
  const json::object request = body_of("POST", "/v1/tasks");
  EXPECT_EQ(request.at("client"), client_name().c_str()) << "and not of what USER says";
  EXPECT_EQ(request.at("environment").at("HPCBATCH_HOME"), home().c_str());
}

TEST_F(RunTest, ASignalIs128More) {
  task_does(lines(
      {R"({"end": {"id": "7", "state": "failed", "failure": "oom_task", "exit_code": 137, "signal": 9, "message": "used 5G of 4G"}})"
       "\n"}));
  const CliResult result = cli({"run", "--", "x"});
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_EQ(result.err, "hpcbatch: task 7 ended: oom_task: used 5G of 4G\n");
}

TEST_F(RunTest, WhatIsNotTheCommandsEndIsNotItsExitCode) {
  task_does(lines(
      {R"({"end": {"id": "7", "state": "failed", "failure": "output_missing", "exit_code": 0}})"
       "\n"}));
  EXPECT_EQ(cli({"run", "--", "x"}).exit_code, 1);
  task_does(lines({R"({"end": {"id": "7", "state": "failed", "failure": "dependency_failed"}})"
                   "\n"}));
  EXPECT_EQ(cli({"run", "--", "x"}).exit_code, 125);
}

TEST_F(RunTest, ARefusedTaskIs125) {
  engine_does([](const FakeRequest&, FakeConnection& connection) {
    connection.answer(400,
                      R"({"error": "no site has 99 cpus; the closest shape is local with 2"})");
  });
  const CliResult result = cli({"run", "--cpus", "99", "--", "x"});
  EXPECT_EQ(result.exit_code, 125);
  EXPECT_EQ(result.err, "hpcbatch: no site has 99 cpus; the closest shape is local with 2\n");
}

TEST_F(RunTest, APipeIsForwardedToItsEnd) {
  std::promise<void> ended;
  task_does(
      [&](const FakeRequest&, FakeConnection& connection) {
        connection.begin_chunks();
        ended.get_future().wait();
        connection.chunk(kDone);
        connection.end_chunks();
      },
      [&](const FakeRequest& request, FakeConnection& connection) {
        connection.answer(200, "{}");
        if (request.target.ends_with("end=1")) ended.set_value();
      });
  CliOptions options;
  options.input = "some input";
  EXPECT_EQ(cli({"run", "--", "cat"}, options).exit_code, 0);
  EXPECT_EQ(submitted_task().at("stream_input"), true);
  EXPECT_EQ(engine().wait_for("POST", "/v1/tasks/7/input?offset=0&end=0").body, "some input");
}

TEST_F(RunTest, InputIsSentAgainWhenTheEngineWasAway) {
  std::atomic<int> asked{0};
  std::promise<void> ended;
  task_does(
      [&](const FakeRequest&, FakeConnection& connection) {
        connection.begin_chunks();
        ended.get_future().wait();
        connection.chunk(kDone);
        connection.end_chunks();
      },
      [&](const FakeRequest& request, FakeConnection& connection) {
        if (asked++ == 0) return connection.hang_up();
        connection.answer(200, "{}");
        if (request.target.ends_with("&end=1")) ended.set_value();
      });
  CliOptions options;
  options.input = "some input";
  EXPECT_EQ(cli({"run", "--", "cat"}, options).exit_code, 0);
  EXPECT_GE(asked, 3);
  EXPECT_EQ(engine().wait_for("POST", "/v1/tasks/7/input?offset=10&end=1").body, "");
}

TEST_F(RunTest, WhatTheTaskDoesNotAskForIsLeftToOthers) {
  task_does(lines({kDone}), [](const FakeRequest& request, FakeConnection& connection) {
    // It ended without having asked.
    if (request.target.ends_with("ask=1")) return connection.answer(404, R"({"error": "ended"})");
    ADD_FAILURE() << request.target;
  });
  CliOptions options;
  options.input = "the next one's";
  EXPECT_EQ(cli({"run", "--", "true"}, options).exit_code, 0);
}

TEST_F(RunTest, AnInputThatNeverEndsDoesNotKeepARunAlive) {
  task_does(lines({kDone}));
  CliOptions options;
  options.keep_input_open = true;
  EXPECT_EQ(cli({"run", "--", "true"}, options).exit_code, 0);
}

TEST_F(RunTest, AFileIsNamedAndNothingIsSentOfNothing) {
  task_does(lines({kDone}));
  CliOptions options;
  options.input_file = file("in.txt", "x");
  EXPECT_EQ(cli({"run", "--", "cat"}, options).exit_code, 0);
  EXPECT_EQ(submitted_task().at("stdin"), options.input_file.c_str());

  task_does(lines({kDone}));
  EXPECT_EQ(cli({"run", "--", "cat"}).exit_code, 0);
  EXPECT_FALSE(submitted_task().contains("stdin"));
  EXPECT_FALSE(submitted_task().contains("stream_input"));
}

TEST_F(RunTest, CtrlCCancelsTheTask) {
  std::promise<void> cancelled;
  task_does(
      [&](const FakeRequest&, FakeConnection& connection) {
        connection.begin_chunks();
        connection.chunk(R"({"stream": "stdout", "base64": "aGkK"})"
                         "\n");
        cancelled.get_future().wait();
        connection.chunk(
            R"({"end": {"id": "7", "state": "cancelled", "failure": "cancelled", "signal": 15}})"
            "\n");
        connection.end_chunks();
      },
      [&](const FakeRequest& request, FakeConnection& connection) {
        connection.answer(200, R"({"tasks": 1})");
        if (request.target == "/v1/tasks/cancel") cancelled.set_value();
      });
  CliProcess run(home(), {"run", "--", "sleep", "9"});
  run.wait_for_output("hi");
  run.signal(SIGINT);
  const CliResult result = run.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.err, "hpcbatch: cancelled by user\n");
  EXPECT_EQ(body_of("POST", "/v1/tasks/cancel"), json::parse(R"({"ids": ["7"]})"));
}

TEST_F(RunTest, CtrlCIsHeardThroughEndlessOutput) {
  std::atomic<bool> is_cancelled{false};
  task_does(
      [&](const FakeRequest&, FakeConnection& connection) {
        connection.begin_chunks();
        while (!is_cancelled)
          connection.chunk(R"({"stream": "stdout", "text": "y"})"
                           "\n");
        connection.chunk(R"({"end": {"id": "7", "state": "cancelled", "failure": "cancelled"}})"
                         "\n");
        connection.end_chunks();
      },
      [&](const FakeRequest&, FakeConnection& connection) {
        is_cancelled = true;
        connection.answer(200, R"({"tasks": 1})");
      });
  CliProcess run(home(), {"run", "--", "yes"});
  run.wait_for_output("yyy");
  run.signal(SIGINT);
  EXPECT_EQ(run.wait().exit_code, 130);
}

TEST_F(RunTest, ATaskThatTakesLongToEndIsNotWaitedFor) {
  // The connection's thread may come to it when the test is over.
  std::promise<void> over;
  task_does([is_over = over.get_future().share()](const FakeRequest&, FakeConnection& connection) {
    connection.begin_chunks();
    connection.chunk(R"({"stream": "stdout", "base64": "aGkK"})"
                     "\n");
    is_over.wait();
  });
  CliProcess run(home(), {"run", "--", "sleep", "9"});
  run.wait_for_output("hi");
  run.signal(SIGTERM);
  const CliResult result = run.wait();
  over.set_value();
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_THAT(result.err, HasSubstr("still ending"));
}

TEST_F(RunTest, WhenNobodyReadsItsOutputTheTaskIsCancelled) {
  std::promise<void> over;
  task_does([is_over = over.get_future().share()](const FakeRequest&, FakeConnection& connection) {
    connection.begin_chunks();
    connection.chunk(R"({"stream": "stdout", "base64": "aGkK"})"
                     "\n");
    is_over.wait();
  });
  CliOptions options;
  options.close_output = true;
  const CliResult result = cli({"run", "--", "yes"}, options);
  over.set_value();
  EXPECT_EQ(result.exit_code, 141);
  EXPECT_EQ(body_of("POST", "/v1/tasks/cancel"), json::parse(R"({"ids": ["7"]})"));
}

TEST_F(RunTest, OutputIsWrittenOnceThoughTheConnectionBreaks) {
  std::atomic<int> follows{0};
  task_does([&](const FakeRequest&, FakeConnection& connection) {
    connection.begin_chunks();
    connection.chunk(R"({"stream": "stdout", "text": "one "})"
                     "\n");
    if (++follows == 1) return connection.hang_up();
    connection.chunk(R"({"stream": "stdout", "text": "two"})"
                     "\n");
    connection.chunk(kDone);
    connection.end_chunks();
  });
  const CliResult result = cli({"run", "--", "x"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "one two");
}

TEST_F(RunTest, CtrlCWhileTheEngineIsAwayDoesNotPretend) {
  task_does([&](const FakeRequest&, FakeConnection& connection) {
    connection.begin_chunks();
    connection.chunk(R"({"stream": "stdout", "base64": "aGkK"})"
                     "\n");
    connection.hang_up();
  });
  CliProcess run(home(), {"run", "--", "sleep", "9"});
  run.wait_for_output("hi");
  engine_ends();
  run.signal(SIGINT);
  const CliResult result = run.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.err, "hpcbatch: the engine could not be told: task 7 goes on\n");
}

TEST_F(RunTest, ATerminalShowsWhyTheTaskWaits) {
  std::promise<void> explained;
  std::once_flag once;
  task_does(
      [&](const FakeRequest&, FakeConnection& connection) {
        connection.begin_chunks();
        explained.get_future().wait();
        connection.chunk(kDone);
        connection.end_chunks();
      },
      [&](const FakeRequest& request, FakeConnection& connection) {
        if (request.target != "/v1/tasks/7/explain") return connection.answer(404, "{}");
        connection.answer(
            200, R"({"id": "7", "state": "waiting", "text": "a pilot is queued at quartz"})");
        std::call_once(once, [&] { explained.set_value(); });
      });
  CliOptions options;
  options.is_terminal = true;
  const CliResult result = cli({"run", "--", "x"}, options);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("task 7 is waiting: a pilot is queued at quartz"));
}

}  // namespace
}  // namespace hpcbatch::test
