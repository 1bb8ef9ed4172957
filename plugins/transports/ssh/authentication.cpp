#include "authentication.hpp"

#include "../common/login.hpp"
#include "posix/socket_path.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using Clock = std::chrono::steady_clock;

// A person may have to allow it, or to touch a key.
constexpr std::chrono::seconds kAgentPatience{20};
constexpr const char* kByHand =
    "the transport 'openssh' can use a connection that you open by hand";

struct KeyFree {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using Key = std::unique_ptr<ssh_key_struct, KeyFree>;

/// The library asks for a passphrase only where there is one.
int no_passphrase(const char*, char*, std::size_t, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Error rejected(const std::string& text) {
  return {Error::Kind::Rejected, text};
}

Result<Key> read_key(const std::string& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0)
    return rejected("cannot read the key " + file + ": " + std::strerror(errno));
  if ((facts.st_mode & 077) != 0) return login_errors::key_too_open(file);
  bool asked = false;
  ssh_key key = nullptr;
  if (ssh_pki_import_privkey_file(file.c_str(), nullptr, no_passphrase, &asked, &key) == SSH_OK)
    return Key(key);
  if (asked) {
    return rejected("cannot use the key " + file + ": it has a passphrase; run: ssh-add " + file +
                    ", and start the engine where SSH_AUTH_SOCK names that agent");
  }
  return rejected("cannot use the key " + file + ": it is no private key that libssh can read");
}

Result<void> add_certificate(const Key& key, const std::string& file) {
  ssh_key read = nullptr;
  if (ssh_pki_import_cert_file(file.c_str(), &read) != SSH_OK)
    return rejected("cannot read the certificate " + file);
  const Key certificate(read);
  if (ssh_pki_copy_cert_to_privkey(certificate.get(), key.get()) != SSH_OK)
    return rejected("cannot use the certificate " + file + ": it does not belong to the key");
  return {};
}

class Attempt {
 public:
  Attempt(Session& session, const SshSettings& settings, Deadline deadline)
      : session_(session), settings_(settings), deadline_(deadline) {}

  Result<void> make() {
    answered(finish([this] { return ssh_userauth_none(session_.get(), nullptr); }), "");
    if (!is_over()) {
      // Keys that were chosen come before those that an agent happens to have: servers count tries.
      if (!settings_.identities.empty()) try_files(settings_.identities, true);
      if (!is_over() && settings_.agent && std::getenv("SSH_AUTH_SOCK") != nullptr) try_agent();
      if (!is_over() && settings_.identities.empty()) try_files(own_files(), false);
    }
    if (answer_ == SSH_AUTH_SUCCESS) return {};
    if (error_) return *error_;
    return refusal();
  }

 private:
  template <class Call>
  int finish(Call call) {
    return session_.finish(call, deadline_, SSH_AUTH_AGAIN);
  }
  void try_agent() {
    AgentSocket agent(std::min(deadline_, Clock::now() + kAgentPatience));
    if (!agent.lend_to(session_.get())) return;
    const int answer = finish([this] { return ssh_userauth_agent(session_.get(), nullptr); });
    const bool is_silent = agent.was_shut();
    answered(is_silent ? SSH_AUTH_DENIED : answer,
             is_silent ? "the agent, which did not answer" : "the agent");
  }
  void answered(int answer, const std::string& tried) {
    answer_ = answer;
    if (!tried.empty()) tried_ += (tried_.empty() ? "" : ", ") + tried;
    if (answer == SSH_AUTH_AGAIN)
      error_ = login_errors::timed_out(settings_.target, "while logging in");
    if (answer == SSH_AUTH_ERROR && ssh_is_connected(session_.get()) == 0)
      error_ = login_errors::closed_by_server(settings_.target, session_.error());
  }
  bool is_over() const {
    return answer_ == SSH_AUTH_SUCCESS || answer_ == SSH_AUTH_PARTIAL || error_;
  }

  static std::vector<std::string> own_files() {
    std::vector<std::string> files;
    const char* home = std::getenv("HOME");
    for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"}) {
      const std::string file = std::string(home != nullptr ? home : "/") + "/.ssh/" + name;
      if (::access(file.c_str(), R_OK) == 0) files.push_back(file);
    }
    return files;
  }

  /// Keys that nobody chose are left out where they cannot be used.
  void try_files(const std::vector<std::string>& files, bool are_chosen) {
    bool is_first = true;
    for (const std::string& file : files) {
      const auto key = read_key(file);
      if (!key) {
        if (are_chosen) error_ = key.error();
        if (are_chosen) return;
        continue;
      }
      if (is_first && !settings_.certificate.empty()) {
        if (auto added = add_certificate(*key, settings_.certificate); !added) {
          error_ = added.error();
          return;
        }
      }
      is_first = false;
      answered(finish([&] { return ssh_userauth_publickey(session_.get(), nullptr, key->get()); }),
               file);
      if (is_over()) return;
    }
  }

  Error refusal() const {
    const auto methods = static_cast<unsigned>(ssh_userauth_list(session_.get(), nullptr));
    std::string offered;
    const auto offer = [&](unsigned method, const char* name) {
      if ((methods & method) != 0) offered += (offered.empty() ? "" : ",") + std::string(name);
    };
    offer(SSH_AUTH_METHOD_PUBLICKEY, "publickey");
    offer(SSH_AUTH_METHOD_HOSTBASED, "hostbased");
    offer(SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi");
    offer(SSH_AUTH_METHOD_PASSWORD, "password");
    offer(SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive");
    const bool asks = (methods & (SSH_AUTH_METHOD_PASSWORD | SSH_AUTH_METHOD_INTERACTIVE)) != 0;
    if (asks && ((methods & SSH_AUTH_METHOD_PUBLICKEY) == 0 || answer_ == SSH_AUTH_PARTIAL))
      return login_errors::needs_person(settings_.target, offered, kByHand);
    return login_errors::not_let_in(
        settings_.target, tried_.empty() ? "no key, and no agent" : tried_, offered,
        std::string("look at 'user' and 'identity'") + (asks ? std::string("; ") + kByHand : ""));
  }

  Session& session_;
  const SshSettings& settings_;
  Deadline deadline_;
  int answer_{SSH_AUTH_DENIED};
  std::string tried_;
  std::optional<Error> error_;
};

Fd connect_to_agent() {
  const char* path = std::getenv("SSH_AUTH_SOCK");
  if (path == nullptr) return Fd();
  const SocketPath reachable = socket_path(path);
  if (reachable.error != 0) return Fd();
  const sockaddr_un address = address_of(reachable);
  // Not waiting for one that takes nobody any more.
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Fd();
  return socket;
}

}  // namespace

Result<void> authenticate(Session& session, const SshSettings& settings, Deadline deadline) {
  return Attempt(session, settings, deadline).make();
}

AgentSocket::AgentSocket(std::chrono::steady_clock::time_point until)
    : ours_(connect_to_agent()), until_(until) {}

bool AgentSocket::lend_to(ssh_session session) {
  if (ours_.get() < 0) return false;
  const int theirs = ::fcntl(ours_.get(), F_DUPFD_CLOEXEC, 0);
  if (theirs < 0) return false;
  if (ssh_set_agent_socket(session, theirs) != SSH_OK) {
    ::close(theirs);
    return false;
  }
  watch_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, until_, [this] { return is_over_; })) return;
    was_shut_ = true;
    ::shutdown(ours_.get(), SHUT_RDWR);
  });
  return true;
}

bool AgentSocket::was_shut() {
  const std::lock_guard lock(mutex_);
  return was_shut_;
}

AgentSocket::~AgentSocket() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  if (watch_.joinable()) watch_.join();
}

}  // namespace hpcbatch
