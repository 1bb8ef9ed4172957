// HTTP over the engine's Unix socket: one connection, calls that end at their deadline or when the
// user interrupts.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace hpcbatch {

/// How an exchange with the engine went.
enum class Exchange {
  Answered,  ///< with whatever status
  NoEngine,  ///< nobody listens there
  Refused,   ///< somebody listens whom we may not or do not trust; `error` says who
  Lost,      ///< the connection broke: what was asked may or may not have happened
  TimedOut,
  Interrupted,  ///< the interrupt descriptor became readable
};

struct Answer {
  Exchange outcome{Exchange::Answered};
  int status{0};
  std::string body;
  std::string error;  ///< one sentence where there is no answer
};

/// An answer that comes line by line for as long as the engine has something to say.
class LineStream {
 public:
  struct Next {
    enum class Kind { Line, Idle, End, Failed };
    Kind kind{Kind::End};
    std::string line;  ///< without its newline
    Answer failure;    ///< of Failed: Lost, Interrupted, or an answer with a status that is not 200
  };
  virtual ~LineStream() = default;
  /// Waits at most `time`, then says Idle.  After Interrupted it may be called again.
  virtual Next next(std::chrono::milliseconds time) = 0;
};

/// One thread.  Connects on first use and again when needed.
class HttpClient {
 public:
  /// `sockets` are tried in order; their paths may be longer than a socket address holds.
  /// `interrupt`: see Exchange; -1 for none.
  HttpClient(std::vector<std::string> sockets, int interrupt);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// `tell` is called for each request that has no answer after `time`, with its method and target.
  void when_slow(std::chrono::milliseconds time,
                 std::function<void(std::string_view method, const std::string& target)> tell);

  /// Answered when connected; status and body stay empty.
  Answer connect();
  void disconnect();
  Answer request(std::string_view method, const std::string& target, std::string_view body,
                 std::chrono::milliseconds time);
  /// A GET on the same connection, which carries nothing else while the stream lives.  The client
  /// must outlive it.
  std::unique_ptr<LineStream> follow(const std::string& target);
  /// The process on the other side, as this machine numbers it; 0 where not connected.
  pid_t peer() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// For one part of a target: everything but letters, digits and `-_.~` as %XX.
std::string encode_part(std::string_view text);

}  // namespace hpcbatch
