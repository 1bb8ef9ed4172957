// The contract of a transport as tests; for GoogleTest.  In one source of your test program:
//
//   #include "hpcbatch/contract/transport.hpp"
//   INSTANTIATE_TEST_SUITE_P(Mine, TransportContract,
//   testing::Values(hpcbatch::contract::TransportCase{
//       .make = [] { return hpcbatch::contract::load<hpcbatch::Transport>("/path/mine.so", "host:
//       localhost"); }, .directory = "/tmp"}));
//
// The site needs sh, cat, sleep, kill, mkdir and rm.
#pragma once

#include "hpcbatch/contract/load.hpp"
#include "hpcbatch/contract/surroundings.hpp"
#include "hpcbatch/transport.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace hpcbatch::contract {

struct TransportCase {
  std::function<std::unique_ptr<Transport>()> make;
  std::string directory;  ///< on the site, where files may be written
  friend std::ostream& operator<<(std::ostream& out, const TransportCase& c) {
    return out << c.directory;
  }
};

class TransportContract : public testing::TestWithParam<TransportCase> {
 protected:
  void SetUp() override {
    transport_ = GetParam().make();
    before_ = Surroundings::now();
    directory_ = GetParam().directory + "/contract-" + std::to_string(::getpid()) + "-" +
                 std::to_string(testing::UnitTest::GetInstance()->current_test_info()->line());
  }
  void TearDown() override {
    EXPECT_EQ(shell("rm -rf '" + directory_ + "'").exit_code, 0);
    if (!HasFatalFailure()) before_.expect_unchanged();
  }

  static Deadline soon(std::chrono::milliseconds time = std::chrono::seconds(60)) {
    return std::chrono::steady_clock::now() + time;
  }
  CommandOutput run(const CommandLine& command,
                    std::chrono::milliseconds time = std::chrono::seconds(60)) {
    auto output = transport_->run(command, soon(time));
    EXPECT_TRUE(output) << (output ? "" : output.error().text);
    return output ? *output : CommandOutput{};
  }
  CommandOutput shell(const std::string& text) {
    return run({.argv = {"sh", "-c", text}, .environment = {}, .input = {}});
  }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::unique_ptr<Transport> transport_;
  std::string directory_;
  Surroundings before_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportContract);

TEST_P(TransportContract, RunsACommandWithItsInput) {
  const auto output = run({.argv = {"cat"}, .environment = {}, .input = "one\ntwo"});
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_FALSE(output.timed_out);
  EXPECT_EQ(output.standard_output, "one\ntwo");
  EXPECT_EQ(output.standard_error, "");
}

TEST_P(TransportContract, WithoutInputACommandReadsNothing) {
  EXPECT_EQ(run({.argv = {"cat"}, .environment = {}, .input = {}}).standard_output, "");
}

TEST_P(TransportContract, ArgumentsArriveAsTheyAre) {
  const std::string odd = "a b'\"; $HOME `id` \\ \n*";
  EXPECT_EQ(
      run({.argv = {"sh", "-c", "printf %s \"$1\"", "sh", odd}, .environment = {}, .input = {}})
          .standard_output,
      odd);
}

TEST_P(TransportContract, ACommandThatFailsIsNoError) {
  const auto output = shell("echo no >&2; exit 7");
  EXPECT_EQ(output.exit_code, 7);
  EXPECT_EQ(output.standard_error, "no\n");
  EXPECT_EQ(shell("kill -KILL $$").exit_code, 137);
}

TEST_P(TransportContract, AProgramThatIsNotThereDidNotRun) {
  const auto output = transport_->run(
      {.argv = {"hpcbatch-no-such-program"}, .environment = {}, .input = {}}, soon());
  if (output) {
    EXPECT_EQ(output->exit_code, 127);  // where only a remote shell could know
  } else {
    EXPECT_EQ(output.error().kind, Error::Kind::Rejected);
    EXPECT_NE(output.error().text.find("hpcbatch-no-such-program"), std::string::npos);
  }
}

TEST_P(TransportContract, LargeOutputsOfBothKindsArriveWhole) {
  const auto output = shell(
      "i=0; while [ $i -lt 20000 ]; do echo 0123456789012345678901234567890123456789;"
      " echo 01234567890123456789 >&2; i=$((i+1)); done");
  EXPECT_EQ(output.standard_output.size(), 20000u * 41);
  EXPECT_EQ(output.standard_error.size(), 20000u * 21);
}

TEST_P(TransportContract, TheDeadlineKillsACommandAndItsChildren) {
  ASSERT_EQ(shell("mkdir -m 700 '" + directory_ + "'").exit_code, 0);
  // A busy site may not have begun when a short deadline passes.
  for (int seconds = 2;
       seconds <= 32 && shell("cat '" + path("pid") + "' 2>/dev/null").standard_output.empty();
       seconds *= 4) {
    const auto output =
        run({.argv = {"sh", "-c", "sleep 600 & echo $! > \"$1\"; wait", "sh", path("pid")},
             .environment = {},
             .input = {}},
            std::chrono::seconds(seconds));
    EXPECT_TRUE(output.timed_out);
    EXPECT_EQ(output.exit_code, -1);
  }
  // Who waits for an orphan's end is the site's business: a zombie was killed.
  const auto state =
      shell("p=$(cat '" + path("pid") +
            "') && [ -n \"$p\" ] || echo no pid; i=0; state=alive; "
            "while [ $i -lt 400 ]; do"
            "  kill -0 $p 2>/dev/null || { state=gone; break; };"
            "  case \"$(cat /proc/$p/stat 2>/dev/null)\" in *') Z '*) state=gone; break;; esac;"
            "  sleep 0.05; i=$((i+1)); done; echo $state");
  EXPECT_EQ(state.standard_output, "gone\n");
}

TEST_P(TransportContract, WhatACommandLeavesRunningIsNotWaitedFor) {
  const auto start = std::chrono::steady_clock::now();
  const auto output = shell("sleep 30 & echo $!");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(output.exit_code, 0);
  ASSERT_FALSE(output.standard_output.empty());
  EXPECT_EQ(shell("kill " + output.standard_output).exit_code, 0);
}

TEST_P(TransportContract, TheEnvironmentIsMinimal) {
  ::setenv("HPCBATCH_CONTRACT_SECRET", "leaked", 1);
  const auto output =
      run({.argv = {"sh", "-c",
                    "echo ${HPCBATCH_CONTRACT_SECRET-none} $LC_ALL $MINE; type cat >/dev/null"},
           .environment = {{"MINE", "given"}},
           .input = {}});
  ::unsetenv("HPCBATCH_CONTRACT_SECRET");
  EXPECT_EQ(output.standard_output, "none C given\n");
  EXPECT_EQ(output.exit_code, 0);
}

TEST_P(TransportContract, AStreamCarriesBytesBothWaysUntilItIsClosed) {
  const auto stream = transport_->open({.argv = {"cat"}, .environment = {}, .input = {}}, soon());
  ASSERT_TRUE(stream) << stream.error().text;
  ASSERT_GE(*stream, 0);
  // More than fits in between, so that each end has to take what the other gives.
  std::string text(std::size_t{5} << 20, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  std::string back;
  std::size_t sent = 0;
  ASSERT_EQ(::fcntl(*stream, F_SETFL, ::fcntl(*stream, F_GETFL) | O_NONBLOCK), 0);
  while (back.size() < text.size()) {
    pollfd wait{*stream, static_cast<short>(sent < text.size() ? POLLIN | POLLOUT : POLLIN), 0};
    ASSERT_EQ(::poll(&wait, 1, 20'000), 1);
    if ((wait.revents & POLLOUT) != 0) {
      const auto n = ::write(*stream, text.data() + sent, text.size() - sent);
      if (n > 0) sent += static_cast<std::size_t>(n);
    }
    if ((wait.revents & ~POLLOUT) == 0) continue;
    char buffer[65536];
    const auto n = ::read(*stream, buffer, sizeof buffer);
    if (n < 0 && errno == EAGAIN) continue;
    ASSERT_GT(n, 0);
    back.append(buffer, static_cast<std::size_t>(n));
  }
  EXPECT_TRUE(back == text);
  // Other calls go on beside it.
  EXPECT_EQ(shell("echo still here").standard_output, "still here\n");
  ::close(*stream);
}

TEST_P(TransportContract, AStreamEndsWithItsProgram) {
  const auto stream = transport_->open(
      {.argv = {"sh", "-c", "read line; echo \"$line\""}, .environment = {}, .input = {}}, soon());
  ASSERT_TRUE(stream) << stream.error().text;
  ASSERT_EQ(::write(*stream, "last\n", 5), 5);
  std::string said;
  char buffer[64];
  for (ssize_t n = 1; n > 0;) {
    pollfd wait{*stream, POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 20'000), 1) << "it does not end";
    n = ::read(*stream, buffer, sizeof buffer);
    if (n > 0) said.append(buffer, static_cast<std::size_t>(n));
  }
  EXPECT_EQ(said, "last\n");
  ::close(*stream);
}

TEST_P(TransportContract, ADeadlineThatHasPassedReturnsAtOnce) {
  const auto output =
      transport_->run({.argv = {"sleep", "60"}, .environment = {}, .input = {}}, soon({}));
  if (output) {
    EXPECT_TRUE(output->timed_out);
  }
}

}  // namespace hpcbatch::contract
