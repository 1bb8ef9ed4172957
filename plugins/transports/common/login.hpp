// A way into another machine, what a login that failed is called, and how long none is tried
// after it.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/transport.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace hpcbatch {

// A way into another machine: what the transports `ssh` and `openssh` each are, and all that the
// rest of a remote transport needs of them.

enum class Stream : std::uint8_t { Output, Error };

/// What one command on the far side is given and what it says, as it flows.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  /// The bytes to send next; nothing while an answer is waited for, or when all is sent.
  virtual std::string_view to_send() = 0;
  virtual void sent(std::size_t bytes) = 0;
  virtual bool all_sent() const = 0;
  virtual void received(Stream stream, std::string_view bytes) = 0;
  /// Nothing more needs to be waited for, whether or not the far side is done.
  virtual bool is_over() const = 0;
};

enum class Ending : std::uint8_t {
  Over,      ///< the exchange said so
  Closed,    ///< the far side has ended
  TimedOut,  ///< the deadline passed
};

/// Logs in when it is first needed and again after the connection was lost.
class Login {
 public:
  Login() = default;
  Login(const Login&) = delete;
  Login& operator=(const Login&) = delete;
  virtual ~Login() = default;

  /// Gives the text to the far user's login shell.  `Rejected` says that nothing of it ran.
  virtual Result<Ending> exec(const std::string& text, Exchange& exchange, Deadline deadline) = 0;
  /// As `exec`; what comes and goes after `line`, which ends with a newline, is the stream.
  virtual Result<int> open(const std::string& text, const std::string& input,
                           const std::string& line, Deadline deadline) = 0;
  /// Another number after another login.
  virtual std::uint64_t number() const = 0;
  /// Who and where, for errors.
  virtual const std::string& name() const = 0;
};

}  // namespace hpcbatch

namespace hpcbatch::login_errors {

// What a login that failed is called: the same words whichever program tried it.

/// `target` is USER@HOST or HOST; what is unknown of the rest is empty.
Error unknown_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& remedy);
Error changed_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& file);
Error revoked_host_key(const std::string& target, const std::string& fingerprint,
                       const std::string& file);
Error not_let_in(const std::string& target, const std::string& tried, const std::string& offered,
                 const std::string& remedy);
Error needs_person(const std::string& target, const std::string& offered,
                   const std::string& remedy);
Error key_too_open(const std::string& file);
Error name_not_known(const std::string& target, const std::string& why);
Error refused(const std::string& target);
Error timed_out(const std::string& target, const std::string& while_doing);
Error no_route(const std::string& target, const std::string& why);
Error closed_by_server(const std::string& target, const std::string& why);
Error channel_refused(const std::string& target, const std::string& why);
/// `own`: why the login that was tried in its place failed.
Error shared_is_full(const std::string& target, const std::string& why, const Error& own);
Error not_through_jump(const std::string& target, const std::string& why);
Error lost(const std::string& target, const std::string& why);
Error other(const std::string& target, const std::string& why);

}  // namespace hpcbatch::login_errors

namespace hpcbatch {

// After a login that failed no other is tried for a while: sites lock accounts that knock too
// often.

/// Pauses from one second to a minute, of what was refused to ten, each about twice the last.
class BackOff {
 public:
  using Clock = std::chrono::steady_clock;

  void failed(const Error& error, Clock::time_point now);
  void succeeded() { failures_ = 0; }
  /// What to say instead of trying.
  std::optional<Error> pause(Clock::time_point now) const;

 private:
  unsigned failures_{0};
  Clock::time_point until_{};
  std::string reason_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace hpcbatch
