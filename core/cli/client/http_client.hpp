// HTTP over the engine's Unix socket: one connection, calls that end at their deadline or when the
// user interrupts.
#pragma once

#include "posix/files.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
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

namespace hpcbatch::detail {

// A socket as Beast reads from it and writes to it, whose every wait ends at a deadline or by an
// interrupt.

/// The socket must not block.  Waits end at `deadline` (timed_out) or when
/// `interrupt` becomes readable (operation_aborted); Asio's own blocking sockets can do neither.
class TimedStream {
 public:
  TimedStream(Fd socket, int interrupt) : socket_(std::move(socket)), interrupt_(interrupt) {}
  int descriptor() const { return socket_.get(); }
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }
  /// `tell` is called, once, where something is still waited for at that time; none: never.
  void tell_at(std::chrono::steady_clock::time_point time, std::function<void()> tell) {
    tell_at_ = time;
    tell_ = std::move(tell);
  }

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, boost::beast::error_code& error) {
    const boost::asio::mutable_buffer into = first<boost::asio::mutable_buffer>(buffers);
    return transfer(POLLIN, error,
                    [&] { return ::recv(descriptor(), into.data(), into.size(), 0); });
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, boost::beast::error_code& error) {
    const boost::asio::const_buffer from = first<boost::asio::const_buffer>(buffers);
    return transfer(POLLOUT, error,
                    [&] { return ::send(descriptor(), from.data(), from.size(), MSG_NOSIGNAL); });
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    boost::beast::error_code error;
    const std::size_t size = read_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return size;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    boost::beast::error_code error;
    const std::size_t size = write_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return size;
  }

 private:
  template <class Buffer, class Buffers>
  static Buffer first(const Buffers& buffers) {
    for (auto at = boost::asio::buffer_sequence_begin(buffers);
         at != boost::asio::buffer_sequence_end(buffers); ++at) {
      const Buffer buffer(*at);
      if (buffer.size() > 0) return buffer;
    }
    return {};
  }

  template <class Call>
  std::size_t transfer(short direction, boost::beast::error_code& error, const Call& call) {
    error = {};
    for (;;) {
      // Data that never stops coming must not keep an interrupt from being seen.
      if (is_interrupted()) {
        error = boost::asio::error::operation_aborted;
        return 0;
      }
      const ssize_t size = call();
      if (size > 0) return static_cast<std::size_t>(size);
      if (size == 0) {
        if (direction == POLLIN) error = boost::asio::error::eof;
        return 0;
      }
      if (errno == EAGAIN) {
        if (!wait(direction, error)) return 0;
      } else if (errno != EINTR) {
        error = boost::beast::error_code(errno, boost::system::system_category());
        return 0;
      }
    }
  }

  bool is_interrupted() const {
    pollfd signals{interrupt_, POLLIN, 0};
    return interrupt_ >= 0 && ::poll(&signals, 1, 0) > 0;
  }

  bool wait(short direction, boost::beast::error_code& error) {
    const auto now = std::chrono::steady_clock::now();
    if (tell_ && now >= tell_at_) std::exchange(tell_, nullptr)();
    const bool is_told_first = tell_ && tell_at_ < deadline_;
    pollfd ready[] = {{descriptor(), direction, 0}, {interrupt_, POLLIN, 0}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>((is_told_first ? tell_at_ : deadline_) - now)
            .count();
    const int count =
        left <= 0 ? 0 : ::poll(ready, 2, static_cast<int>(std::min<decltype(left)>(left, 1 << 30)));
    if (count < 0 && errno == EINTR) return true;
    if (ready[0].revents != 0 && count > 0) return true;
    if (count == 0 && is_told_first) return true;
    if (count > 0) {
      error = boost::asio::error::operation_aborted;
    } else {
      error = boost::asio::error::timed_out;
    }
    return false;
  }

  Fd socket_;
  int interrupt_;
  std::chrono::steady_clock::time_point deadline_{std::chrono::steady_clock::time_point::max()};
  std::chrono::steady_clock::time_point tell_at_{};
  std::function<void()> tell_;
};

}  // namespace hpcbatch::detail
