// The transport by libssh: the contract, what both remote transports must do, its streams and what
// it says of keys.
#include "remote_cases.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>
#include <cstring>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// As in the engine: libssh writes to connections that are gone.
[[maybe_unused]] const auto kNoBrokenPipes = std::signal(SIGPIPE, SIG_IGN);

constexpr const char* kPlugin = PLUGINS "/transports/ssh.so";

std::string config_of(const Sshd& sshd, int port, const std::string& key) {
  return "host: 127.0.0.1\nport: " + std::to_string(port) + "\nidentity: " + key +
         "\nagent: false\nknown_hosts: " + sshd.path("known_hosts") + "\n";
}

std::unique_ptr<Transport> make(const Sshd& sshd, const std::string& more = "",
                                const std::string& key = "user_key") {
  return contract::load<Transport>(kPlugin, config_of(sshd, sshd.port(), sshd.path(key)) + more);
}

Deadline soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

Sshd& contract_sshd() {
  static Sshd sshd;
  return sshd;
}

Error error_of(Transport& transport) {
  const auto names = transport.run({.argv = {"true"}, .environment = {}, .input = {}}, soon());
  EXPECT_FALSE(names);
  return names ? Error{} : names.error();
}

TEST(Ssh, AnUnknownHostIsToldWithItsFingerprintAndWhatToRun) {
  Sshd sshd;
  std::filesystem::resize_file(sshd.path("known_hosts"), 0);
  const std::string text = error_of(*make(sshd)).text;
  EXPECT_THAT(text, testing::HasSubstr(sshd.fingerprint()));
  // The command does what it says.
  Sshd::run(text.substr(text.find("printf ")));
  EXPECT_TRUE(make(sshd)->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
}

TEST(Ssh, AnAgentThatDoesNotAnswerIsNotWaitedForWithoutEnd) {
  Sshd sshd;
  const std::string path = sshd.path("agent");
  const int agent = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(agent, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(agent, 4), 0);
  ::setenv("SSH_AUTH_SOCK", path.c_str(), 1);
  const auto transport =
      contract::load<Transport>(kPlugin, "host: 127.0.0.1\nport: " + std::to_string(sshd.port()) +
                                             "\nknown_hosts: " + sshd.path("known_hosts") + "\n");
  const auto names = transport->run({.argv = {"true"}, .environment = {}, .input = {}},
                                    std::chrono::steady_clock::now() + 2s);
  ::unsetenv("SSH_AUTH_SOCK");
  ::close(agent);
  ASSERT_FALSE(names);
  EXPECT_THAT(names.error().text, testing::HasSubstr("the agent, which did not answer"));
}

TEST(Ssh, AKeyWithAPassphraseIsForTheAgent) {
  Sshd sshd;
  Sshd::make_key(sshd.path("locked_key"), "secret");
  const Error error = error_of(*make(sshd, "", "locked_key"));
  EXPECT_EQ(error.kind, Error::Kind::Rejected);
  EXPECT_THAT(error.text, testing::HasSubstr("run: ssh-add " + sshd.path("locked_key")));
}

TEST(Ssh, WhereAPersonMustAnswerItNamesTheOtherTransport) {
  Sshd sshd("AuthenticationMethods keyboard-interactive\nKbdInteractiveAuthentication yes");
  const Error error = error_of(*make(sshd));
  EXPECT_EQ(error.kind, Error::Kind::Rejected);
  EXPECT_THAT(error.text, testing::HasSubstr("wants a person to answer"));
  EXPECT_THAT(error.text, testing::HasSubstr("transport 'openssh'"));
}

TEST(Ssh, TakesTheFastestCipherThatTheServerHas) {
  const auto cipher_at = [](const std::string& offered) {
    Sshd sshd("LogLevel DEBUG1\nCiphers " + offered);
    EXPECT_TRUE(make(sshd)->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()))
        << offered;
    const std::string log = text_of_file(sshd.path("log"));
    const std::string before = "client->server cipher: ";
    const auto at = log.find(before);
    return at == std::string::npos
               ? "none"
               : log.substr(at + before.size(),
                            log.find(' ', at + before.size()) - at - before.size());
  };
  EXPECT_EQ(cipher_at("chacha20-poly1305@openssh.com,aes256-gcm@openssh.com"),
            "aes256-gcm@openssh.com");
  EXPECT_EQ(cipher_at("aes128-ctr,chacha20-poly1305@openssh.com"), "chacha20-poly1305@openssh.com");
  EXPECT_EQ(cipher_at("aes128-ctr"), "aes128-ctr");
}

TEST(Ssh, CallsShareOneLogin) {
  Sshd sshd;
  const auto transport = make(sshd);
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  EXPECT_EQ(sshd.connections(), 1u);
}

TEST(Ssh, AServerThatRefusesEveryChannelIsToldAsSuch) {
  Sshd sshd("MaxSessions 0");
  const auto transport = make(sshd);
  for (int i = 0; i < 2; ++i) {
    const Error error = error_of(*transport);
    EXPECT_EQ(error.kind, Error::Kind::Transient);
    EXPECT_THAT(error.text, testing::HasSubstr("refused the first channel of a new login"));
  }
}

TEST(Ssh, WhatABashrcHangsInIsEndedByASignalThatTheServerPassesOn) {
  Sshd sshd;
  const std::string pid = sshd.path("pid");
  std::ofstream(sshd.home() + "/.bashrc") << "echo $$ > " << pid << "; sleep 600\n";
  const auto transport = make(sshd, "environment: {PATH: /usr/bin:/bin}\n");
  const auto output = transport->run({.argv = {"true"}, .environment = {}, .input = {}},
                                     std::chrono::steady_clock::now() + 1500ms);
  EXPECT_TRUE(!output || output->timed_out);
  // Of a login by root it passes none on, and says so (OpenSSH's session.c).
  const bool is_root = ::geteuid() == 0;
  const auto is_refused = [&] {
    return sshd.log().find("session signalling requires privilege separation") != std::string::npos;
  };
  EXPECT_TRUE(!is_root || comes_true(is_refused)) << sshd.log();
  if (is_root) ::kill(-std::atoi(text_of_file(pid).c_str()), SIGKILL);
  EXPECT_TRUE(is_over_there(pid));
}

TEST(Ssh, EachStreamHasALoginOfItsOwn) {
  Sshd sshd;
  const auto transport = make(sshd);
  std::vector<int> streams;
  for (int i = 0; i < 2; ++i) {
    const auto stream = transport->open({.argv = {"cat"}, .environment = {}, .input = {}}, soon());
    ASSERT_TRUE(stream) << stream.error().text;
    streams.push_back(*stream);
  }
  EXPECT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  EXPECT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  EXPECT_EQ(sshd.connections(), 3u);
  EXPECT_EQ(::write(streams.front(), "word", 4), 4);
  char back[4]{};
  EXPECT_EQ(::recv(streams.front(), back, 4, MSG_WAITALL), 4);
  EXPECT_EQ(std::string(back, 4), "word");
  for (const int stream : streams) ::close(stream);
  EXPECT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
}

TEST(Ssh, AStreamWhosePeerFallsSilentEnds) {
  Sshd sshd;
  const auto transport = make(sshd, "keep_alive: 1\n");
  const auto stream = transport->open({.argv = {"cat"}, .environment = {}, .input = {}}, soon());
  ASSERT_TRUE(stream) << stream.error().text;
  // One that has nothing to say but answers is kept.
  pollfd end{*stream, POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 5000), 0);
  sshd.signal_connections(SIGSTOP);
  EXPECT_EQ(::poll(&end, 1, 10'000), 1);
  sshd.signal_connections(SIGCONT);
  char c = 0;
  EXPECT_EQ(::read(*stream, &c, 1), 0);
  ::close(*stream);
}

INSTANTIATE_TEST_SUITE_P(Ssh, Remote,
                         testing::Values(RemoteCase{.config = config_of, .plugin = kPlugin}));

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(Ssh, TransportContract,
                         testing::Values(TransportCase{
                             .make =
                                 [] {
                                   auto transport = make(contract_sshd());
                                   // The descriptor of its login is no
                                   // leak of a call.
                                   EXPECT_TRUE(transport->run(
                                       {.argv = {"true"}, .environment = {}, .input = {}}, soon()));
                                   return transport;
                                 },
                             .directory = testing::TempDir()}));
}  // namespace contract
}  // namespace hpcbatch
