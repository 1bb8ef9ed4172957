#include "web/gate.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::web {
namespace {

using Kind = Decision::Kind;

const std::string kToken = "TokenTokenToken", kSession = "Session1Session2Session3";

Gate loopback(bool may_change = true) {
  return {Gate::Door::Loopback, may_change, kToken, kSession};
}

std::string cookie_of(Gate& gate) {
  return gate.decide({.method = "GET", .target = "/?token=" + kToken, .host = "127.0.0.1:80"}).text;
}

Asked asked(const std::string& method, const std::string& target, const std::string& cookies) {
  return {method, target, "127.0.0.1:4000", "", cookies, method == "POST" ? "1" : ""};
}

TEST(Gate, LetsInOnceByTheTokenAndThenByTheCookie) {
  Gate gate = loopback();
  EXPECT_EQ(gate.decide(asked("GET", "/", "")).status, 403);
  EXPECT_EQ(gate.decide(asked("GET", "/?token=wrong", "")).status, 403);
  const std::string cookie = cookie_of(gate);
  EXPECT_EQ(gate.decide(asked("GET", "/?token=" + kToken, "")).status, 403) << "it was used";
  EXPECT_EQ(gate.decide(asked("GET", "/", cookie)).kind, Kind::File);
  EXPECT_EQ(gate.decide(asked("GET", "/", "a=b; " + cookie + "; c=d")).kind, Kind::File);
  EXPECT_EQ(gate.decide(asked("GET", "/", cookie + "x")).status, 403);
  EXPECT_EQ(gate.decide(asked("GET", "/", cookie.substr(0, cookie.size() - 1))).status, 403);
}

TEST(Gate, AnEmptyTokenNeverLetsIn) {
  Gate gate = loopback();
  EXPECT_EQ(gate.decide(asked("GET", "/?token=", "")).status, 403);
  cookie_of(gate);
  EXPECT_EQ(gate.decide(asked("GET", "/?token=", "")).status, 403);
}

TEST(Gate, KnowsNamesOfThisMachineAlone) {
  Gate gate = loopback();
  const std::string cookie = cookie_of(gate);
  for (const char* host : {"127.0.0.1", "127.0.0.1:9", "localhost:80", "[::1]:80"}) {
    Asked good = asked("GET", "/", cookie);
    good.host = host;
    EXPECT_EQ(gate.decide(good).kind, Kind::File) << host;
  }
  for (const char* host :
       {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80",
        "127.0.0.1:80@evil", "[::1", "localhost:", "127.0.0.1:x"}) {
    Asked bad = asked("GET", "/", cookie);
    bad.host = host;
    const bool is_good = std::string_view(host) == "localhost:";  // an empty port is the usual one
    EXPECT_EQ(gate.decide(bad).status, is_good ? 200 : 421) << host;
  }
}

TEST(Gate, OtherOriginsAndUnmarkedChangesAreRefused) {
  Gate gate = loopback();
  const std::string cookie = cookie_of(gate);
  Asked change = asked("POST", "/api/tasks/cancel", cookie);
  EXPECT_EQ(gate.decide(change).text, "/v1/tasks/cancel");
  change.origin = "http://127.0.0.1:4000";
  EXPECT_EQ(gate.decide(change).kind, Kind::Engine);
  for (const char* origin :
       {"http://127.0.0.1:4001", "https://127.0.0.1:4000", "null", "http://evil.example"}) {
    change.origin = origin;
    EXPECT_EQ(gate.decide(change).status, 403) << origin;
  }
  change.origin = "";
  change.mark = "";
  EXPECT_EQ(gate.decide(change).status, 403) << "a form of another page can post, but not mark it";
}

TEST(Gate, ThePageAsksForWhatItShowsAlone) {
  Gate gate = loopback();
  const std::string cookie = cookie_of(gate);
  for (const char* target : {"/api/tasks/1.2/explain", "/api/arrays?per=submit", "/api/engine",
                             "/api/tasks/3/log?follow=1"})
    EXPECT_EQ(gate.decide(asked("GET", target, cookie)).kind, Kind::Engine) << target;
  for (const char* target : {"/api/readers?reader=x", "/api/keys", "/api/events",
                             "/api/sites/a/past-jobs", "/other", "/style.css/x", "/page_files.cpp"})
    EXPECT_EQ(gate.decide(asked("GET", target, cookie)).status, 404) << target;
  for (const char* target :
       {"/api/tasks/../engine", "/api//tasks", "/api/tasks/1 2", "/\r\nX: y", "/../../etc/passwd",
        "/api/sites/a/past%2djobs", "/api/sites/a/past-jobs/", "/api/sites/a/%70ast-jobs",
        "/api/tasks/%2e%2e/keys", "/api/", "/api/tasks/%", "/api/tasks/%2"})
    EXPECT_EQ(gate.decide(asked("GET", target, cookie)).status, 400) << target;
  for (const char* target : {"/api/sites/a%20b%C3%A4", "/api/tasks?failure=exit%3A3&x=%61"})
    EXPECT_EQ(gate.decide(asked("GET", target, cookie)).kind, Kind::Engine) << target;
  for (const char* target :
       {"/api/engine/stop", "/api/tasks", "/api/submits", "/api/dropboxes", "/api/engine/backup",
        "/api/sites/a/clean", "/api/sites//resume", "/api/sites/a/b/resume"})
    EXPECT_NE(gate.decide(asked("POST", target, cookie)).kind, Kind::Engine) << target;
  EXPECT_EQ(gate.decide(asked("DELETE", "/api/tasks/1", cookie)).status, 405);
}

TEST(Gate, WhoOnlyLooksChangesNothing) {
  Gate gate = loopback(false);
  const std::string cookie = cookie_of(gate);
  EXPECT_EQ(gate.decide(asked("GET", "/api/tasks/1", cookie)).kind, Kind::Engine);
  EXPECT_EQ(gate.decide(asked("POST", "/api/tasks/cancel", cookie)).status, 403);
}

TEST(Gate, BehindAProxyTheSocketIsTheProof) {
  Gate gate(Gate::Door::Socket, true, "t", kSession);
  Asked get = asked("GET", "/", "");
  get.host = "hub.example.org";
  get.origin = "https://hub.example.org";
  EXPECT_EQ(gate.decide(get).kind, Kind::File);
  Asked post = asked("POST", "/api/tasks/retry", "");
  EXPECT_EQ(gate.decide(post).kind, Kind::Engine);
  post.mark = "";
  EXPECT_EQ(gate.decide(post).status, 403);
}

TEST(Gate, SecretsDiffer) {
  EXPECT_EQ(secret().size(), 44U);
  EXPECT_NE(secret(), secret());
}

TEST(Gate, ATokenForMetricsShowsThoseAndNothingElse) {
  const std::string secret_of_metrics = "0123456789abcdef0123";
  for (const auto door : {Gate::Door::Loopback, Gate::Door::Socket}) {
    Gate gate(door, true, kToken, kSession, secret_of_metrics);
    const auto with = [&](const std::string& authorization, const std::string& target) {
      Asked one = asked("GET", target, "");
      one.authorization = authorization;
      return gate.decide(one);
    };
    const Decision good = with("Bearer " + secret_of_metrics, "/metrics");
    EXPECT_EQ(good.kind, Kind::Engine);
    EXPECT_EQ(good.text, "/v1/metrics");
    EXPECT_EQ(with("Bearer " + secret_of_metrics, "/metrics").kind, Kind::Engine)
        << "as often as it likes";
    for (const char* wrong : {"Bearer ", "Bearer 0123456789abcdef0124",
                              "Bearer 0123456789abcdef012", "Bearer TokenTokenToken"})
      EXPECT_EQ(with(wrong, "/metrics").status, 401) << wrong;
    if (door == Gate::Door::Socket) continue;
    for (const char* other : {"/", "/api/engine", "/metrics/", "/metrics?x=1", "/live", "/Metrics"})
      EXPECT_NE(with("Bearer " + secret_of_metrics, other).status, 200) << other;
    EXPECT_EQ(with("", "/metrics").status, 403);
    Asked foreign = asked("GET", "/metrics", "");
    foreign.authorization = "Bearer " + secret_of_metrics;
    foreign.host = "evil.example";
    EXPECT_EQ(gate.decide(foreign).status, 421);
  }
}

TEST(Gate, WithoutATokenForMetricsNoneLetsIn) {
  Gate gate = loopback();
  Asked one = asked("GET", "/metrics", "");
  for (const char* text : {"Bearer ", "Bearer", "Bearer TokenTokenToken"}) {
    one.authorization = text;
    EXPECT_GE(gate.decide(one).status, 401) << text;
  }
  EXPECT_EQ(gate.decide(asked("GET", "/metrics", cookie_of(gate))).text, "/v1/metrics");
}

}  // namespace
}  // namespace hpcbatch::web
