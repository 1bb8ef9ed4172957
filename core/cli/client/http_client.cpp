#include "cli/client/http_client.hpp"

#include "cli/process/process.hpp"
#include "posix/files.hpp"
#include "posix/socket_path.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace hpcbatch {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;
using detail::TimedStream;
using Clock = std::chrono::steady_clock;

struct Connected {
  Fd socket;                ///< does not block
  int error{0};             ///< errno where there is none
  bool is_anothers{false};  ///< somebody else's process listens there: not connected
};

/// The engine reads its connections quickly; a full backlog is a matter of milliseconds.
constexpr std::chrono::milliseconds kRetryAfter{10};

bool is_our_users(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

/// Gives up at `deadline` (ETIMEDOUT) or when `interrupt` becomes readable (EINTR).
Connected connect_unix(const std::string& path, std::chrono::steady_clock::time_point deadline,
                       int interrupt) {
  const SocketPath reachable = socket_path(path);
  if (reachable.error != 0) return {{}, reachable.error};
  const sockaddr_un address = address_of(reachable);

  Fd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection) return {{}, errno};
  while (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
         0) {
    if (errno != EAGAIN && errno != EINTR) return {{}, errno};
    if (std::chrono::steady_clock::now() >= deadline) return {{}, ETIMEDOUT};
    pollfd signals{interrupt, POLLIN, 0};
    if (::poll(&signals, 1, static_cast<int>(kRetryAfter.count())) > 0) return {{}, EINTR};
  }
  if (!is_our_users(connection.get())) return {{}, EACCES, true};
  return {std::move(connection), 0};
}

constexpr std::chrono::seconds kConnectTime{5};
constexpr std::size_t kPiece = 65'536;

Answer failure_of(const error_code& error) {
  if (error == asio::error::operation_aborted) return {Exchange::Interrupted, 0, {}, "interrupted"};
  if (error == asio::error::timed_out)
    return {Exchange::TimedOut, 0, {}, "the engine did not answer in time"};
  const bool closed = error == asio::error::eof || error == http::error::end_of_stream ||
                      error == http::error::partial_message;
  return {Exchange::Lost,
          0,
          {},
          "the connection to the engine broke: " +
              (closed ? "it closed the connection" : error.message())};
}

std::string late_text(pid_t engine, std::string_view method, const std::string& target,
                      std::chrono::milliseconds time) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(time).count();
  return "the engine (process " + std::to_string(engine) + ") has not answered " +
         std::string(method) + " " + target + " within " + std::to_string(seconds) +
         " s; `hpcbatch doctor` says what is wrong with it";
}

http::request<http::string_body> request_of(std::string_view method, const std::string& target,
                                            std::string_view body) {
  http::request<http::string_body> request;
  request.version(11);
  request.method_string({method.data(), method.size()});
  request.target(target);
  request.set(http::field::host, "hpcbatch");
  if (method != "GET") {
    request.body() = body;
    request.prepare_payload();
  }
  return request;
}

/// Reads one answer in pieces as they come.
class Reading {
 public:
  explicit Reading(boost::beast::flat_buffer& buffer) : buffer_(buffer) {
    parser_.body_limit(boost::none);
  }

  /// Adds what came to `body`, at least something unless the answer is complete or `error` is set.
  void read_some(TimedStream& stream, std::string& body, error_code& error) {
    if (!parser_.is_header_done()) {
      http::read_header(stream, buffer_, parser_, error);
      // An answer without a body is complete here, and more is never coming.
      if (error || parser_.is_done()) return;
    }
    piece_.resize(kPiece);
    parser_.get().body().data = piece_.data();
    parser_.get().body().size = piece_.size();
    http::read_some(stream, buffer_, parser_, error);
    if (error == http::error::need_buffer) error = {};
    body.append(piece_.data(), piece_.size() - parser_.get().body().size);
  }
  bool is_done() const { return parser_.is_done(); }
  bool keep_alive() const { return parser_.keep_alive(); }
  bool has_header() const { return parser_.is_header_done(); }
  bool has_begun() const { return parser_.got_some(); }
  int status() { return static_cast<int>(parser_.get().result_int()); }

 private:
  boost::beast::flat_buffer& buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::string piece_;
};

class FollowedLines final : public LineStream {
 public:
  FollowedLines(TimedStream& stream, boost::beast::flat_buffer& buffer)
      : stream_(stream), reading_(buffer) {}

  Next next(std::chrono::milliseconds time) override {
    stream_.set_deadline(Clock::now() + time);
    for (;;) {
      const bool is_ours = reading_.has_header() && reading_.status() == 200;
      const std::size_t newline = is_ours ? text_.find('\n', looked_at_) : std::string::npos;
      if (newline != std::string::npos) {
        Next line{Next::Kind::Line, text_.substr(begin_, newline - begin_), {}};
        begin_ = looked_at_ = newline + 1;
        return line;
      }
      if (reading_.has_header() && reading_.is_done()) return last();
      text_.erase(0, begin_);
      begin_ = 0;
      looked_at_ = text_.size();
      error_code error;
      reading_.read_some(stream_, text_, error);
      if (error == asio::error::timed_out) return {Next::Kind::Idle, {}, {}};
      if (error) return {Next::Kind::Failed, {}, failure_of(error)};
    }
  }

 private:
  Next last() {
    if (reading_.status() == 200) return {Next::Kind::End, {}, {}};
    return {Next::Kind::Failed, {}, {Exchange::Answered, reading_.status(), text_, {}}};
  }

  TimedStream& stream_;
  Reading reading_;
  std::string text_;
  std::size_t begin_{0};
  std::size_t looked_at_{0};
};

/// A follow whose request could not even be sent: says so once, and nothing more comes.
class FailedLines final : public LineStream {
 public:
  explicit FailedLines(Answer failure) : failure_(std::move(failure)) {}
  Next next(std::chrono::milliseconds) override {
    if (std::exchange(is_told_, true)) return {Next::Kind::End, {}, {}};
    return {Next::Kind::Failed, {}, failure_};
  }

 private:
  Answer failure_;
  bool is_told_{false};
};

}  // namespace

struct HttpClient::Parts {
  std::vector<std::string> sockets;
  int interrupt{-1};
  std::optional<TimedStream> stream;
  boost::beast::flat_buffer buffer;
  bool was_used{
      false};  ///< the connection has carried an exchange: its other end may have closed it since
  std::chrono::milliseconds slow_after{0};
  std::function<void(std::string_view, const std::string&)> tell_slow{};
};

HttpClient::HttpClient(std::vector<std::string> sockets, int interrupt)
    : parts_(std::make_unique<Parts>(Parts{std::move(sockets), interrupt, {}, {}, false, {}, {}})) {
}

HttpClient::~HttpClient() = default;

void HttpClient::disconnect() {
  parts_->stream.reset();
  parts_->buffer.clear();
  parts_->was_used = false;
}

void HttpClient::when_slow(
    std::chrono::milliseconds time,
    std::function<void(std::string_view method, const std::string& target)> tell) {
  parts_->slow_after = time;
  parts_->tell_slow = std::move(tell);
}

Answer HttpClient::connect() {
  if (parts_->stream) return {};
  Answer first;
  for (const std::string& path : parts_->sockets) {
    const SlowNote note("the socket " + path + ": its file system gives no answer");
    Connected connected = connect_unix(path, Clock::now() + kConnectTime, parts_->interrupt);
    if (connected.socket) {
      parts_->stream.emplace(std::move(connected.socket), parts_->interrupt);
      return {};
    }
    if (connected.error == EINTR) return {Exchange::Interrupted, 0, {}, "interrupted"};
    if (connected.is_anothers) {
      return {Exchange::Refused,
              0,
              {},
              "cannot use the socket " + path + ": another user's process listens there"};
    }
    const bool nobody =
        connected.error == ENOENT || connected.error == ECONNREFUSED || connected.error == ENOTDIR;
    if (first.error.empty()) {
      first = {nobody ? Exchange::NoEngine : Exchange::Refused,
               0,
               {},
               "cannot connect to the engine at " + path + ": " + std::strerror(connected.error)};
    }
  }
  return first;
}

Answer HttpClient::request(std::string_view method, const std::string& target,
                           std::string_view body, std::chrono::milliseconds time) {
  const Clock::time_point begin = Clock::now();
  const Clock::time_point deadline = begin + time;
  const auto message = request_of(method, target, body);
  for (;;) {
    if (Answer connected = connect(); connected.outcome != Exchange::Answered) return connected;
    const bool was_used = std::exchange(parts_->was_used, true);
    parts_->stream->set_deadline(deadline);
    if (parts_->tell_slow)
      parts_->stream->tell_at(begin + parts_->slow_after,
                              [&] { parts_->tell_slow(method, target); });
    Reading reading(parts_->buffer);
    Answer answer;
    error_code error;
    http::write(*parts_->stream, message, error);
    // An engine that refuses a request before it has read all of it says why and closes.
    if (error == asio::error::broken_pipe || error == asio::error::connection_reset) error = {};
    while (!error && !(reading.has_header() && reading.is_done())) {
      reading.read_some(*parts_->stream, answer.body, error);
    }
    parts_->stream->tell_at({}, nullptr);
    if (!error) {
      answer.status = reading.status();
      if (!reading.keep_alive()) disconnect();
      return answer;
    }
    const bool had_begun = reading.has_begun();
    const pid_t asked = peer();
    disconnect();
    Answer failure = failure_of(error);
    if (failure.outcome == Exchange::TimedOut)
      failure.error = late_text(asked, method, target, time);
    const bool was_stale = failure.outcome == Exchange::Lost && was_used && !had_begun;
    if (!was_stale) return failure;
  }
}

std::unique_ptr<LineStream> HttpClient::follow(const std::string& target) {
  const auto message = request_of("GET", target, {});
  for (;;) {
    if (Answer connected = connect(); connected.outcome != Exchange::Answered) {
      return std::make_unique<FailedLines>(std::move(connected));
    }
    const bool was_used = std::exchange(parts_->was_used, true);
    parts_->stream->set_deadline(Clock::now() + kConnectTime);
    error_code error;
    http::write(*parts_->stream, message, error);
    if (!error) return std::make_unique<FollowedLines>(*parts_->stream, parts_->buffer);
    disconnect();
    if (!was_used) return std::make_unique<FailedLines>(failure_of(error));
  }
}

pid_t HttpClient::peer() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!parts_->stream ||
      ::getsockopt(parts_->stream->descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return 0;
  }
  return peer.pid;
}

std::string encode_part(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                       (byte >= 'A' && byte <= 'Z') || letter == '-' || letter == '_' ||
                       letter == '.' || letter == '~';
    if (plain) {
      out += letter;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

}  // namespace hpcbatch
