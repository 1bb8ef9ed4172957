// What tasks of a real pilot read and write: what is kept of it, and how others follow.
#include "pilot/processes/spawn.hpp"
#include "pilot_fixture.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/resource.h>

namespace hpcbatch::pilot {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(PilotTest, KeepsOutputAndExitCode) {
  start();
  const auto result = outcome(shell(1, "echo out; echo error >&2; exit 3"));
  EXPECT_EQ(result.failure(), "tool_failed");
  EXPECT_EQ(result.exit_code(), 3);
  EXPECT_EQ(output(result, 1), "out\n");
  EXPECT_EQ(output(result, 2), "error\n");
  EXPECT_EQ(result.log().out_bytes(), 4U);
  EXPECT_GT(result.started_us(), 0);
  EXPECT_GE(result.ended_us(), result.started_us());
}

TEST_F(PilotTest, ASilentTaskLeavesNoLog) {
  start();
  const auto result = outcome(task(1, {"true"}));
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_FALSE(result.has_log());
}

TEST_F(PilotTest, LargeAndBinaryOutputComesThroughWhole) {
  start();
  const auto result = outcome(shell(1, "head -c 3000000 /dev/zero; printf 'a\\000b'"));
  EXPECT_EQ(result.log().out_bytes(), 3'000'003U);
  EXPECT_EQ(output(result), std::string(3'000'000, '\0') + std::string("a\0b", 3));
}

TEST_F(PilotTest, OfOutputBeyondItsLimitTheBeginningAndTheEndAreKept) {
  start();
  auto loud =
      shell(1, "head -c 5000000 /dev/zero | tr '\\000' x; echo; echo last words; echo end >&2");
  loud.set_output_limit(1000);
  const auto result = outcome(loud);
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_TRUE(result.log().truncated());
  EXPECT_THAT(result.message(), testing::HasSubstr("of its stdout 4"));
  EXPECT_THAT(result.message(), testing::HasSubstr("beyond the output limit of 1000 are left out"));
  const std::string text = output(result, 1);
  EXPECT_TRUE(text.starts_with(std::string(1000, 'x') + "\n[hpcbatch: the limit of 1000 bytes"));
  EXPECT_THAT(text, testing::HasSubstr(" bytes are left out; this is the end]\nx"));
  EXPECT_TRUE(text.ends_with("x\nlast words\n"));
  EXPECT_EQ(output(result, 2), "end\n");
}

TEST_F(PilotTest, OutputThatFitsWithItsEndIsWhole) {
  start();
  auto loud = shell(1, "head -c 1900 /dev/zero | tr '\\000' x");
  loud.set_output_limit(1000);
  const auto result = outcome(loud);
  EXPECT_FALSE(result.log().truncated());
  EXPECT_EQ(result.message(), "");
  EXPECT_EQ(output(result), std::string(1900, 'x'));
}

void limit_files(pid_t pilot, rlim_t size) {
  rlimit limit{};
  ASSERT_EQ(::prlimit(pilot, RLIMIT_FSIZE, nullptr, &limit), 0);
  limit.rlim_cur = size;
  ASSERT_EQ(::prlimit(pilot, RLIMIT_FSIZE, &limit, nullptr), 0);
}

TEST_F(PilotTest, AResultWaitsUntilItsOutputCanBeWritten) {
  start();
  limit_files(pilot_process(), 0);
  run(shell(1, "echo precious"));
  until("its wait", [this] { return waiting_for_workspace_.contains(1); });
  EXPECT_THAT(trouble_, AllOf(HasSubstr("cannot write"), HasSubstr("File too large")));
  EXPECT_FALSE(results_.contains(1));
  limit_files(pilot_process(), RLIM_INFINITY);
  const auto result = result_of(1);
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_EQ(output(result), "precious\n");
  until("the end of the trouble", [this] { return trouble_.empty(); });
  EXPECT_EQ(outcome(shell(2, "echo more")).failure(), "ok");
  EXPECT_EQ(leaving_, "");
}

TEST_F(PilotTest, NothingStartsWhileTheWorkspaceTakesNothing) {
  start();
  limit_files(pilot_process(), 0);
  run(shell(1, "echo precious"));
  until("the trouble", [this] { return !trouble_.empty(); });
  run(shell(2, "touch " + path("ran")));
  until("its return", [this] { return !returned_.empty(); });
  EXPECT_THAT(returned_, testing::ElementsAre(2U));
  EXPECT_FALSE(exists("ran"));
  limit_files(pilot_process(), RLIM_INFINITY);
  EXPECT_EQ(result_of(1).failure(), "ok");
}

TEST_F(PilotTest, ATaskThatPrintsMuchWaitsForTheWorkspaceAndItsTimeDoesNotRun) {
  start();
  limit_files(pilot_process(), 0);
  // Little more than a pilot holds for a workspace: what is left then counts as the task's time, on a slow machine too.
  auto loud = shell(1, "head -c 10000000 /dev/zero; echo end");
  loud.set_time_limit_ms(3000);
  run(loud);
  until("the trouble", [this] { return !trouble_.empty(); });
  const auto late = std::chrono::steady_clock::now() + 4s;
  until("its time limit", [late] { return std::chrono::steady_clock::now() > late; });
  EXPECT_FALSE(results_.contains(1));
  limit_files(pilot_process(), RLIM_INFINITY);
  const auto result = result_of(1);
  EXPECT_EQ(result.failure(), "ok") << result.message();
  EXPECT_EQ(result.log().out_bytes(), 10'000'004U);
}

TEST_F(PilotTest, ATaskWhoseOutputIsLostHasNotSucceededAndIsNotToBlame) {
  start();
  limit_files(pilot_process(), 0);
  // Both run before the first has ended: nothing more starts then.
  const std::string until_go = "until [ -e " + path("go") + " ]; do sleep 0.02; done; ";
  run(shell(1, until_go + "echo precious"));
  run(shell(2, until_go + "echo precious; exit 3"));
  until("both to run", [this] { return started_.size() == 2; });
  write("go", "");
  until("their wait", [this] { return waiting_for_workspace_.size() == 2; });
  ::kill(pilot_process(), SIGTERM);
  EXPECT_EQ(result_of(1).failure(), "workspace_lost");
  EXPECT_TRUE(results_[1].log().lost());
  EXPECT_EQ(result_of(2).failure(), "tool_failed");
  EXPECT_TRUE(results_[2].log().lost());
}

TEST_F(PilotTest, NamedFilesTakeTheStreams) {
  start();
  auto named = shell(1, "cat; echo error >&2");
  write("in", "from a file\n");
  named.set_standard_input(path("in"));
  named.set_standard_output(path("both"));
  named.set_standard_error(path("both"));
  const auto result = outcome(named);
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_EQ(contents("both"), "from a file\nerror\n");
  EXPECT_FALSE(result.has_log());
  named = shell(2, "true");
  named.set_standard_output(path("in/file"));
  EXPECT_EQ(outcome(named).failure(), "stage_out_failed");
  EXPECT_THAT(results_[2].message(), HasSubstr("in/file for its standard output: Not a directory"));
}

TEST_F(PilotTest, ANonBlockingTaskDoesNotHarmTheNext) {
  file_.capacity = {{"cpus", 10000}};
  start();
  outcome(task(1, {"/usr/bin/python3", "-c", "import os; os.set_blocking(1, False)"}));
  const auto result =
      outcome(task(2, {"/usr/bin/python3", "-c", "import os; print(os.get_blocking(1))"}));
  EXPECT_EQ(output(result), "True\n");
}

TEST_F(PilotTest, StandardInputIsEmptyOrStreamed) {
  start();
  EXPECT_EQ(output(outcome(shell(1, "wc -c"))), "0\n");
  auto streamed = shell(2, "cat | wc -c");
  streamed.set_input_streamed(true);
  run(streamed);
  const std::string part(300'000, 'x');
  for (unsigned i = 1; i <= 5; ++i) {
    until("input to be wanted", [&] { return input_wanted_[2] == i; });
    wire::ToPilot message;
    wire::Input* input = message.add_input();
    *input->mutable_attempt() = attempt(2);
    input->set_data(i == 5 ? "" : part);
    input->set_offset((i - 1) * part.size());
    input->set_end(i == 5);
    send(message);
  }
  EXPECT_EQ(output(result_of(2)), "1200000\n");
}

TEST_F(PilotTest, InputThatComesTwiceIsGivenOnce) {
  start();
  auto streamed = shell(1, "cat");
  streamed.set_input_streamed(true);
  run(streamed);
  const auto give = [&](const std::string& bytes, std::uint64_t offset, bool end) {
    wire::ToPilot message;
    wire::Input* input = message.add_input();
    *input->mutable_attempt() = attempt(1);
    input->set_data(bytes);
    input->set_offset(offset);
    input->set_end(end);
    send(message);
  };
  until("input to be wanted", [&] { return input_wanted_[1] == 1; });
  give("one ", 0, false);
  until("more to be wanted", [&] { return input_offset_[1] == 4; });
  engine_dies();
  input_offset_.clear();
  listen();
  welcome();
  until("it to be said again", [&] { return input_offset_[1] == 4; });
  give("one ", 0, false);
  give("gap", 100, false);
  give("one two ", 0, false);
  give("two three", 4, true);
  EXPECT_EQ(output(result_of(1)), "one two three");
}

TEST_F(PilotTest, InputIsWantedOnceTheTaskWaitsForIt) {
  start();
  auto idle = shell(1, "while [ ! -e " + path("go") + " ]; do sleep 0.01; done; cat");
  idle.set_input_streamed(true);
  idle.set_follow(true);
  run(idle);
  // As long as many looks take; what runs beside it asks at once.
  auto reads = shell(2, "sleep 0.5 >/dev/null; read word; echo $word");
  reads.set_input_streamed(true);
  run(reads);
  until("the second to ask", [&] { return input_wanted_[2] == 1; });
  EXPECT_EQ(input_wanted_[1], 0U);
  write("go", "");
  until("the first to ask", [&] { return input_wanted_[1] == 1; });
  for (const unsigned n : {1U, 2U}) {
    wire::ToPilot message;
    wire::Input* input = message.add_input();
    *input->mutable_attempt() = attempt(n);
    input->set_data("word\n");
    input->set_end(true);
    send(message);
    EXPECT_EQ(output(result_of(n)), "word\n");
  }
}

TEST(UnnamedSleeps, LastWhereAThreadWasSwitchedAwayFromNoMore) {
  UnnamedSleeps sleeps;
  const Time begin{};
  EXPECT_FALSE(sleeps.has_lasted(7, "3", begin));
  EXPECT_FALSE(sleeps.has_lasted(8, "5", begin + 300ms));
  EXPECT_FALSE(sleeps.has_lasted(7, "4", begin + 500ms)) << "it ran meanwhile";
  EXPECT_FALSE(sleeps.has_lasted(8, "5", begin + 799ms));
  EXPECT_TRUE(sleeps.has_lasted(8, "5", begin + 800ms));
  EXPECT_FALSE(sleeps.has_lasted(7, "", begin + 900ms)) << "it runs";
  EXPECT_FALSE(sleeps.has_lasted(7, "4", begin + 1000ms));
  EXPECT_TRUE(sleeps.has_lasted(7, "4", begin + 1500ms));
}

TEST_F(PilotTest, InputForATaskThatReadsNoneIsDropped) {
  start();
  auto streamed = shell(1, "exec 0<&-; echo closed; sleep 1000");
  streamed.set_input_streamed(true);
  streamed.set_follow(true);
  run(streamed);
  until("it to close its input", [&] { return chunks_[1][1] == "closed\n"; });
  wire::ToPilot message;
  wire::Input* input = message.add_input();
  *input->mutable_attempt() = attempt(1);
  input->set_data(std::string(1'000'000, 'x'));
  send(message);
  EXPECT_EQ(outcome(shell(2, "echo fine")).failure(), "ok");
  kill_task(1);
  EXPECT_EQ(result_of(1).failure(), "cancelled");
}

TEST_F(PilotTest, FollowedOutputComesAtOnceAndEndsBeforeTheResult) {
  start();
  auto followed = shell(1, "echo first; echo oops >&2; read line; echo $line");
  followed.set_follow(true);
  followed.set_input_streamed(true);
  run(followed);
  until("the first line", [&] { return chunks_[1][1] == "first\n" && chunks_[1][2] == "oops\n"; });
  EXPECT_FALSE(results_.contains(1));
  wire::ToPilot message;
  wire::Input* input = message.add_input();
  *input->mutable_attempt() = attempt(1);
  input->set_data("second\n");
  send(message);
  result_of(1);
  EXPECT_TRUE(ended_chunks_.contains(1));
  EXPECT_EQ(chunks_[1][1], "first\nsecond\n");
}

TEST_F(PilotTest, OutputCanBeFollowedLaterAndFromAnyOffset) {
  start();
  auto loud =
      shell(1, "head -c 200000 /dev/zero | tr '\\000' a; echo ready >&2; read line; echo end");
  loud.set_input_streamed(true);
  run(loud);
  const auto follow = [&](std::uint64_t from) {
    wire::ToPilot message;
    wire::Follow* asked = message.add_follow();
    *asked->mutable_attempt() = attempt(1);
    asked->set_out_offset(from);
    send(message);
  };
  follow(0);
  until("all of it", [&] { return chunks_[1][1].size() == 200000 && chunks_[1][2] == "ready\n"; });
  chunks_.clear();
  follow(199'990);
  until("its end", [&] { return chunks_[1][1].size() == 200000; });
  EXPECT_EQ(chunks_[1][1], std::string(199'990, '?') + std::string(10, 'a'));
  wire::ToPilot message;
  wire::Follow* asked = message.add_follow();
  *asked->mutable_attempt() = attempt(1);
  asked->set_stop(true);
  wire::Input* input = message.add_input();
  *input->mutable_attempt() = attempt(1);
  input->set_data("go\n");
  send(message);
  result_of(1);
  EXPECT_EQ(chunks_[1][1].size(), 200000U);
  EXPECT_FALSE(ended_chunks_.contains(1));
  follow(199'999);
  until("what has ended", [&] { return ended_chunks_.contains(1); });
  EXPECT_EQ(chunks_[1][1].substr(199'999), "aend\n");
}

TEST_F(PilotTest, AFollowerThatReadsSlowlyIsNotDrownedAndMissesNothing) {
  start();
  auto loud = shell(1, "head -c 30000000 /dev/zero | tr '\\000' a");
  loud.set_follow(true);
  run(loud);
  result_of(1);
  const std::string& heard = chunks_[1][1];
  EXPECT_EQ(heard.size(), 30'000'000U);
  EXPECT_EQ(heard.find_first_not_of('a'), std::string::npos);
}

}  // namespace
}  // namespace hpcbatch::pilot
