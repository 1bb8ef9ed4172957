// The engine's socket: what is no request we take is answered, and running out of descriptors is
// outlived.
#include "api/http_server.hpp"
#include "runtime/asio.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct HttpServerTest : testing::Test {
  HttpServerTest() {
    std::string name = testing::TempDir() + "/hpcbatch_XXXXXX";
    folder = ::mkdtemp(name.data());
    server = std::make_unique<HttpServer>(
        loop, [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
          reply->answer(200, {{"ok", true}});
        });
    EXPECT_TRUE(server->listen(folder + "/socket"));
    thread = std::jthread([this] { loop.run(); });
  }
  ~HttpServerTest() override {
    loop.stop();
    thread.join();
    server.reset();
    std::filesystem::remove_all(folder);
  }
  int connect() const {
    const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder + "/socket";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  static std::string ask(int client, const std::string& text) {
    EXPECT_EQ(::send(client, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    std::string answer;
    char piece[4096];
    for (ssize_t size = 0; (size = ::recv(client, piece, sizeof piece, 0)) > 0;)
      answer.append(piece, static_cast<std::size_t>(size));
    ::close(client);
    return answer;
  }

  std::string folder;
  asio::io_context loop;
  std::unique_ptr<HttpServer> server;
  std::jthread thread;
};

constexpr const char* kGood = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";

TEST_F(HttpServerTest, AnswersWhatItCannotTakeInJson) {
  EXPECT_THAT(ask(connect(), kGood), StartsWith("HTTP/1.1 200"));
  const std::string large = ask(connect(), "POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n");
  EXPECT_THAT(large, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(large,
              HasSubstr(R"({"error":"a request may have 256 MB at most; send it in parts"})"));
  const std::string wrong = ask(connect(), "what is this\r\n\r\n");
  EXPECT_THAT(wrong, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(wrong, HasSubstr(R"({"error":"this is no HTTP request)"));
}

TEST_F(HttpServerTest, WaitsWhereThereAreNoDescriptorsLeft) {
  const int client = connect();
  const int waiting = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_THAT(ask(client, kGood), StartsWith("HTTP/1.1 200"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder + "/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::connect(waiting, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  timespec begin{}, end{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  std::this_thread::sleep_for(std::chrono::milliseconds{400});
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  const double used = static_cast<double>(end.tv_sec - begin.tv_sec) +
                      static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e9;
  EXPECT_LT(used, 0.2) << "it turned in circles";
  EXPECT_THAT(ask(waiting, kGood), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace hpcbatch
