#include "web/page_server.hpp"

#include "posix/socket_path.hpp"
#include "web/page_content.hpp"

#include <fmt/format.h>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::web {

const PageFile* page_file(std::string_view name) {
  static constexpr std::array<PageFile, 7> kFiles{{{"/index.html", "text/html", kIndex},
                                                   {"/app.js", "text/javascript", kApp},
                                                   {"/views.js", "text/javascript", kViews},
                                                   {"/style.css", "text/css", kStyle},
                                                   {"/icon.svg", "image/svg+xml", kIcon},
                                                   {"/uplot.js", "text/javascript", kPlot},
                                                   {"/uplot.css", "text/css", kPlotStyle}}};
  const auto found = std::find_if(kFiles.begin(), kFiles.end(),
                                  [&](const PageFile& file) { return file.name == name; });
  return found == kFiles.end() ? nullptr : &*found;
}

namespace {

namespace http = boost::beast::http;
namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLargestBody = std::uint64_t{256} << 10U;
constexpr std::uint32_t kLargestHead = 16 * 1024;
/// For the head of a request, and for each piece of an answer to be taken.
constexpr auto kPatience = 10s;
constexpr auto kKeptAlive = 60s;
constexpr auto kAnswerTime = 30s;
/// A proxy on the way hangs up on a stream that says nothing for a minute.
constexpr auto kAlive = 15s;
constexpr mode_t kOwnerOnly = 0600;

/// No page but ours, no code but what comes in our files, and nothing kept on the disk.
constexpr std::string_view kSafe =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n";

std::string sentence(const std::string& text) {
  return json::serialize(json::object{{"error", text}});
}

/// What came, as the gate looks at it.
Asked asked_of(const http::request<http::string_body>& request) {
  const auto field = [&](auto name) { return std::string(request[name]); };
  return {
      std::string(request.method_string()), std::string(request.target()), field(http::field::host),
      field(http::field::origin),           field(http::field::cookie),    field("X-Hpcbatch"),
      field(http::field::authorization)};
}

/// One browser's connection; requests one after another.
class Visitor {
 public:
  Visitor(Fd socket, Gate& gate, std::mutex& gate_mutex, Watcher& watcher,
          const std::vector<std::string>& engine, int interrupt)
      : stream_(std::move(socket), interrupt),
        gate_(gate),
        gate_mutex_(gate_mutex),
        watcher_(watcher),
        engine_(engine, interrupt) {}

  void serve() {
    for (bool is_first = true; read(is_first); is_first = false) {
      const Decision decision = decide();
      if (!answer(decision) || !keep_alive_) return;
    }
  }

 private:
  bool read(bool is_first) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(kLargestBody);
    parser.header_limit(kLargestHead);
    stream_.set_deadline(Clock::now() + (is_first ? std::chrono::seconds(kPatience) : kKeptAlive));
    boost::beast::error_code error;
    http::read(stream_, buffer_, parser, error);
    if (error) return false;
    request_ = parser.release();
    keep_alive_ = request_.keep_alive();
    return true;
  }

  Decision decide() {
    const std::lock_guard lock(gate_mutex_);
    return gate_.decide(asked_of(request_));
  }

  bool answer(const Decision& decision) {
    switch (decision.kind) {
      case Decision::Kind::Refuse:
        keep_alive_ = false;
        return send(decision.status, "application/json", "", sentence(decision.text));
      case Decision::Kind::Admit:
        return send(decision.status, "text/plain",
                    "Set-Cookie: " + decision.text +
                        "; Path=/; HttpOnly; SameSite=Strict\r\nLocation: /\r\n",
                    "");
      case Decision::Kind::File:
        return send_file(decision.text);
      case Decision::Kind::Live:
        return send_changes();
      case Decision::Kind::Engine:
        return send_engines(decision.text);
    }
    return false;
  }

  bool send_file(const std::string& name) {
    const PageFile* file = page_file(name);
    if (!file) return send(404, "application/json", "", sentence("there is nothing here"));
    return send(200, file->type, "", file->content);
  }

  /// As server-sent events (HTML, 9.2), until the browser or this program goes.
  bool send_changes() {
    const Watcher::Page page(watcher_);
    if (!write(head(200, "text/event-stream", "X-Accel-Buffering: no\r\n"))) return false;
    std::uint64_t version = 0;
    for (;;) {
      const auto change = watcher_.change_since(version, kAlive);
      if (change) version = change->version;
      if (!write(change ? "data: " + change->text + "\n\n" : ": alive\n\n")) return false;
    }
  }

  bool send_engines(const std::string& target) {
    if (target.find("follow=1") != target.npos) return send_lines(target);
    const Answer answer = engine_.request(std::string(request_.method_string()), target,
                                          request_.body(), kAnswerTime);
    if (answer.outcome == Exchange::Answered) {
      // The engine's only answer that is not JSON; `head` says in which letters it is written.
      const bool is_metrics = target == "/v1/metrics" && answer.status == 200;
      return send(answer.status, is_metrics ? "text/plain; version=0.0.4" : "application/json", "",
                  answer.body);
    }
    engine_.disconnect();
    return send_failure(answer);
  }

  bool send_failure(const Answer& failure) {
    if (failure.outcome == Exchange::Answered)
      return send(failure.status, "application/json", "", failure.body);
    return send(502, "application/json", "",
                sentence("the engine does not answer: " + failure.error));
  }

  bool send_lines(const std::string& target) {
    keep_alive_ = false;
    const auto lines = engine_.follow(target);
    LineStream::Next next = lines->next(kAlive);
    if (next.kind == LineStream::Next::Kind::Failed) return send_failure(next.failure);
    if (!write(head(200, "application/x-ndjson", "X-Accel-Buffering: no\r\n"))) return false;
    for (;; next = lines->next(kAlive)) {
      if (next.kind == LineStream::Next::Kind::End || next.kind == LineStream::Next::Kind::Failed)
        return false;
      // An empty line is what shows that the browser has gone.
      if (!write(next.line + "\n")) return false;
    }
  }

  std::string head(int status, std::string_view type, std::string_view more) const {
    return fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}; charset=utf-8\r\nConnection: {}\r\n{}{}\r\n", status,
        std::string(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)))),
        type, keep_alive_ ? "keep-alive" : "close", kSafe, more);
  }

  bool send(int status, std::string_view type, std::string_view more, std::string_view body) {
    const std::string begin =
        head(status, type, fmt::format("Content-Length: {}\r\n{}", body.size(), more));
    return write(begin) && write(body);
  }

  bool write(std::string_view bytes) {
    boost::beast::error_code error;
    while (!bytes.empty()) {
      stream_.set_deadline(Clock::now() + kPatience);
      const std::size_t size =
          stream_.write_some(boost::asio::buffer(bytes.data(), bytes.size()), error);
      if (error) return false;
      bytes.remove_prefix(size);
    }
    return true;
  }

  detail::TimedStream stream_;
  Gate& gate_;
  std::mutex& gate_mutex_;
  Watcher& watcher_;
  HttpClient engine_;
  boost::beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  bool keep_alive_{false};
};

[[noreturn]] void cannot_listen(const std::string& where) {
  throw std::runtime_error("cannot listen on " + where + ": " + std::strerror(errno));
}

void send_away(int socket) {
  constexpr std::string_view kFull =
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  ::send(socket, kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Listening listen_on_loopback(std::uint16_t port) {
  const std::string where = "127.0.0.1:" + std::to_string(port);
  Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (!made || ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(made.get(), SOMAXCONN) != 0 ||
      ::getsockname(made.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    cannot_listen(where);
  return {std::move(made), ntohs(address.sin_port)};
}

Listening listen_on_socket(const std::string& path) {
  const SocketPath reachable = socket_path(path);
  errno = reachable.error;
  if (reachable.error != 0) cannot_listen(path);
  const sockaddr_un address = address_of(reachable);
  const auto* const place = reinterpret_cast<const sockaddr*>(&address);
  Fd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A socket that nobody listens at any more is replaced; whatever else is there stays.
  if (made && ::connect(made.get(), place, sizeof address) == 0) errno = EADDRINUSE;
  if (errno != ENOENT) {
    const int why = errno;
    struct stat there {};
    const bool is_left = why == ECONNREFUSED && ::lstat(path.c_str(), &there) == 0 &&
                         S_ISSOCK(there.st_mode) && ::unlink(path.c_str()) == 0;
    errno = why == ECONNREFUSED ? EEXIST : why;
    if (!is_left) cannot_listen(path);
  }
  made = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // bind(2) gives the file the mode of the socket.
  if (!made || ::fchmod(made.get(), kOwnerOnly) != 0 ||
      ::bind(made.get(), place, sizeof address) != 0 || ::listen(made.get(), SOMAXCONN) != 0)
    cannot_listen(path);
  return {std::move(made), 0};
}

void serve_pages(const Fd& listener, Gate& gate, Watcher& watcher,
                 const std::vector<std::string>& engine, int interrupt) {
  std::mutex gate_mutex;
  std::atomic<int> connections{0};
  for (;;) {
    pollfd ready[] = {{listener.get(), POLLIN, 0}, {interrupt, POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) break;
    if (ready[1].revents != 0) break;
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Without a descriptor left the same connection is ready again at once.
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(100ms);
      continue;
    }
    if (connections >= kMostConnections) {
      send_away(socket.get());
      continue;
    }
    ++connections;
    const int descriptor = socket.get();
    std::shared_ptr<Visitor> visitor;
    try {
      visitor = std::make_shared<Visitor>(std::move(socket), gate, gate_mutex, watcher, engine,
                                          interrupt);
      std::thread([&connections, visitor]() mutable {
        try {
          visitor->serve();
        } catch (const std::exception&) {
          // Its connection ends; the others go on.
        }
        visitor.reset();
        --connections;
      }).detach();
    } catch (const std::exception&) {  // no thread or no memory is left for it
      send_away(descriptor);
      --connections;
    }
  }
  // They hear of the interrupt as well, and use what ends with this function.
  while (connections > 0) std::this_thread::sleep_for(5ms);
}

}  // namespace hpcbatch::web
