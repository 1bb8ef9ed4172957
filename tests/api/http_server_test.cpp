// The engine's socket: what is no request we take is answered, and running out of descriptors is
// outlived.
#include "api/http/http_server.hpp"
#include "loop/asio.hpp"

#include <boost/asio/use_future.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct HttpServerTest : testing::Test {
  explicit HttpServerTest(std::size_t most_clients = SIZE_MAX) {
    std::string name = testing::TempDir() + "/hpcbatch_XXXXXX";
    folder = ::mkdtemp(name.data());
    server = std::make_unique<HttpServer>(
        loop,
        [this](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
          serve(request, reply);
        },
        most_clients);
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
    // A client that is rejected by the listener finds the answer there and the line closed.
    if (!text.empty() && ::send(client, text.data(), text.size(), MSG_NOSIGNAL) < 0) {
      EXPECT_EQ(errno, EPIPE);
    }
    std::string answer;
    char piece[4096];
    for (ssize_t size = 0; (size = ::recv(client, piece, sizeof piece, 0)) > 0;)
      answer.append(piece, static_cast<std::size_t>(size));
    ::close(client);
    return answer;
  }

  HttpHandler serve = [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    reply->answer(200, {{"ok", true}});
  };
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

TEST_F(HttpServerTest, ListensAgainWhereItsSocketWasRemovedOrReplaced) {
  const auto in_reach = [&] {
    return asio::post(loop, asio::use_future([&] { return is_in_place(server->file()); })).get();
  };
  const auto listens_again = [&] {
    return asio::post(loop, asio::use_future([&] {
                        auto made = listen_again_at(folder + "/socket");
                        if (!made) return made.error().text;
                        server->listen(std::move(*made));
                        return std::string();
                      }))
        .get();
  };
  const int connected = connect();
  const std::string patient = "GET / HTTP/1.1\r\n\r\n";
  EXPECT_EQ(::send(connected, patient.data(), patient.size(), 0),
            static_cast<ssize_t>(patient.size()));
  char byte = 0;
  EXPECT_EQ(::recv(connected, &byte, 1, 0), 1);
  EXPECT_TRUE(in_reach());
  std::filesystem::remove(folder + "/socket");
  EXPECT_FALSE(in_reach());
  const mode_t before = ::umask(0);
  EXPECT_EQ(listens_again(), "");
  ::umask(before);
  struct stat facts {};
  EXPECT_EQ(::stat((folder + "/socket").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777u, 0600u);
  EXPECT_TRUE(in_reach());
  EXPECT_THAT(ask(connect(), kGood), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(connected, kGood), HasSubstr("HTTP/1.1 200")) << "who was connected stays";

  std::filesystem::remove(folder + "/socket");
  auto other = std::make_unique<HttpServer>(loop, serve);
  EXPECT_TRUE(asio::post(loop, asio::use_future(
                                   [&] { return other->listen(folder + "/socket").has_value(); }))
                  .get());
  EXPECT_FALSE(in_reach());
  EXPECT_THAT(listens_again(), HasSubstr("another process listens there"));
  asio::post(loop, asio::use_future([&] { server.reset(); })).get();
  EXPECT_TRUE(std::filesystem::exists(folder + "/socket")) << "it is the other's";
  asio::post(loop, asio::use_future([&] { other.reset(); })).get();
}

TEST_F(HttpServerTest, TellsAClientThatThereAreNoDescriptorsLeft) {
  const int waiting = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_THAT(ask(connect(), kGood), StartsWith("HTTP/1.1 200"));
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
  const std::string answer = ask(waiting, "");
  std::this_thread::sleep_for(std::chrono::milliseconds{400});
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("ulimit -n")));
  const double used = static_cast<double>(end.tv_sec - begin.tv_sec) +
                      static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e9;
  EXPECT_LT(used, 0.2) << "it turned in circles";
  EXPECT_THAT(ask(connect(), kGood), StartsWith("HTTP/1.1 200"));
}

/// A server whose answers are given when the test says so, and of three clients at most.
struct SlowServerTest : HttpServerTest {
  static constexpr std::size_t kMost = 3;
  SlowServerTest() : HttpServerTest(kMost) {}

  void SetUp() override {
    serve = [this](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
      if (request.path.empty()) return reply->answer(200, {{"ok", true}});
      reply->on_gone([this] { ++gone; });
      const std::scoped_lock lock(mutex);
      replies.push_back(reply);
    };
  }
  void TearDown() override {
    const std::scoped_lock lock(mutex);
    for (auto& reply : replies) asio::post(loop, [reply = std::move(reply)] {});
    replies.clear();
  }
  int ask_slowly() {
    const int client = connect();
    const std::string text = "GET /slow HTTP/1.1\r\n\r\n";
    const std::size_t before = kept();
    EXPECT_EQ(::send(client, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(soon([&] { return kept() > before; }));
    return client;
  }
  std::size_t kept() {
    const std::scoped_lock lock(mutex);
    return replies.size();
  }
  template <class Condition>
  static bool soon(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return true;
  }

  std::mutex mutex;
  std::vector<std::shared_ptr<HttpReply>> replies;
  std::atomic<int> gone{0};
};

TEST_F(SlowServerTest, NoticesAtOnceThatAClientHasGone) {
  for (int round = 0; round < 8; ++round) {
    const int client = ask_slowly();
    // Whatever it has said behind its request.
    EXPECT_EQ(::send(client, "GET", 3, MSG_NOSIGNAL), 3);
    ::close(client);
    EXPECT_TRUE(soon([&] { return gone == round + 1; }));
    EXPECT_TRUE(soon([&] { return server->clients() == 0; }));
  }
}

TEST_F(SlowServerTest, AnswersAClientThatOnlySendsNothingMore) {
  const int client = ask_slowly();
  ::shutdown(client, SHUT_WR);
  EXPECT_THAT(ask(connect(), kGood), StartsWith("HTTP/1.1 200")) << "the loop has turned";
  asio::post(loop, [this] {
    const std::scoped_lock lock(mutex);
    replies.front()->answer(200, {{"late", true}});
  });
  EXPECT_THAT(ask(client, ""), HasSubstr("late"));
  EXPECT_EQ(gone, 0);
}

TEST_F(SlowServerTest, HangsUpOnWhoGetsNoAnswerOnceItEnds) {
  const int forgotten = ask_slowly();
  const auto drop = [this] {
    const std::scoped_lock lock(mutex);
    replies.clear();
  };
  ::shutdown(forgotten, SHUT_WR);
  asio::post(loop, drop);
  EXPECT_THAT(ask(forgotten, ""), AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("no answer")));
  const int late = ask_slowly();
  asio::post(loop, [this, drop] {
    server->end();
    drop();
  });
  EXPECT_EQ(ask(late, ""), "");
}

TEST_F(SlowServerTest, TellsWhoeverIsOneTooManyAndHangsUpOnThoseWhoSayNothing) {
  const int quiet = connect();
  const int first = ask_slowly();
  const int second = ask_slowly();
  const int third = ask_slowly();
  char byte = 0;
  EXPECT_EQ(::recv(quiet, &byte, 1, 0), 0) << "it had said nothing, and was in the way";
  ::close(quiet);
  EXPECT_THAT(ask(connect(), kGood), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("3 clients")));
  ::close(first);
  EXPECT_TRUE(soon([&] { return gone == 1; }));
  EXPECT_THAT(ask(connect(), kGood), StartsWith("HTTP/1.1 200"));
  ::close(second);
  ::close(third);
}

}  // namespace
}  // namespace hpcbatch
