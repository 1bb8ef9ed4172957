// HTTP over a Unix socket: answers, streams, deadlines, interrupts, and connections that break.
#include "cli/client/http_client.hpp"

#include "cli_process.hpp"
#include "fake_engine.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <semaphore>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using test::FakeConnection;
using test::FakeEngine;
using test::FakeRequest;
using Next = LineStream::Next;

class HttpClientTest : public testing::Test {
 protected:
  std::string socket() const { return folder_.path() + "/socket"; }

  test::TemporaryFolder folder_;
};

TEST_F(HttpClientTest, OneConnectionCarriesManyRequests) {
  FakeEngine engine(socket(), [](const FakeRequest& request, FakeConnection& connection) {
    connection.answer(request.method == "POST" ? 200 : 404, request.target + request.body);
  });
  HttpClient client({socket()}, -1);
  const Answer posted = client.request("POST", "/a?b=1", "body", 10s);
  EXPECT_EQ(posted.outcome, Exchange::Answered);
  EXPECT_EQ(posted.status, 200);
  EXPECT_EQ(posted.body, "/a?b=1body");
  EXPECT_EQ(client.request("GET", "/c", {}, 10s).status, 404);
  EXPECT_EQ(engine.connections(), 1u);
  EXPECT_EQ(client.peer(), ::getpid());
}

TEST_F(HttpClientTest, AnswersOfAnySizeComeWhole) {
  const std::string large(3'000'000, 'x');
  FakeEngine engine(socket(), [&](const FakeRequest& request, FakeConnection& connection) {
    connection.answer(200, request.body);
  });
  HttpClient client({socket()}, -1);
  EXPECT_EQ(client.request("POST", "/", large, 60s).body, large);
}

TEST_F(HttpClientTest, NobodyThereIsSaidAtOnce) {
  HttpClient client({socket()}, -1);
  const Answer answer = client.request("GET", "/", {}, 10s);
  EXPECT_EQ(answer.outcome, Exchange::NoEngine);
  EXPECT_NE(answer.error.find(socket()), std::string::npos);
  // A socket left behind by a killed engine is nobody either.
  {
    FakeEngine engine(socket(), [](const FakeRequest&, FakeConnection&) {});
  }
  EXPECT_EQ(client.request("GET", "/", {}, 10s).outcome, Exchange::NoEngine);
}

TEST_F(HttpClientTest, TheSecondSocketIsTriedToo) {
  FakeEngine engine(socket(), [](const FakeRequest&, FakeConnection& connection) {
    connection.answer(200, "{}");
  });
  HttpClient client({folder_.path() + "/none/socket", socket()}, -1);
  EXPECT_EQ(client.request("GET", "/", {}, 10s).status, 200);
}

TEST_F(HttpClientTest, PathsMayBeLongerThanASocketAddress) {
  const std::string folder =
      folder_.path() + "/" + std::string(120, 'a') + "/" + std::string(120, 'b');
  std::filesystem::create_directories(folder);
  FakeEngine engine(folder + "/socket", [](const FakeRequest&, FakeConnection& connection) {
    connection.answer(200, "{}");
  });
  HttpClient client({folder + "/socket"}, -1);
  EXPECT_EQ(client.request("GET", "/", {}, 10s).status, 200);
}

TEST_F(HttpClientTest, TheSocketOfAnotherUserIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    constexpr uid_t kNobody = 65534;
    sockaddr_un address{AF_UNIX, {}};
    socket().copy(address.sun_path, sizeof address.sun_path - 1);
    const int door = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::setuid(kNobody) != 0 ||
        ::bind(door, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(door, 1) != 0 || ::write(ready[1], "x", 1) != 1)
      ::_exit(1);
    char byte = 0;
    const ssize_t got = ::read(::accept(door, nullptr, nullptr), &byte, 1);
    ::_exit(got == 0 ? 0 : 2);
  }
  ::close(ready[1]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  {
    HttpClient client({socket()}, -1);
    const Answer answer = client.request("POST", "/v1/tasks", "secret", 10s);
    EXPECT_EQ(answer.outcome, Exchange::Refused);
    EXPECT_EQ(answer.error,
              "cannot use the socket " + socket() + ": another user's process listens there");
  }
  int status = -1;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(status, 0) << "nothing was said to it";
}

TEST_F(HttpClientTest, SilenceEndsAtTheDeadline) {
  FakeEngine engine(socket(), [](const FakeRequest&, FakeConnection&) {});
  HttpClient client({socket()}, -1);
  const Answer late = client.request("GET", "/v1/engine", {}, 20ms);
  EXPECT_EQ(late.outcome, Exchange::TimedOut);
  EXPECT_EQ(late.error, "the engine (process " + std::to_string(::getpid()) +
                            ") has not answered GET /v1/engine within 1 s; `hpcbatch doctor` says "
                            "what is wrong with it");
}

TEST_F(HttpClientTest, WhatIsWaitedForLongIsToldOnceForEachRequest) {
  std::counting_semaphore<> told(0);
  FakeEngine engine(socket(), [&](const FakeRequest& request, FakeConnection& connection) {
    if (request.target != "/quick") told.acquire();
    connection.answer(200, "late");
  });
  std::vector<std::string> waits;
  HttpClient client({socket()}, -1);
  client.when_slow(0ms, [&](std::string_view method, const std::string& target) {
    waits.push_back(std::string(method) + " " + target);
    told.release();
  });
  EXPECT_EQ(client.request("GET", "/a", {}, 1h).body, "late");
  EXPECT_EQ(client.request("POST", "/b", "body", 1h).body, "late");
  EXPECT_EQ(waits, (std::vector<std::string>{"GET /a", "POST /b"}));
  client.when_slow(1h, [&](std::string_view, const std::string&) { waits.clear(); });
  EXPECT_EQ(client.request("GET", "/quick", {}, 1h).body, "late");
  EXPECT_EQ(waits.size(), 2U);
}

TEST_F(HttpClientTest, AnInterruptEndsAWait) {
  const int interrupt = ::eventfd(0, EFD_CLOEXEC);
  {
    FakeEngine engine(socket(), [&](const FakeRequest&, FakeConnection&) {
      const std::uint64_t one = 1;
      ASSERT_EQ(::write(interrupt, &one, sizeof one), 8);
    });
    HttpClient client({socket()}, interrupt);
    EXPECT_EQ(client.request("GET", "/", {}, 1h).outcome, Exchange::Interrupted);
  }
  ::close(interrupt);
}

TEST_F(HttpClientTest, AnInterruptBeforeAStreamIsToldOnce) {
  const int interrupt = ::eventfd(0, EFD_CLOEXEC);
  FakeEngine engine(
      socket(), [](const FakeRequest&, FakeConnection& connection) { connection.answer(200, ""); });
  HttpClient client({socket()}, interrupt);
  ASSERT_EQ(client.request("GET", "/", {}, 10s).outcome, Exchange::Answered);
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(interrupt, &one, sizeof one), 8);
  const auto lines = client.follow("/");
  const Next next = lines->next(10s);
  EXPECT_EQ(next.kind, Next::Kind::Failed);
  EXPECT_EQ(next.failure.outcome, Exchange::Interrupted);
  EXPECT_EQ(lines->next(10s).kind, Next::Kind::End);
  ::close(interrupt);
}

TEST_F(HttpClientTest, AKeptConnectionThatWasClosedIsReplaced) {
  std::atomic<int> asked{0};
  FakeEngine engine(socket(), [&](const FakeRequest&, FakeConnection& connection) {
    connection.answer(200, "{}");
    if (++asked % 2 == 1) connection.hang_up();
  });
  HttpClient client({socket()}, -1);
  EXPECT_EQ(client.request("GET", "/1", {}, 10s).status, 200);
  EXPECT_EQ(client.request("GET", "/2", {}, 10s).status, 200);  // on a second connection
  EXPECT_EQ(client.request("GET", "/3", {}, 10s).status, 200);  // which is closed after this
  EXPECT_EQ(client.request("POST", "/4", {}, 10s).status, 200);
}

TEST_F(HttpClientTest, ABrokenAnswerIsLost) {
  FakeEngine engine(socket(), [](const FakeRequest&, FakeConnection& connection) {
    connection.begin_chunks();
    connection.chunk("half");
    connection.hang_up();
  });
  HttpClient client({socket()}, -1);
  EXPECT_EQ(client.request("GET", "/", {}, 10s).outcome, Exchange::Lost);
}

TEST_F(HttpClientTest, LinesComeWholeHoweverTheyAreCut) {
  FakeEngine engine(socket(), [](const FakeRequest&, FakeConnection& connection) {
    connection.begin_chunks();
    for (const char* piece : {"on", "e\ntw", "o\n", "\nfour\nfive\n"}) connection.chunk(piece);
    connection.end_chunks();
  });
  HttpClient client({socket()}, -1);
  const auto lines = client.follow("/");
  for (const char* expected : {"one", "two", "", "four", "five"}) {
    const Next next = lines->next(10s);
    EXPECT_EQ(next.kind, Next::Kind::Line);
    EXPECT_EQ(next.line, expected);
  }
  EXPECT_EQ(lines->next(10s).kind, Next::Kind::End);
}

TEST_F(HttpClientTest, AStreamIsIdleAndThenGoesOn) {
  std::mutex mutex;
  mutex.lock();
  FakeEngine engine(socket(), [&](const FakeRequest&, FakeConnection& connection) {
    connection.begin_chunks();
    connection.chunk("half ");
    const std::lock_guard wait(mutex);
    connection.chunk("line\n");
    connection.hang_up();
  });
  HttpClient client({socket()}, -1);
  const auto lines = client.follow("/");
  EXPECT_EQ(lines->next(20ms).kind, Next::Kind::Idle);
  mutex.unlock();
  EXPECT_EQ(lines->next(10s).line, "half line");
  const Next last = lines->next(10s);
  EXPECT_EQ(last.kind, Next::Kind::Failed);
  EXPECT_EQ(last.failure.outcome, Exchange::Lost);
}

TEST_F(HttpClientTest, ARefusedStreamSaysWhy) {
  FakeEngine engine(socket(), [](const FakeRequest&, FakeConnection& connection) {
    connection.answer(404, "why\n");
  });
  HttpClient client({socket()}, -1);
  const Next next = client.follow("/")->next(10s);
  EXPECT_EQ(next.kind, Next::Kind::Failed);
  EXPECT_EQ(next.failure.outcome, Exchange::Answered);
  EXPECT_EQ(next.failure.status, 404);
  EXPECT_EQ(next.failure.body, "why\n");
}

TEST(EncodePart, OnlyPlainLettersStay) {
  EXPECT_EQ(encode_part("shell:a b/\xC3\xA4-_.~"), "shell%3Aa%20b%2F%C3%A4-_.~");
}

}  // namespace
}  // namespace hpcbatch
