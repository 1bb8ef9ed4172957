#include "library_login.hpp"

#include "../common/login.hpp"
#include "../common/process.hpp"
#include "../common/remote_transport.hpp"
#include "session.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace hpcbatch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = 64u << 10;
constexpr std::chrono::milliseconds kUntilFree{1000};
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::chrono::milliseconds kFlush{100};

/// Takes what is there; false where the connection is lost.
bool drain(ssh_channel channel, Exchange& exchange) {
  std::array<char, kPiece> buffer;
  for (const Stream stream : {Stream::Output, Stream::Error}) {
    for (;;) {
      const int n = ssh_channel_read_nonblocking(channel, buffer.data(), buffer.size(),
                                                 stream == Stream::Error ? 1 : 0);
      if (n == SSH_ERROR) return false;
      if (n <= 0) break;
      exchange.received(stream, {buffer.data(), static_cast<std::size_t>(n)});
      if (exchange.is_over()) return true;
    }
  }
  return true;
}

/// As much as the far side's window takes; false where the connection is lost.
bool feed(ssh_channel channel, Exchange& exchange) {
  for (;;) {
    const auto bytes = exchange.to_send().substr(0, kPiece);
    if (bytes.empty() || ssh_channel_window_size(channel) == 0) return true;
    const int n =
        ssh_channel_write(channel, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
    if (n == SSH_ERROR) return false;
    if (n <= 0) return true;
    exchange.sent(static_cast<std::size_t>(n));
  }
}

/// Sends a script and waits for one line; the input stays open.
class Opening final : public Exchange {
 public:
  Opening(const std::string& input, const std::string& line) : input_(input), line_(line) {}
  std::string_view to_send() override { return input_; }
  void sent(std::size_t bytes) override { input_.remove_prefix(bytes); }
  bool all_sent() const override { return false; }
  void received(Stream stream, std::string_view bytes) override {
    if (stream == Stream::Output) said_.append(bytes);
  }
  bool is_over() const override { return said_.find(line_) != std::string::npos; }
  std::string rest() const { return said_.substr(said_.find(line_) + line_.size()); }
  const std::string& said() const { return said_; }

 private:
  std::string_view input_;
  const std::string& line_;
  std::string said_;
};

}  // namespace

LibraryLogin::~LibraryLogin() {
  for (Talk& talk : talks_) {
    {
      const std::lock_guard lock(talk.mutex);
      if (talk.ours) ::shutdown(talk.ours.get(), SHUT_RDWR);
    }
    talk.thread.join();
  }
}

Result<void> LibraryLogin::be_logged_in(Deadline deadline) {
  if (session_ && ssh_is_connected(session_->get()) != 0) return {};
  session_.reset();
  const auto now = Clock::now();
  if (auto pause = back_off_.pause(now)) return *pause;
  auto session = Session::log_in(settings_, deadline);
  if (!session) {
    back_off_.failed(session.error(), Clock::now());
    return session.error();
  }
  back_off_.succeeded();
  session_ = std::move(*session);
  ++logins_;
  return {};
}

LibraryLogin::Opened LibraryLogin::try_channel(const std::string& text, Deadline deadline) {
  session_->listen_anew();
  Channel channel(ssh_channel_new(session_->get()));
  if (!channel) return {login_errors::other(name(), session_->error())};
  int answer = session_->finish([&] { return ssh_channel_open_session(channel.get()); }, deadline);
  if (answer == SSH_ERROR && ssh_is_connected(session_->get()) != 0)
    return {login_errors::channel_refused(name(), session_->error()), true};
  if (answer == SSH_OK) {
    answer = session_->finish([&] { return ssh_channel_request_exec(channel.get(), text.c_str()); },
                              deadline);
  }
  if (answer == SSH_OK) return {std::move(channel)};
  if (answer == SSH_AGAIN)
    return {Error{Error::Kind::Transient, name() + " did not answer before the deadline"}};
  return {login_errors::lost(name(), session_->error())};
}

/// A server of few sessions (MaxSessions) may not have seen yet that the last one is over.
LibraryLogin::Opened LibraryLogin::try_until_free(const std::string& text, Deadline deadline) {
  // A login of its own, where it comes to that, takes time as well.
  const auto now = Clock::now();
  const Deadline patience = std::min<Deadline>(
      now + std::max<Clock::duration>((deadline - now) / 3, {}), now + kUntilFree);
  Opened opened = try_channel(text, deadline);
  while (opened.is_refused && Clock::now() < patience) {
    session_->wait(std::min(patience, Clock::now() + kLookAgain));
    opened = try_channel(text, deadline);
  }
  return opened;
}

Result<Channel> LibraryLogin::open_on_new_login(const std::string& text, Deadline deadline) {
  session_.reset();
  if (auto in = be_logged_in(deadline); !in) return in.error();
  return try_channel(text, deadline).channel;
}

Result<Channel> LibraryLogin::open_channel(const std::string& text, Deadline deadline) {
  forget_ended();
  const bool is_old = session_ != nullptr;
  if (auto in = be_logged_in(deadline); !in) return in.error();
  Opened opened = is_old ? try_until_free(text, deadline) : try_channel(text, deadline);
  if (opened.channel) return std::move(opened.channel);
  // What still runs there holds its place; in a login of its own a command has one.
  if (opened.is_refused && is_old) return open_on_new_login(text, deadline);
  const bool is_lost = ssh_is_connected(session_->get()) == 0;
  const bool is_silent = !session_->was_heard() && Clock::now() >= deadline;
  if (is_lost || is_silent) session_.reset();
  // A connection that was lost while nobody looked: nothing of this call has been sent.
  if (!is_lost || !is_old) return std::move(opened.channel);
  return open_on_new_login(text, deadline);
}

/// What hangs there is ended by the server: a start file that hangs keeps out the command that
/// would say who is to be killed.  Servers that know no signals (OpenSSH before 7.9) take no harm.
void LibraryLogin::end_there(ssh_channel channel) {
  ssh_channel_request_send_signal(channel, "KILL");
  ssh_blocking_flush(session_->get(), static_cast<int>(kFlush.count()));
}

Result<Ending> LibraryLogin::carry(ssh_channel channel, Exchange& exchange, Deadline deadline) {
  bool eof_is_sent = false;
  for (;;) {
    const bool flows =
        feed(channel, exchange) && drain(channel, exchange) && feed(channel, exchange);
    if (exchange.is_over()) return Ending::Over;
    if (!eof_is_sent && exchange.all_sent()) {
      ssh_channel_send_eof(channel);
      eof_is_sent = true;
    }
    if (!session_->is_alive()) return login_errors::lost(name(), session_->error());
    if (!flows || is_closed(channel)) return Ending::Closed;
    if (Clock::now() >= deadline) {
      end_there(channel);
      return Ending::TimedOut;
    }
    session_->wait(deadline);
  }
}

Result<Ending> LibraryLogin::exec(const std::string& text, Exchange& exchange, Deadline deadline) {
  auto channel = open_channel(text, deadline);
  if (!channel) return channel.error();
  auto ending = carry(channel->get(), exchange, deadline);
  channel->reset();
  // One that said nothing at all in this call will say nothing in the next.
  if (!ending || (*ending == Ending::TimedOut && !session_->was_heard())) session_.reset();
  return ending;
}

Result<int> LibraryLogin::open(const std::string& text, const std::string& input,
                               const std::string& line, Deadline deadline) {
  auto channel = open_channel(text, deadline);
  if (!channel) return channel.error();
  Opening opening(input, line);
  const auto ending = carry(channel->get(), opening, deadline);
  if (!ending) {
    channel->reset();
    session_.reset();
    return ending.error();
  }
  if (*ending != Ending::Over) {
    return Error{
        Error::Kind::Transient,
        "cannot open a stream to " + name() +
            (*ending == Ending::TimedOut ? ": it did not answer before the deadline"
                                         : ": the login shell there did not run it; it said: " +
                                               opening.said().substr(0, 300))};
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{Error::Kind::Transient,
                 std::string("cannot make a socket pair: ") + std::strerror(errno)};
  Talk& talk = talks_.emplace_back();
  talk.ours = Fd(ends[1]);
  // The library's session is of one thread: the next call logs in anew.
  talk.thread = std::thread([&talk, session = std::move(session_), channel = std::move(*channel),
                             first = opening.rest()]() mutable {
    session->listen_anew();
    Pump(*session, talk.ours.get(), channel.get(), std::move(first)).run();
    channel.reset();
    session.reset();
    const std::lock_guard lock(talk.mutex);
    talk.ours.reset();
    talk.is_over = true;
  });
  return ends[0];
}

void LibraryLogin::forget_ended() {
  talks_.remove_if([](Talk& talk) {
    if (talk.is_over) talk.thread.join();
    return !talk.thread.joinable();
  });
}

}  // namespace hpcbatch

// Transport `ssh`: another machine, by libssh and with a key that needs nobody to type.
//
//   host: login.example.org
//   user: me
//   identity: ~/.ssh/id_ed25519

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

HPCBATCH_TRANSPORT(hpcbatch::Ssh, "ssh", "2.0");
