#include "api/http/http_server.hpp"

#include "documents/json_numbers.hpp"
#include "documents/texts.hpp"
#include "loop/asio.hpp"
#include "posix/socket_path.hpp"

#include <fmt/format.h>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr mode_t kOwnerOnly = 0600;

Error cannot_listen(const std::string& path, const std::string& why) {
  return {Error::Kind::Rejected, fmt::format("cannot listen on {}: {}", path, why)};
}

Fd new_socket() {
  return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool is_listened_at(const std::string& path) {
  const SocketPath reachable = socket_path(path);
  if (reachable.error != 0) return false;
  const sockaddr_un address = address_of(reachable);
  const Fd client = new_socket();
  // One that has no room for more just now listens too.
  return client && (::connect(client.get(), reinterpret_cast<const sockaddr*>(&address),
                              sizeof address) == 0 ||
                    errno == EAGAIN);
}

}  // namespace

bool is_in_place(const SocketFile& file) {
  struct stat facts {};
  return !file.path.empty() && ::stat(file.path.c_str(), &facts) == 0 &&
         facts.st_dev == file.device && facts.st_ino == file.inode;
}

Result<ListeningSocket> listen_at(const std::string& path) {
  const SocketPath reachable = socket_path(path);
  if (reachable.error != 0) return cannot_listen(path, std::strerror(reachable.error));
  const sockaddr_un address = address_of(reachable);
  ::unlink(path.c_str());
  Fd made = new_socket();
  struct stat facts {};
  // bind(2) gives the file the mode of the socket; the umask would be that of all threads.
  if (!made || ::fchmod(made.get(), kOwnerOnly) != 0 ||
      ::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(made.get(), SOMAXCONN) != 0 || ::stat(path.c_str(), &facts) != 0)
    return cannot_listen(path, std::strerror(errno));
  return ListeningSocket{std::move(made), {path, facts.st_dev, facts.st_ino}};
}

Result<ListeningSocket> listen_again_at(const std::string& path) {
  if (is_listened_at(path)) return cannot_listen(path, "another process listens there");
  return listen_at(path);
}

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using Socket = asio::local::stream_protocol::socket;

// A submit of a hundred thousand tasks is large; nothing else is.
constexpr std::size_t kLittle = std::size_t{1} << 20;
constexpr std::uint64_t kLargestBody = std::uint64_t{256} << 20;
constexpr std::chrono::milliseconds kWhenFull{100};

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto hex = [&](std::size_t at) {
      const char c = text[at];
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    if (text[i] == '%' && i + 2 < text.size() && hex(i + 1) >= 0 && hex(i + 2) >= 0) {
      out += static_cast<char>(hex(i + 1) * 16 + hex(i + 2));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

HttpRequest parsed(http::request<http::string_body> message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  std::string_view target(message.target().data(), message.target().size());
  std::string_view query;
  if (const auto mark = target.find('?'); mark != std::string_view::npos) {
    query = target.substr(mark + 1);
    target = target.substr(0, mark);
  }
  const auto each = [](std::string_view text, char by, auto&& take) {
    while (!text.empty()) {
      const auto end = std::min(text.find(by), text.size());
      if (end != 0) take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  };
  each(target, '/', [&](std::string_view part) { request.path.push_back(decoded(part)); });
  each(query, '&', [&](std::string_view pair) {
    const auto equals = std::min(pair.find('='), pair.size());
    request.query[decoded(pair.substr(0, equals))] =
        equals < pair.size() ? decoded(pair.substr(equals + 1)) : "";
  });
  request.body = std::move(message.body());
  return request;
}

}  // namespace

void HttpReply::error(int status, const std::string& text) {
  answer(status, {{"error", text}});
}

namespace {

/// Kept free for the client that comes when there is no descriptor left.
int spare_descriptor() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace

struct HttpServer::State {
  State(asio::io_context& io, HttpHandler serve, std::size_t most)
      : acceptor(io), pause(io), handler(std::move(serve)), most_clients(most) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (spare >= 0) ::close(spare);
  }
  struct Client {
    virtual void close() = 0;

   protected:
    ~Client() = default;
  };
  asio::local::stream_protocol::acceptor acceptor;
  asio::steady_timer pause;
  HttpHandler handler;
  std::size_t most_clients;
  std::size_t clients{0};    ///< that have a descriptor
  std::list<Client*> quiet;  ///< that we owe nothing, the longest first
  int spare{spare_descriptor()};
  SocketFile file;
  bool is_ending{false};  ///< what is not answered by now goes to the next engine
};

namespace {

/// One client; requests one after another.
class Connection final : public HttpServer::State::Client,
                         public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, std::shared_ptr<HttpServer::State> server)
      : socket_(std::move(socket)), server_(std::move(server)) {
    ++server_->clients;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() { Connection::close(); }

  void read() {
    is_served_ = false;
    quiet_ = server_->quiet.insert(server_->quiet.end(), this);
    parser_.emplace();
    parser_->body_limit(kLargestBody);
    http::async_read(
        socket_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
          self->no_longer_quiet();
          if (!error) return self->serve();
          // What is no HTTP, or more of it than we take, is told; a client that has gone is not.
          if (error == http::error::body_limit)
            return self->refuse(413,
                                fmt::format("a request may have {} MB at most; send it in parts",
                                            kLargestBody >> 20));
          if (error.category() == http::make_error_code(http::error::bad_method).category() &&
              error != http::error::end_of_stream) {
            return self->refuse(400, "this is no HTTP request: " + error.message());
          }
          self->close();
        });
  }

  void close() override {
    if (!std::exchange(open_, false)) return;
    no_longer_quiet();
    --server_->clients;
    error_code ignored;
    socket_.close(ignored);
    when_sent_ = nullptr;
    if (on_gone_) std::exchange(on_gone_, nullptr)();
  }
  bool is_open() const { return open_; }
  std::size_t unsent() const { return unsent_; }
  void on_gone(std::function<void()> then) {
    if (!open_) return;
    on_gone_ = std::move(then);
  }

  void when_sent(std::function<void()> then) {
    if (!open_) return;
    if (unsent_ <= kLittle) return then();
    when_sent_ = std::move(then);
  }

  void send(std::string bytes, bool last) {
    if (!open_) return;
    unsent_ += bytes.size();
    is_served_ = is_served_ || last;
    waiting_.push_back({std::move(bytes), last});
    write();
  }
  bool keep_alive() const { return keep_alive_; }
  bool is_ending() const { return server_->is_ending; }

  void refuse(int status, const std::string& text);

 private:
  struct Piece {
    std::string bytes;
    bool last;
  };
  void serve();
  void no_longer_quiet() {
    if (quiet_) server_->quiet.erase(*quiet_);
    quiet_.reset();
  }
  /// Nobody reads while an answer is made or written: a hang-up is then only seen by waiting for
  /// one.  Who has only said that he sends nothing more waits for his answer.
  void watch() {
    if (!open_ || std::exchange(is_watched_, true)) return;
    socket_.async_wait(Socket::wait_error, [self = shared_from_this()](error_code error) {
      self->is_watched_ = false;
      if (error || !self->open_) return;
      pollfd now{self->socket_.native_handle(), 0, 0};
      if (::poll(&now, 1, 0) == 1 && (now.revents & (POLLHUP | POLLERR)) != 0) self->close();
    });
  }
  void write() {
    if (writing_ || waiting_.empty() || !open_) return;
    writing_ = true;
    asio::async_write(socket_, asio::buffer(waiting_.front().bytes),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        self->writing_ = false;
                        if (error) {
                          self->close();
                          return;
                        }
                        const Piece sent = std::move(self->waiting_.front());
                        self->waiting_.pop_front();
                        self->unsent_ -= sent.bytes.size();
                        if (self->when_sent_ && self->unsent_ <= kLittle)
                          std::exchange(self->when_sent_, nullptr)();
                        if (!sent.last) {
                          self->write();
                        } else if (self->keep_alive_) {
                          self->on_gone_ = nullptr;
                          self->read();
                        } else {
                          self->close();
                        }
                      });
  }

  Socket socket_;
  std::shared_ptr<HttpServer::State> server_;
  std::optional<std::list<HttpServer::State::Client*>::iterator> quiet_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::deque<Piece> waiting_;
  std::size_t unsent_{0};
  bool writing_{false};
  bool open_{true};
  bool keep_alive_{false};
  bool is_served_{false};  ///< all of the answer is handed over
  bool is_watched_{false};
  std::function<void()> on_gone_;
  std::function<void()> when_sent_;
};

std::string head(int status, bool keep_alive, std::string_view type, std::string_view length) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nServer: hpcbatch\r\nContent-Type: {}\r\nConnection: {}\r\n{}\r\n\r\n",
      status,
      std::string(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)))), type,
      keep_alive ? "keep-alive" : "close", length);
}

/// Items, arguments and paths may hold any bytes; JSON holds UTF-8 (RFC 8259, 8.1).
std::string json_text(const boost::json::value& value) {
  return valid_utf8(with_plain_numbers(boost::json::serialize(value))) + "\n";
}

class Reply final : public HttpReply {
 public:
  explicit Reply(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~Reply() override {
    if (done_) return;
    if (connection_->is_ending())
      connection_->close();
    else  // a route that forgot to answer must not leave its client waiting for ever
      error(500, "the engine gave no answer to this request");
  }
  void answer(int status, const boost::json::value& body) override {
    whole(status, "application/json", json_text(body));
  }
  void text(std::string_view type, const std::string& body) override { whole(200, type, body); }
  void line(const boost::json::value& object) override {
    if (done_) return;
    begin();
    const std::string text = json_text(object);
    connection_->send(fmt::format("{:x}\r\n{}\r\n", text.size(), text), false);
  }
  void finish() override {
    if (std::exchange(done_, true)) return;
    begin();
    connection_->send("0\r\n\r\n", true);
  }
  std::size_t unsent() const override { return connection_->unsent(); }
  void when_sent(std::function<void()> then) override { connection_->when_sent(std::move(then)); }
  void on_gone(std::function<void()> then) override { connection_->on_gone(std::move(then)); }

 private:
  void whole(int status, std::string_view type, const std::string& body) {
    if (std::exchange(done_, true)) return;
    connection_->send(head(status, connection_->keep_alive(), type,
                           fmt::format("Content-Length: {}", body.size())) +
                          body,
                      true);
  }
  void begin() {
    if (std::exchange(begun_, true)) return;
    connection_->send(
        head(200, connection_->keep_alive(), "application/x-ndjson", "Transfer-Encoding: chunked"),
        false);
  }
  std::shared_ptr<Connection> connection_;
  bool begun_{false};
  bool done_{false};
};

void Connection::serve() {
  auto message = parser_->release();
  keep_alive_ = message.keep_alive();
  auto reply = std::make_shared<Reply>(shared_from_this());
  try {
    server_->handler(parsed(std::move(message)), reply);
  } catch (const std::exception& e) {
    reply->error(500, fmt::format("the engine failed over this request: {}", e.what()));
  }
  if (!is_served_) watch();
}

/// What follows such a request cannot be understood: it is the connection's last.
void Connection::refuse(int status, const std::string& text) {
  keep_alive_ = false;
  Reply(shared_from_this()).error(status, text);
}

void accept(const std::shared_ptr<HttpServer::State>& state);

bool is_ours(Socket& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

}  // namespace

HttpServer::HttpServer(asio::io_context& loop, HttpHandler handler, std::size_t most_clients)
    : state_(std::make_shared<State>(loop, std::move(handler), most_clients)) {}

HttpServer::~HttpServer() {
  end();
  error_code ignored;
  state_->acceptor.close(ignored);
  state_->pause.cancel();
  if (is_in_place(state_->file)) ::unlink(state_->file.path.c_str());
}

void HttpServer::end() {
  state_->is_ending = true;
}

const SocketFile& HttpServer::file() const {
  return state_->file;
}

std::size_t HttpServer::clients() const {
  return state_->clients;
}

Result<void> HttpServer::listen(const std::string& path) {
  auto made = listen_at(path);
  if (!made) return made.error();
  listen(std::move(*made));
  return {};
}

void HttpServer::listen(ListeningSocket socket) {
  state_->pause.cancel();
  state_->acceptor = asio::local::stream_protocol::acceptor(
      state_->acceptor.get_executor(), asio::local::stream_protocol(), socket.descriptor.release());
  state_->file = std::move(socket.file);
  accept(state_);
}

namespace {

std::string why_full(const HttpServer::State& state) {
  return fmt::format(
      "the engine serves {} clients just now, as many as its limit of open files (ulimit -n) "
      "leaves room for; try again, or end some of those that wait",
      std::min(state.clients, state.most_clients));
}

bool make_room(HttpServer::State& state) {
  if (state.clients < state.most_clients) return true;
  if (state.quiet.empty()) return false;
  state.quiet.front()->close();
  return true;
}

/// Out of descriptors: whoever is at the listener is told so with the one that was kept for it.
void turn_one_away(HttpServer::State& state) {
  if (!state.quiet.empty()) state.quiet.front()->close();
  if (state.spare >= 0) ::close(std::exchange(state.spare, -1));
  const int client =
      ::accept4(state.acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client >= 0) {
    const std::string body =
        boost::json::serialize(boost::json::object{{"error", why_full(state)}}) + "\n";
    const std::string answer =
        head(503, false, "application/json", fmt::format("Content-Length: {}", body.size())) + body;
    (void)!::send(client, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(client);
  }
  if (state.spare < 0) state.spare = spare_descriptor();
}

void accept(const std::shared_ptr<HttpServer::State>& state) {
  state->acceptor.async_accept([state](error_code error, Socket socket) {
    if (error == asio::error::operation_aborted || !state->acceptor.is_open()) return;
    if (error) {
      turn_one_away(*state);
      // Asking again at once would only turn in circles.
      state->pause.expires_after(kWhenFull);
      state->pause.async_wait([state](error_code stopped) {
        if (!stopped && state->acceptor.is_open()) accept(state);
      });
      return;
    }
    if (is_ours(socket)) {
      const bool has_room = make_room(*state);
      const auto client = std::make_shared<Connection>(std::move(socket), state);
      if (has_room)
        client->read();
      else
        client->refuse(503, why_full(*state));
    }
    accept(state);
  });
}

}  // namespace

}  // namespace hpcbatch
