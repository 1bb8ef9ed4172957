// The engine's socket: whatever a client sends gets an answer that is HTTP, or none, and the next client is served.
#include "api/http/http_server.hpp"
#include "api/routes.hpp"
#include "fuzz/harness.hpp"
#include "loop/asio.hpp"

#include <boost/json/parse.hpp>

#include <array>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace hpcbatch::fuzz {
namespace {

/// Answers each request with what it has read of it.
void echo(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  try {
    boost::json::object body{{"method", request.method}, {"size", request.body.size()}};
    for (const std::string& part : request.path) body["path"] = part;
    for (const auto& [name, value] : request.query) body[name] = value;
    body["limit"] = number_in(request, "limit", 7);
    body["offset"] = bytes_in(request, "offset", 0);
    body["wait"] = seconds_in(request, "wait", 0);
    if (text_in(request, "lines").empty()) return reply->answer(200, body);
    reply->line(body);
    reply->finish();
  } catch (const BadRequest& refused) {
    reply->error(400, refused.what());
  }
}

class Served {
 public:
  Served() : server_(loop_, echo) {
    std::string pattern = std::filesystem::temp_directory_path() / "hpcbatch-fuzz-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    check(server_.listen(folder_ + "/socket").has_value(), "the socket can be made");
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() { ::rmdir(folder_.c_str()); }

  /// What a client gets that sends all of it and hangs up its end.
  std::string answer_to(std::string_view bytes) {
    const int client = connected();
    std::string answer;
    bool is_sending = true;
    for (bool has_ended = false; !has_ended;) {
      if (is_sending) {
        const ssize_t put = ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
        is_sending = !bytes.empty() && (put >= 0 || errno == EAGAIN);
        if (!is_sending) ::shutdown(client, SHUT_WR);
      }
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(10));
      loop_.poll();
      std::array<char, 65536> piece{};
      const ssize_t got = ::recv(client, piece.data(), piece.size(), 0);
      if (got > 0) answer.append(piece.data(), static_cast<std::size_t>(got));
      has_ended = got == 0 || (got < 0 && errno != EAGAIN);
    }
    ::close(client);
    loop_.restart();
    loop_.poll();
    check(server_.clients() == 0, "nobody stays who has gone");
    return answer;
  }

 private:
  int connected() const {
    const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/socket";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    check(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
          "the next client gets in");
    return client;
  }

  asio::io_context loop_;
  HttpServer server_;
  std::string folder_;
};

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(http, bytes) {
  static Served served;
  const std::string answer = served.answer_to(bytes);
  check(answer.empty() || answer.starts_with("HTTP/1.1 "), "an answer is HTTP");
  const std::size_t body = answer.find("\r\n\r\n");
  check(answer.empty() || body != std::string::npos, "an answer has a whole head");
  const std::string one = served.answer_to("GET /v1/engine HTTP/1.1\r\nHost: x\r\n\r\n");
  check(one.starts_with("HTTP/1.1 200 "), "the next client is served");
}
