// Transport `openssh`: another machine, by the user's own program ssh and with all of its
// configuration.  Where a login needs a person, the person opens the shared connection by hand.
//
//   host: cluster                # of ~/.ssh/config, or a name
//   options: [ProxyJump=gate]    # each as after ssh's -o
#include "program_login.hpp"

#include "../common/process.hpp"
#include "../common/remote_transport.hpp"

#include "hpcbatch/kept_connection.hpp"
#include "hpcbatch/shell_quote.hpp"

#include <unistd.h>

namespace hpcbatch {
namespace {

/// ssh finds its agent, its files and what its configuration runs by our own environment.
Environment our_environment() {
  Environment environment;
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const auto equals = text.find('=');
    if (equals != std::string::npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  environment["LC_ALL"] = "C";
  // BatchMode does not reach the ssh that ssh starts for a jump host.
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "SSH_ASKPASS"}) environment.erase(name);
  environment["SSH_ASKPASS_REQUIRE"] = "never";
  environment.try_emplace("PATH", "/usr/local/bin:/usr/bin:/bin");
  return environment;
}

using Words = std::vector<std::string>;

void add(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// What says whom we talk to.
Words address(const Keys& keys) {
  Words words;
  for (const std::string& file : keys.paths("config")) add(words, {"-F", file});
  if (const auto user = keys.safe_name("user", "._-+")) add(words, {"-l", *user});
  if (keys.text("port")) add(words, {"-p", std::to_string(keys.number("port", 1, 65535, 22))});
  for (const std::string& file : keys.paths("identity")) add(words, {"-i", file});
  for (const std::string& option : keys.texts("options")) add(words, {"-o", option});
  return words;
}

ProgramSettings read_settings(const Keys& keys) {
  const auto host = keys.safe_name("host", "._-:");
  if (!host) keys.fail("host", "must be given: a host of ~/.ssh/config, or a name");
  const Words where = address(keys);
  const auto directories = keys.paths("control_dir");
  const std::string directory =
      directories.empty() ? default_control_directory() : directories.front();
  check_control_directory(directory);
  const std::string socket = control_socket(directory, shell_quoted(where) + " " + *host);
  const auto persist = std::to_string(keys.number("persist", 1, 2'592'000, 600));
  const auto keep_alive = std::to_string(keys.number("keep_alive", 1, 3600, 30));
  const auto connect_timeout = std::to_string(keys.number("connect_timeout", 1, 600, 15));

  ProgramSettings settings;
  settings.environment = our_environment();
  // ssh takes the first value that it is given: what must be stands before the user's options,
  // what may be otherwise behind them.
  settings.argv = {"ssh", "-T"};
  for (const char* option :
       {"BatchMode=yes", "ControlMaster=auto", "StrictHostKeyChecking=yes",
        "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
        "RequestTTY=no", "RemoteCommand=none", "LogLevel=INFO"}) {
    add(settings.argv, {"-o", option});
  }
  add(settings.argv, {"-o", "ControlPath=" + socket});
  add(settings.argv, where);
  for (const std::string& option :
       {"ControlPersist=" + persist, "ServerAliveInterval=" + keep_alive,
        std::string("ServerAliveCountMax=3"), "ConnectTimeout=" + connect_timeout}) {
    add(settings.argv, {"-o", option});
  }
  settings.argv.push_back(*host);

  const std::string tail = (where.empty() ? "" : shell_quoted(where) + " ") + *host;
  const auto user = keys.text("user");
  settings.who = {.target = (user ? *user + "@" : "") + *host,
                  .by_hand = "ssh " + tail,
                  .open_master = "ssh -M -N -f -o ServerAliveInterval=" + keep_alive + " -S " +
                                 socket + " " + tail};
  settings.control_directory = directory;
  settings.control_socket = socket;
  return settings;
}

class OpenSsh final : public RemoteTransport, public ConnectionKeeper {
 public:
  explicit OpenSsh(const char* config_yaml)
      : OpenSsh(Keys(config_yaml,
                     {"host", "config", "options", "user", "port", "identity", "control_dir",
                      "persist", "keep_alive", "connect_timeout", "environment"})) {}

  void end_connection(Deadline deadline) override { login_.end_connection(deadline); }

 private:
  explicit OpenSsh(const Keys& keys)
      : OpenSsh(std::make_unique<ProgramLogin>(read_settings(keys)), read_environment(keys)) {}
  OpenSsh(std::unique_ptr<ProgramLogin> login, Environment environment)
      : OpenSsh(*login, std::move(login), std::move(environment)) {}
  OpenSsh(ProgramLogin& itself, std::unique_ptr<ProgramLogin>&& login, Environment&& environment)
      : RemoteTransport(std::move(login), std::move(environment)), login_(itself) {}

  ProgramLogin& login_;  // its base owns it
};

}  // namespace
}  // namespace hpcbatch

HPCBATCH_TRANSPORT(hpcbatch::OpenSsh, "openssh", "2.0");
