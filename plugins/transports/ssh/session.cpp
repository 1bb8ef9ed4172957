#include "session.hpp"

#include "../common/login.hpp"
#include "authentication.hpp"
#include "hpcbatch/shell_quote.hpp"

#include <libssh/server.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hpcbatch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kBlank = " \t\r";

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlank));
  line.remove_prefix(word.size());
  return word;
}

/// Whether the key, in base64, is revoked for anybody: what was stolen from one host is trusted at
/// none.
bool is_revoked(std::string_view known_hosts, std::string_view key) {
  if (key.empty()) return false;
  while (!known_hosts.empty()) {
    std::string_view line = known_hosts.substr(0, known_hosts.find('\n'));
    known_hosts.remove_prefix(std::min(line.size() + 1, known_hosts.size()));
    if (take_word(line) != "@revoked") continue;
    take_word(line);  // hosts
    take_word(line);  // kind of key
    if (take_word(line) == key) return true;
  }
  return false;
}

// The library may hold what it has not looked at; nothing waits for it longer than this.
constexpr milliseconds kLookEvery{500};

// The library's first choice would be chacha20-poly1305, with which a transfer costs both ends half
// as much CPU again where processors know AES; all of its list are offered.
constexpr const char* kCiphers =
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,"
    "aes256-ctr,aes192-ctr,aes128-ctr";

constexpr const char* kGlobalKnownHosts = "/etc/ssh/ssh_known_hosts";

std::string own_known_hosts() {
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/") + "/.ssh/known_hosts";
}

void set(int socket, int level, int option, int value) {
  (void)::setsockopt(socket, level, option, &value, sizeof value);
}

/// Between calls nobody of ours looks after the connection; the kernel does.
void keep_alive(int socket, std::chrono::seconds every) {
  const int seconds = static_cast<int>(every.count());
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 3000 * seconds);
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

/// 0, or why it could not connect.
int connect_one(const Fd& to, const addrinfo& address, Deadline deadline) {
  if (::connect(to.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    pollfd wait{to.get(), POLLOUT, 0};
    if (::poll(&wait, 1, static_cast<int>(std::min<decltype(left)>(left, 60'000))) <= 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(to.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
}

Error connect_error(const std::string& target, int error) {
  switch (error) {
    case ECONNREFUSED:
      return login_errors::refused(target);
    case ETIMEDOUT:
      return login_errors::timed_out(target, "while connecting");
    case EHOSTUNREACH:
    case ENETUNREACH:
      return login_errors::no_route(target, std::strerror(error));
    default:
      return login_errors::other(target, std::strerror(error));
  }
}

constexpr std::size_t kPumpedPiece = 64u << 10;
constexpr std::uint32_t kMostOnTheWay = 256u << 10;

}  // namespace

Session::Session(const SshSettings& settings)
    : session_(ssh_new()), keep_alive_(settings.keep_alive) {
  if (session_ == nullptr) throw std::bad_alloc();
  const std::string known = settings.known_hosts.empty() ? own_known_hosts() : settings.known_hosts;
  const bool no = false;
  ssh_options_set(session_, SSH_OPTIONS_PROCESS_CONFIG, &no);
  ssh_options_set(session_, SSH_OPTIONS_HOST, settings.host.c_str());
  ssh_options_set(session_, SSH_OPTIONS_PORT, &settings.port);
  if (!settings.user.empty()) ssh_options_set(session_, SSH_OPTIONS_USER, settings.user.c_str());
  ssh_options_set(session_, SSH_OPTIONS_KNOWNHOSTS, known.c_str());
  if (!settings.known_hosts.empty())
    ssh_options_set(session_, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  ssh_options_set(session_, SSH_OPTIONS_CIPHERS_C_S, kCiphers);
  ssh_options_set(session_, SSH_OPTIONS_CIPHERS_S_C, kCiphers);
  ssh_set_counters(session_, nullptr, &heard_);
  ssh_set_blocking(session_, 0);
  listen_anew();
}

Session::~Session() {
  // A polite farewell could block where nobody listens.
  ssh_silent_disconnect(session_);
  ssh_free(session_);
}

Result<std::unique_ptr<Session>> Session::log_in(const SshSettings& settings, Deadline deadline) {
  std::unique_ptr<Session> session(new Session(settings));
  if (auto connected = session->connect(settings, deadline); !connected) return connected.error();
  if (auto known = session->check_host_key(settings); !known) return known.error();
  if (auto let_in = authenticate(*session, settings, deadline); !let_in) return let_in.error();
  return session;
}

Result<void> Session::connect(const SshSettings& settings, Deadline deadline) {
  const Deadline until = std::min(deadline, Clock::now() + settings.connect_timeout);
  auto socket = connect_tcp(settings.host, settings.port, settings.target, keep_alive_, until);
  if (!socket) return socket.error();
  socket_t descriptor = socket->release();
  ssh_options_set(session_, SSH_OPTIONS_FD, &descriptor);
  const int answer = finish([this] { return ssh_connect(session_); }, until);
  if (answer == SSH_OK) return {};
  if (answer == SSH_AGAIN)
    return login_errors::timed_out(settings.target, "while keys were exchanged");
  const std::string why = error();
  const bool closed = why.find("isconnect") != std::string::npos ||
                      why.find("reset") != std::string::npos ||
                      why.find("closed") != std::string::npos;
  if (closed || why.find("banner") != std::string::npos)
    return login_errors::closed_by_server(settings.target, why);
  return login_errors::other(settings.target, why);
}

std::string Session::fingerprint() const {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(session_, &key) != SSH_OK) return {};
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  std::string text;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) == SSH_OK) {
    char* shown = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
    if (shown != nullptr) text = shown;
    ssh_string_free_char(shown);
    ssh_clean_pubkey_hash(&hash);
  }
  ssh_key_free(key);
  return text;
}

std::string Session::known_hosts_line() const {
  char* line = nullptr;
  if (ssh_session_export_known_hosts_entry(session_, &line) != SSH_OK) return {};
  std::string text = line;
  ssh_string_free_char(line);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<void> Session::check_host_key(const SshSettings& settings) const {
  const std::string file = settings.known_hosts.empty() ? own_known_hosts() : settings.known_hosts;
  const std::string line = known_hosts_line();
  const std::string key = line.substr(line.rfind(' ') + 1);
  std::vector<std::string> files{file};
  if (settings.known_hosts.empty()) files.push_back(kGlobalKnownHosts);
  for (const std::string& each : files) {
    std::ifstream in(each);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    if (is_revoked(text, key))
      return login_errors::revoked_host_key(settings.target, fingerprint(), each);
  }
  switch (ssh_session_is_known_server(session_)) {
    case SSH_KNOWN_HOSTS_OK:
      return {};
    case SSH_KNOWN_HOSTS_CHANGED:
      return login_errors::changed_host_key(settings.target, fingerprint(), file);
    case SSH_KNOWN_HOSTS_OTHER:  // a key of another kind is known
    case SSH_KNOWN_HOSTS_UNKNOWN:
    case SSH_KNOWN_HOSTS_NOT_FOUND:
      // This very key: another connection may find another host.
      return login_errors::unknown_host_key(
          settings.target, fingerprint(),
          "printf '%s\\n' " + shell_quoted(line) + " >> " + shell_quoted(file));
    default:
      return Error{Error::Kind::Rejected, "cannot log in to " + settings.target +
                                              ": the known hosts could not be read from " + file +
                                              ": " + error()};
  }
}

void Session::wait(Deadline until, std::span<pollfd> others) {
  const bool writes = (ssh_get_poll_flags(session_) & SSH_WRITE_PENDING) != 0;
  std::vector<pollfd> waits(others.begin(), others.end());
  waits.push_back(
      {ssh_get_fd(session_), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  const auto most = std::clamp(left, milliseconds{0}, kLookEvery);
  ::poll(waits.data(), waits.size(), static_cast<int>(most.count()));
  std::copy(waits.begin(), waits.end() - 1, others.begin());
}

void Session::listen_anew() {
  heard_before_ = heard_last_ = heard_.in_bytes;
  heard_at_ = knocked_at_ = Clock::now();
}

bool Session::is_alive() {
  if (ssh_is_connected(session_) == 0) return false;
  const auto now = Clock::now();
  if (heard_.in_bytes != heard_last_) {
    heard_last_ = heard_.in_bytes;
    heard_at_ = now;
  }
  if (now - heard_at_ > 3 * keep_alive_) return false;
  if (now - std::max(heard_at_, knocked_at_) > keep_alive_) {
    knocked_at_ = now;
    (void)ssh_send_keepalive(session_);
  }
  return true;
}

Result<Fd> connect_tcp(const std::string& host, int port, const std::string& target,
                       std::chrono::seconds keep_alive_every, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) return login_errors::name_not_known(target, ::gai_strerror(failure));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int left = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) ++left;
  int error = EHOSTUNREACH;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next, --left) {
    // One that does not answer must leave time for the others.
    const auto now = std::chrono::steady_clock::now();
    const Deadline share = now + (deadline - now) / left;
    Fd to(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (to.get() < 0) continue;
    error = connect_one(to, *address, share);
    if (error != 0) continue;
    keep_alive(to.get(), keep_alive_every);
    return to;
  }
  return connect_error(target, error);
}

bool is_closed(ssh_channel channel) {
  return (ssh_channel_is_eof(channel) != 0 || ssh_channel_is_closed(channel) != 0) &&
         ssh_channel_poll(channel, 0) <= 0 && ssh_channel_poll(channel, 1) <= 0;
}

char* Pump::OnTheWay::room(std::size_t most) {
  gone = 0;
  bytes.resize(most);
  return bytes.data();
}

Pump::Pump(Session& session, int near, ssh_channel far, std::string first)
    : session_(session), near_(near), far_(far) {
  to_near_.bytes = std::move(first);
}

void Pump::run() {
  for (;;) {
    take_near();
    if (!give_far()) return;
    take_far();
    if (!give_near()) return;
    if (to_near_.left().empty() && is_closed(far_)) return;
    if (!session_.is_alive() || !wait()) return;
  }
}

void Pump::take_near() {
  if (near_has_ended_ || !to_far_.left().empty()) return;
  const ssize_t n = ::recv(near_, to_far_.room(kMostOnTheWay), kMostOnTheWay, MSG_DONTWAIT);
  to_far_.filled(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) near_has_ended_ = true;
}

bool Pump::give_far() {
  while (!to_far_.left().empty() && ssh_channel_window_size(far_) > 0) {
    const std::string_view left = to_far_.left().substr(0, kPumpedPiece);
    const int n = ssh_channel_write(far_, left.data(), static_cast<std::uint32_t>(left.size()));
    if (n == SSH_ERROR) return false;
    if (n <= 0) break;
    to_far_.gone += static_cast<std::size_t>(n);
  }
  if (near_has_ended_ && to_far_.left().empty() && !eof_is_sent_) {
    ssh_channel_send_eof(far_);
    eof_is_sent_ = true;
  }
  return true;
}

/// What the near end does not take stays in the channel, whose window then closes.
void Pump::take_far() {
  if (!to_near_.left().empty()) return;
  const int n = ssh_channel_read_nonblocking(far_, to_near_.room(kMostOnTheWay), kMostOnTheWay, 0);
  to_near_.filled(n > 0 ? static_cast<std::size_t>(n) : 0);
}

bool Pump::give_near() {
  while (!to_near_.left().empty()) {
    const std::string_view left = to_near_.left();
    const ssize_t n = ::send(near_, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n <= 0) break;
    to_near_.gone += static_cast<std::size_t>(n);
  }
  return true;
}

bool Pump::wait() {
  const bool wants_more = to_far_.left().empty() && !near_has_ended_;
  const int events = (wants_more ? POLLIN : 0) | (to_near_.left().empty() ? 0 : POLLOUT);
  std::array<pollfd, 1> waits{{{near_, static_cast<short>(events), 0}}};
  session_.wait(std::chrono::steady_clock::now() + std::chrono::seconds(1), waits);
  // Nobody reads an answer any more, and a far end that takes nothing would be waited for without
  // end.
  return !(eof_is_sent_ || near_has_ended_) || (waits[0].revents & POLLHUP) == 0;
}

}  // namespace hpcbatch
