// The contract of a transport as tests; for GoogleTest.  In one source of your test program:
//
//   #include "hpcbatch/contract/transport.hpp"
//   INSTANTIATE_TEST_SUITE_P(Mine, TransportContract,
//   testing::Values(hpcbatch::contract::TransportCase{
//       .make = [] { return hpcbatch::contract::load<hpcbatch::Transport>("/path/mine.so", "host:
//       localhost"); }, .directory = "/tmp"}));
//
// The site needs sh, cat, sleep, kill, stat, find and ls.
#pragma once

#include "hpcbatch/contract/load.hpp"
#include "hpcbatch/contract/surroundings.hpp"
#include "hpcbatch/transport.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

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
    EXPECT_TRUE(transport_->remove({directory_}, soon()));
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
  void put_text(const std::string& name, const std::string& text, std::uint32_t mode = 0600) {
    const auto put = transport_->put_text({{path(name), text, mode}}, soon());
    ASSERT_TRUE(put) << put.error().text;
  }

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
  put_text("pid", "");
  // A busy site may not have begun when a short deadline passes.
  for (int seconds = 2; seconds <= 32 && shell("cat '" + path("pid") + "'").standard_output.empty();
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

TEST_P(TransportContract, AFileAppearsWholeWithItsModeAndDirectories) {
  put_text("a/b/file", "text\n", 0640);
  EXPECT_EQ(shell("cd '" + directory_ + "' && stat -c '%a %n' a a/b a/b/file && cat a/b/file")
                .standard_output,
            "700 a\n700 a/b\n640 a/b/file\ntext\n");
  put_text("a/b/file", "other", 0600);
  EXPECT_EQ(
      shell("cd '" + directory_ + "/a/b' && cat file && ls -A && stat -c %a file").standard_output,
      "otherfile\n600\n");
}

TEST_P(TransportContract, APutThatFailsLeavesNothing) {
  put_text("present", "old");
  const auto put = transport_->put({{"/hpcbatch/no/such/file", path("present"), 0600}}, soon());
  ASSERT_FALSE(put);
  EXPECT_NE(put.error().text.find("/hpcbatch/no/such/file"), std::string::npos);
  EXPECT_EQ(shell("cd '" + directory_ + "' && ls -A && cat present").standard_output,
            "present\nold");
}

TEST_P(TransportContract, CopiesThereAndBack) {
  std::string text = "bytes: ";
  for (int i = 0; i < 300000; ++i) text.push_back(static_cast<char>(i * 7));
  const std::string here = testing::TempDir() + "contract-" + std::to_string(::getpid());
  std::FILE* file = std::fopen(here.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  const auto put = transport_->put({{here, path("there"), 0644}}, soon());
  EXPECT_TRUE(put);
  const auto got = transport_->get({{path("there"), here + ".back", 0600}}, soon());
  EXPECT_TRUE(got);
  std::string back(text.size() + 1, '\0');
  file = std::fopen((here + ".back").c_str(), "rb");
  ASSERT_NE(file, nullptr);
  back.resize(std::fread(back.data(), 1, back.size(), file));
  std::fclose(file);
  EXPECT_EQ(back, text);
  ::unlink(here.c_str());
  ::unlink((here + ".back").c_str());
}

TEST_P(TransportContract, ReadsPartsOfAFile) {
  put_text("file", "0123456789");
  const auto part = [&](std::uint64_t offset, std::uint64_t length) {
    auto text = transport_->read(path("file"), offset, length, soon());
    return text ? *text : text.error().text;
  };
  EXPECT_EQ(part(0, 4), "0123");
  EXPECT_EQ(part(8, 100), "89");
  EXPECT_EQ(part(10, 100), "");
  EXPECT_EQ(part(1000, 1), "");
  EXPECT_FALSE(transport_->read(path("absent"), 0, 1, soon()));
}

TEST_P(TransportContract, ListsADirectory) {
  put_text("two", "");
  put_text(".one", "");
  auto names = transport_->list(directory_, soon());
  ASSERT_TRUE(names);
  std::sort(names->begin(), names->end());
  EXPECT_EQ(*names, (std::vector<std::string>{".one", "two"}));
  const auto absent = transport_->list(path("absent"), soon());
  ASSERT_TRUE(absent);
  EXPECT_TRUE(absent->empty());
}

TEST_P(TransportContract, RemovesTreesButNotWhatLinksPointTo) {
  put_text("kept/file", "");
  put_text("tree/a/b", "");
  ASSERT_EQ(shell("ln -s '" + path("kept") + "' '" + path("tree/link") + "'").exit_code, 0);
  EXPECT_TRUE(transport_->remove({path("tree"), path("absent")}, soon()));
  EXPECT_EQ(shell("cd '" + directory_ + "' && find . | sort").standard_output,
            ".\n./kept\n./kept/file\n");
  EXPECT_TRUE(transport_->remove({path("tree")}, soon()));
}

TEST_P(TransportContract, AStreamCarriesBytesBothWaysUntilItIsClosed) {
  const auto stream = transport_->open({.argv = {"cat"}, .environment = {}, .input = {}}, soon());
  ASSERT_TRUE(stream) << stream.error().text;
  ASSERT_GE(stream->descriptor, 0);
  if (!stream->wants_pump) {
    ASSERT_EQ(::write(stream->descriptor, "ping\0", 5), 5);
    std::string back;
    while (back.size() < 5) {
      pollfd wait{stream->descriptor, POLLIN, 0};
      ASSERT_EQ(::poll(&wait, 1, 20'000), 1);
      char buffer[16];
      const auto n = ::read(stream->descriptor, buffer, sizeof buffer);
      ASSERT_GT(n, 0);
      back.append(buffer, static_cast<std::size_t>(n));
    }
    EXPECT_EQ(back, std::string("ping\0", 5));
  }
  ::close(stream->descriptor);
}

TEST_P(TransportContract, ADeadlineThatHasPassedReturnsAtOnce) {
  const auto output =
      transport_->run({.argv = {"sleep", "60"}, .environment = {}, .input = {}}, soon({}));
  if (output) {
    EXPECT_TRUE(output->timed_out);
  }
  EXPECT_FALSE(transport_->put_text({{path("late"), "", 0600}}, soon({})));
}

}  // namespace hpcbatch::contract
