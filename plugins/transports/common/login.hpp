// A way into another machine: what the transports `ssh` and `openssh` each are, and all that the
// rest of a remote transport needs of them.
#pragma once

#include "hpcbatch/transport.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace hpcbatch {

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
  virtual Result<ByteStream> open(const std::string& text, const std::string& input,
                                  const std::string& line, Deadline deadline) = 0;
  virtual void pump(int descriptor) = 0;
  /// Another number after another login.
  virtual std::uint64_t number() const = 0;
  /// Who and where, for errors.
  virtual const std::string& name() const = 0;
};

}  // namespace hpcbatch
