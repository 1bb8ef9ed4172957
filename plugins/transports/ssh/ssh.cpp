// Transport `ssh`: another machine, by libssh and with a key that needs nobody to type.
//
//   host: login.example.org
//   user: me
//   identity: ~/.ssh/id_ed25519
#include "library_login.hpp"

#include "../common/environment_key.hpp"
#include "../common/remote_transport.hpp"

namespace hpcbatch {
namespace {

SshSettings read_settings(const Keys& keys) {
  SshSettings settings;
  const auto host = keys.safe_name("host", "._-:");
  if (!host) keys.fail("host", "must be given: a name or an address");
  settings.host = *host;
  settings.port = static_cast<int>(keys.number("port", 1, 65535, 22));
  settings.user = keys.safe_name("user", "._-+").value_or("");
  settings.target = (settings.user.empty() ? "" : settings.user + "@") + settings.host;
  settings.identities = keys.paths("identity");
  for (const std::string& file : keys.paths("certificate")) settings.certificate = file;
  if (!settings.certificate.empty() && settings.identities.empty())
    keys.fail("certificate", "needs an 'identity', the key that it was made for");
  for (const std::string& file : keys.paths("known_hosts")) settings.known_hosts = file;
  settings.agent = keys.truth("agent", true);
  settings.keep_alive = std::chrono::seconds(keys.number("keep_alive", 1, 3600, 30));
  settings.connect_timeout = std::chrono::seconds(keys.number("connect_timeout", 1, 600, 15));
  return settings;
}

class Ssh final : public RemoteTransport {
 public:
  explicit Ssh(const char* config_yaml)
      : Ssh(Keys(config_yaml, {"host", "port", "user", "identity", "certificate", "agent",
                               "known_hosts", "keep_alive", "connect_timeout", "environment"})) {}

 private:
  explicit Ssh(const Keys& keys)
      : RemoteTransport(std::make_unique<LibraryLogin>(read_settings(keys)),
                        read_environment(keys)) {
    static const int once = ssh_init();
    (void)once;
  }
};

}  // namespace
}  // namespace hpcbatch

HPCBATCH_TRANSPORT(hpcbatch::Ssh, "ssh", "1.0");
