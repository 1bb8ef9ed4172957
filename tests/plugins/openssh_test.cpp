// The transport by the user's own ssh: the contract, what both remote transports must do, and the
// connection that its calls share.
#include "remote_cases.hpp"

#include "hpcbatch/kept_connection.hpp"

namespace hpcbatch {
namespace {

constexpr const char* kPlugin = PLUGINS "/transports/openssh.so";

/// Each server's connections are closed with it: they would outlive the test.
std::string config_of(const Sshd& sshd, int port, const std::string& key) {
  return "host: 127.0.0.1\nport: " + std::to_string(port) + "\nidentity: " + key +
         "\nconfig: /dev/null\ncontrol_dir: " + sshd.path("control") +
         "\npersist: 2\noptions: [UserKnownHostsFile=" + sshd.path("known_hosts") +
         ", GlobalKnownHostsFile=/dev/null, IdentitiesOnly=yes, IdentityAgent=none]\n";
}

Sshd& contract_sshd() {
  static Sshd sshd;
  return sshd;
}

TEST(OpenSsh, CallsShareOneConnection) {
  Sshd sshd;
  const auto config = config_of(sshd, sshd.port(), sshd.path("user_key"));
  for (int i = 0; i < 3; ++i) {
    const auto transport = contract::load<Transport>(kPlugin, config);
    const auto names = transport->run({.argv = {"true"}, .environment = {}, .input = {}},
                                      std::chrono::steady_clock::now() + std::chrono::seconds(20));
    ASSERT_TRUE(names) << names.error().text;
    EXPECT_EQ(sshd.connections(), 1u);
  }
}

TEST(OpenSsh, TheSharedConnectionCanBeEnded) {
  Sshd sshd;
  auto config = config_of(sshd, sshd.port(), sshd.path("user_key"));
  config.replace(config.find("persist: 2"), 10, "persist: 600");
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::seconds(60); };
  ASSERT_TRUE(contract::load<Transport>(kPlugin, config)
                  ->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  EXPECT_EQ(sshd.connections(), 1u);
  // By another than the one that opened it, as an engine that was started anew is.
  const auto transport = contract::load<Transport>(kPlugin, config);
  dynamic_cast<ConnectionKeeper&>(*transport).end_connection(soon());
  EXPECT_TRUE(comes_true([&] { return sshd.connections() == 0; }));
  dynamic_cast<ConnectionKeeper&>(*transport).end_connection(soon());
  EXPECT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, soon()));
  dynamic_cast<ConnectionKeeper&>(*transport).end_connection(soon());
  // It says that it ends, and takes its socket away after that.
  EXPECT_TRUE(comes_true([&] { return std::filesystem::is_empty(sshd.path("control")); }));
}

TEST(OpenSsh, ATargetThatTheHostOnTheWayDoesNotReachIsToldAsSuch) {
  Sshd gate;
  auto config = config_of(gate, Sshd::free_port(), gate.path("user_key"));
  config.replace(config.find("options: ["), 10,
                 "options: ['ProxyCommand=ssh -F /dev/null -i " + gate.path("user_key") +
                     " -o UserKnownHostsFile=" + gate.path("known_hosts") + " -p " +
                     std::to_string(gate.port()) + " -W %h:%p 127.0.0.1', ");
  const auto names = contract::load<Transport>(kPlugin, config)
                         ->run({.argv = {"true"}, .environment = {}, .input = {}},
                               std::chrono::steady_clock::now() + std::chrono::seconds(20));
  ASSERT_FALSE(names);
  EXPECT_THAT(names.error().text,
              testing::HasSubstr("the host on the way there could not connect"));
  EXPECT_THAT(names.error().text, testing::Not(testing::HasSubstr("MaxSessions")));
}

TEST(OpenSsh, AControlDirectoryThatOthersMayEnterIsRefused) {
  Sshd sshd;
  std::filesystem::create_directory(sshd.path("control"));
  ::chmod(sshd.path("control").c_str(), 0755);
  try {
    contract::load<Transport>(kPlugin, config_of(sshd, sshd.port(), sshd.path("user_key")));
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("chmod 700"));
  }
}

TEST(OpenSsh, WhereAPersonMustAnswerItSaysHowToOpenTheConnection) {
  Sshd sshd("AuthenticationMethods keyboard-interactive\nKbdInteractiveAuthentication yes");
  const auto transport =
      contract::load<Transport>(kPlugin, config_of(sshd, sshd.port(), sshd.path("user_key")));
  const auto names = transport->run({.argv = {"true"}, .environment = {}, .input = {}},
                                    std::chrono::steady_clock::now() + std::chrono::seconds(20));
  ASSERT_FALSE(names);
  EXPECT_EQ(names.error().kind, Error::Kind::Rejected);
  EXPECT_THAT(names.error().text, testing::HasSubstr("wants a person to answer"));
  EXPECT_THAT(names.error().text, testing::HasSubstr("ssh -M -N -f -o ServerAliveInterval=30 -S " +
                                                     sshd.path("control/")));
}

TEST(OpenSsh, AConnectionOpenedByHandIsUsed) {
  Sshd sshd;
  Sshd::make_key(sshd.path("unknown_key"));
  const auto config = config_of(sshd, sshd.port(), sshd.path("unknown_key"));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto refused = contract::load<Transport>(kPlugin, config)
                           ->run({.argv = {"true"}, .environment = {}, .input = {}}, deadline);
  ASSERT_FALSE(refused);
  // What the error says, by a person who has another key.
  const std::string text = refused.error().text;
  const std::string command = text.substr(text.find("ssh -M"));
  const auto socket = command.substr(command.find("-S ") + 3);
  std::filesystem::rename(sshd.path("user_key"), sshd.path("unknown_key"));
  std::filesystem::remove(sshd.path("unknown_key.pub"));
  Sshd::run(command + " 2>/dev/null");
  std::filesystem::remove(sshd.path("unknown_key"));
  const auto transport = contract::load<Transport>(kPlugin, config);
  const auto names = transport->run({.argv = {"true"}, .environment = {}, .input = {}}, deadline);
  EXPECT_TRUE(names) << names.error().text;
  dynamic_cast<ConnectionKeeper&>(*transport).end_connection(deadline);
  EXPECT_TRUE(transport->run({.argv = {"true"}, .environment = {}, .input = {}}, deadline))
      << "it is not ours to end";
  Sshd::run("ssh -O exit -S " + socket.substr(0, socket.find(' ')) + " 127.0.0.1 2>/dev/null");
}

INSTANTIATE_TEST_SUITE_P(OpenSsh, Remote,
                         testing::Values(RemoteCase{.config = config_of, .plugin = kPlugin}));

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(OpenSsh, TransportContract,
                         testing::Values(TransportCase{.make =
                                                           [] {
                                                             const Sshd& sshd = contract_sshd();
                                                             return load<Transport>(
                                                                 kPlugin,
                                                                 config_of(sshd, sshd.port(),
                                                                           sshd.path("user_key")));
                                                           },
                                                       .directory = testing::TempDir()}));
}  // namespace contract
}  // namespace hpcbatch
