// What both transports to other machines must do beyond the contract; each runs them against an
// sshd of its own.
#pragma once

#include "cutting_proxy.hpp"
#include "sshd.hpp"

#include "hpcbatch/contract/transport.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <iostream>
#include <ostream>
#include <thread>

namespace hpcbatch {

struct RemoteCase {
  /// The transport to a server behind `port`, logged in by `key`, and more lines of configuration.
  std::function<std::string(const Sshd&, int port, const std::string& key)> config;
  std::string plugin;
  friend std::ostream& operator<<(std::ostream& out, const RemoteCase& c) {
    return out << c.plugin;
  }
};

/// The process that the file names, once it does: dead, or waiting for whoever inherited it.
inline bool is_over_there(const std::string& file) {
  int process = 0;
  const bool is_named =
      comes_true([&] { return (process = std::atoi(text_of_file(file).c_str())) > 1; });
  return is_named && comes_true([&] {
           const std::string stat = text_of_file("/proc/" + std::to_string(process) + "/stat");
           return stat.empty() || stat.find(") Z ") != std::string::npos;
         });
}

class Remote : public testing::TestWithParam<RemoteCase> {
 protected:
  static Deadline soon(std::chrono::milliseconds time = std::chrono::seconds(60)) {
    return std::chrono::steady_clock::now() + time;
  }
  std::unique_ptr<Transport> make(const Sshd& sshd, const std::string& more = "", int port = 0,
                                  const std::string& key = "user_key") const {
    return contract::load<Transport>(
        GetParam().plugin,
        GetParam().config(sshd, port == 0 ? sshd.port() : port, sshd.path(key)) + more);
  }
  static CommandOutput run(Transport& transport, const std::string& text,
                           std::chrono::milliseconds time = std::chrono::seconds(60)) {
    const auto output =
        transport.run({.argv = {"sh", "-c", text}, .environment = {}, .input = {}}, soon(time));
    EXPECT_TRUE(output) << output.error().text;
    return output ? *output : CommandOutput{.exit_code = -2};
  }
  static Error error_of(Transport& transport) {
    const auto names = transport.run({.argv = {"true"}, .environment = {}, .input = {}},
                                     soon(std::chrono::seconds(20)));
    EXPECT_FALSE(names);
    return names ? Error{} : names.error();
  }
  static std::string bytes(std::size_t size) {
    std::string text(size, '\0');
    std::uint32_t state = 1;
    for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    return text;
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Remote);

TEST_P(Remote, AnUnknownHostKeyIsRefused) {
  Sshd sshd;
  std::filesystem::resize_file(sshd.path("known_hosts"), 0);
  const auto transport = make(sshd);
  const Error error = error_of(*transport);
  EXPECT_EQ(error.kind, Error::Kind::Rejected);
  EXPECT_THAT(error.text, testing::HasSubstr("is not known; compare the fingerprint"));
  // Nobody knocks again at once.
  const Error again = error_of(*transport);
  EXPECT_EQ(again.kind, Error::Kind::Transient);
  EXPECT_THAT(again.text, testing::HasSubstr("the next is tried in"));
}

TEST_P(Remote, AChangedHostKeyIsRefused) {
  Sshd sshd;
  sshd.stop();
  sshd.new_host_key();
  sshd.start();
  const Error error = error_of(*make(sshd));
  EXPECT_EQ(error.kind, Error::Kind::Rejected);
  EXPECT_THAT(error.text, testing::HasSubstr("HOST KEY HAS CHANGED to " + sshd.fingerprint()));
  EXPECT_THAT(error.text, testing::HasSubstr(sshd.path("known_hosts")));
}

TEST_P(Remote, ARevokedHostKeyIsRefusedThoughItIsKnown) {
  Sshd sshd;
  std::ifstream in(sshd.path("known_hosts"));
  std::string host, kind, key;
  in >> host >> kind >> key;
  std::ofstream(sshd.path("known_hosts"), std::ios::app)
      << "# a comment\n@revoked * " << kind << ' ' << key << " stolen\n";
  const Error error = error_of(*make(sshd));
  EXPECT_EQ(error.kind, Error::Kind::Rejected);
  EXPECT_THAT(error.text, testing::HasSubstr("HOST KEY IS REVOKED"));
  EXPECT_THAT(error.text, testing::Not(testing::HasSubstr("is not known")));
}

TEST_P(Remote, AKeyThatTheServerDoesNotKnowIsRejected) {
  Sshd sshd;
  Sshd::make_key(sshd.path("other_key"));
  const Error error = error_of(*make(sshd, "", 0, "other_key"));
  EXPECT_EQ(error.kind, Error::Kind::Rejected);
  EXPECT_THAT(error.text, testing::HasSubstr("took none of what was tried"));
  EXPECT_THAT(error.text, testing::HasSubstr("publickey"));
}

TEST_P(Remote, AKeyThatOthersMayReadIsRefused) {
  Sshd sshd;
  ::chmod(sshd.path("user_key").c_str(), 0644);
  const Error error = error_of(*make(sshd));
  EXPECT_EQ(error.kind, Error::Kind::Rejected);
  EXPECT_THAT(error.text, testing::HasSubstr("chmod 600 " + sshd.path("user_key")));
}

TEST_P(Remote, AServerThatIsGoneAndBackIsUsedAgain) {
  Sshd sshd;
  const auto transport = make(sshd);
  EXPECT_EQ(run(*transport, "echo one").standard_output, "one\n");
  sshd.stop();
  const Error error = error_of(*transport);
  EXPECT_EQ(error.kind, Error::Kind::Transient) << error.text;
  sshd.start();
  Result<CommandOutput> output = error;
  EXPECT_TRUE(comes_true([&] {
    output = transport->run({.argv = {"echo", "two"}, .environment = {}, .input = {}}, soon());
    return output.has_value();
  }));
  ASSERT_TRUE(output) << output.error().text;
  EXPECT_EQ(output->standard_output, "two\n");
}

TEST_P(Remote, NobodyListensIsTransient) {
  Sshd sshd;
  const Error error = error_of(*make(sshd, "", Sshd::free_port()));
  EXPECT_EQ(error.kind, Error::Kind::Transient);
  EXPECT_THAT(error.text, testing::HasSubstr("connection refused"));
}

TEST_P(Remote, TheDeadlineKillsWhatRunsThere) {
  Sshd sshd;
  const auto transport = make(sshd);
  ASSERT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  ASSERT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  // By us, and not by the watcher there, which is the later: on a busy machine both may be late.
  bool is_by_us = false;
  for (int attempt = 1; attempt <= 5 && !is_by_us; ++attempt) {
    const std::chrono::milliseconds limit(1500 * attempt);
    const auto start = std::chrono::steady_clock::now();
    const auto output =
        run(*transport, "echo $$ > " + sshd.path("pid") + "; (trap '' TERM; sleep 600) & sleep 600",
            limit);
    EXPECT_TRUE(output.timed_out);
    EXPECT_EQ(output.exit_code, -1);
    if (std::atoi(text_of_file(sshd.path("pid")).c_str()) <= 1) continue;
    EXPECT_TRUE(is_over_there(sshd.path("pid")));
    is_by_us = std::chrono::steady_clock::now() - start < limit + std::chrono::milliseconds(900);
    std::filesystem::remove(sshd.path("pid"));
  }
  EXPECT_TRUE(is_by_us);
}

TEST_P(Remote, AServerOfOneSessionIsEnough) {
  Sshd sshd("MaxSessions 1");
  const auto transport = make(sshd);
  const std::string large = bytes(std::size_t{1} << 20);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(*transport, "echo one").standard_output, "one\n");
    const auto back = transport->run({.argv = {"cat"}, .environment = {}, .input = large}, soon());
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_TRUE(back->standard_output == large);
  }
  // What holds the one session is ended there all the same.
  const auto hung = run(*transport, "echo $$ > " + sshd.path("pid") + "; sleep 600",
                        std::chrono::milliseconds(1500));
  EXPECT_TRUE(hung.timed_out);
  EXPECT_TRUE(is_over_there(sshd.path("pid")));
  const auto stream = transport->open({.argv = {"cat"}, .environment = {}, .input = {}}, soon());
  ASSERT_TRUE(stream) << stream.error().text;
  EXPECT_EQ(run(*transport, "echo beside").standard_output, "beside\n");
  ::close(*stream);
}

TEST_P(Remote, ALoginProfileThatHangsLeavesNothingThere) {
  Sshd sshd;
  // A shell with job control gives what it starts a group of its own.
  std::ofstream(sshd.home() + "/.bash_profile")
      << "set -m\n(echo $BASHPID > " << sshd.path("own") << "; exec sleep 600) &\n"
      << "echo $$ > " << sshd.path("pid") << "\nsleep 600\n";
  const auto transport = make(sshd);
  const auto output = transport->run({.argv = {"true"}, .environment = {}, .input = {}},
                                     soon(std::chrono::milliseconds(2500)));
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().text, testing::HasSubstr("start files did not end in time"));
  EXPECT_TRUE(is_over_there(sshd.path("pid")));
  EXPECT_TRUE(is_over_there(sshd.path("own")));
}

TEST_P(Remote, WhatStartFilesPrintDoesNoHarm) {
  Sshd sshd;
  std::ofstream(sshd.home() + "/.bashrc") << "echo Welcome to the cluster; echo warning >&2\n";
  std::ofstream(sshd.home() + "/.bash_profile")
      << "echo Maintenance on Monday\nexport PATH=/opt/batch/bin:$PATH SLURM_CONF=/etc/far.conf\n"
         "export SECRET=1\n";
  const auto transport = make(sshd);
  const auto output = run(*transport, "echo $PATH $SLURM_CONF ${SECRET-none}; echo err >&2");
  EXPECT_THAT(output.standard_output, testing::AllOf(testing::StartsWith("/opt/batch/bin:"),
                                                     testing::EndsWith(" /etc/far.conf none\n")));
  EXPECT_EQ(output.standard_error, "err\n");
  const auto stream = transport->open({.argv = {"cat"}, .environment = {}, .input = {}}, soon());
  ASSERT_TRUE(stream) << stream.error().text;
  ::close(*stream);
}

TEST_P(Remote, ItsEnvironmentCanBeSet) {
  Sshd sshd;
  std::ofstream(sshd.home() + "/.bash_profile") << "export SLURM_CONF=/etc/far.conf\n";
  const auto transport = make(sshd, "environment: {SLURM_CONF: /etc/mine.conf}\n");
  EXPECT_EQ(run(*transport, "echo $SLURM_CONF $HOME").standard_output,
            "/etc/mine.conf " + sshd.home() + "\n");
}

TEST_P(Remote, EveryByteArrivesAsItIs) {
  Sshd sshd;
  const auto transport = make(sshd);
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  const auto output = transport->run(
      {.argv = {"printf", "%s|", all, "-n", "", "a b"}, .environment = {{"X", all}}, .input = {}},
      soon());
  ASSERT_TRUE(output) << output.error().text;
  EXPECT_EQ(output->standard_output, all + "|-n||a b|");
}

TEST_P(Remote, APeerThatIsFrozenDoesNotHoldACallBeyondItsDeadline) {
  Sshd sshd;
  const auto transport = make(sshd);
  ASSERT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  sshd.signal_connections(SIGSTOP);
  const auto start = std::chrono::steady_clock::now();
  const auto names = transport->run({.argv = {"true"}, .environment = {}, .input = {}},
                                    soon(std::chrono::milliseconds(1500)));
  const auto took = std::chrono::steady_clock::now() - start;
  sshd.signal_connections(SIGCONT);
  EXPECT_TRUE(names ? names->timed_out : names.error().kind == Error::Kind::Transient);
  EXPECT_GE(took, std::chrono::milliseconds(1500));
  EXPECT_LT(took, std::chrono::seconds(20));
  EXPECT_TRUE(comes_true([&] {
    return transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()).has_value();
  }));
}

TEST_P(Remote, AConnectionThatIsCutInACommandIsTransient) {
  Sshd sshd;
  const auto transport = make(sshd);
  ASSERT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  std::thread cutter([&] {
    comes_true([&] { return std::filesystem::exists(sshd.path("runs")); });
    sshd.signal_connections(SIGKILL);
  });
  const auto cut =
      transport->run({.argv = {"sh", "-c",
                               "echo $$ > " + sshd.path("new") + "; mv " + sshd.path("new") + " " +
                                   sshd.path("runs") + "; exec sleep 60"},
                      .environment = {},
                      .input = {}},
                     soon());
  cutter.join();
  // Nothing can reach it any more but its own watcher, and this test does not wait for that.
  const int left = std::atoi(text_of_file(sshd.path("runs")).c_str());
  ASSERT_GT(left, 1);
  ::kill(left, SIGKILL);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().kind, Error::Kind::Transient);
  EXPECT_THAT(cut.error().text, testing::HasSubstr("was lost"));
  EXPECT_EQ(run(*transport, "echo again").standard_output, "again\n");
}

TEST_P(Remote, TooManyLoginsAreToldAsSuch) {
  Sshd sshd("MaxStartups 1:100:1");
  // Takes the one place for those who have not logged in yet.
  int other = -1;
  ASSERT_TRUE(comes_true([&] {
    other = Sshd::connect_to(sshd.port());
    char greeting[4]{};
    if (::recv(other, greeting, 4, MSG_WAITALL) == 4 && std::string(greeting, 4) == "SSH-")
      return true;
    ::close(other);
    return false;
  }));
  const Error error = error_of(*make(sshd));
  ::close(other);
  EXPECT_EQ(error.kind, Error::Kind::Transient);
  EXPECT_THAT(error.text, testing::HasSubstr("the server closed the connection"));
}

TEST_P(Remote, RefusesWhatItDoesNotKnow) {
  const auto refusal = [&](const std::string& config) -> std::string {
    try {
      contract::load<Transport>(GetParam().plugin, config);
      return "accepted";
    } catch (const std::exception& e) {
      return e.what();
    }
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal("host: a\nhots: b"),
              HasSubstr("line 2: unknown key 'hots'; known are: host"));
  EXPECT_THAT(refusal("user: me"), HasSubstr("'host' must be given"));
  EXPECT_THAT(refusal("host: -oProxyCommand=x"), HasSubstr("line 1: 'host' may have letters"));
  EXPECT_THAT(refusal("host: a\nuser: 'a b'"), HasSubstr("line 2: 'user' may have letters"));
  EXPECT_THAT(refusal("host: a\nport: 0"), HasSubstr("'port' must be a whole number"));
  EXPECT_THAT(refusal("host: a\nenvironment: {1A: b}"), HasSubstr("no name of a variable"));
}

}  // namespace hpcbatch
