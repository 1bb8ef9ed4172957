#include "model/notify_target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using Kind = NotifyTarget::Kind;

NotifyTarget good(std::string_view text) {
  const auto parsed = parse_notify_target(text);
  if (const auto* why = std::get_if<std::string>(&parsed)) {
    ADD_FAILURE() << *why;
    return {};
  }
  return std::get<NotifyTarget>(parsed);
}

TEST(NotifyTarget, SaysHowAndWhom) {
  EXPECT_EQ(good("mail:me+hpc@example.org").to, "me+hpc@example.org");
  EXPECT_EQ(good("mail:me").kind, Kind::Mail);
  EXPECT_EQ(good("mail:").to, "") << "the user himself";
  EXPECT_EQ(good("command:/home/me/told it.sh").to, "/home/me/told it.sh");
  EXPECT_EQ(good("https://hooks.example.org/a?b=c&d=e").kind, Kind::Webhook);
  EXPECT_EQ(good("http://localhost:8080/x").kind, Kind::Webhook);
  EXPECT_EQ(good("http://127.0.0.1/").kind, Kind::Webhook);
  EXPECT_EQ(good("none").kind, Kind::Nobody);
  EXPECT_FALSE(good("mail:me").only_failed);
  EXPECT_TRUE(good("failed:mail:me").only_failed);
  EXPECT_EQ(good("failed:https://x.org").to, "https://x.org");
}

TEST(NotifyTarget, WhatCouldBeAnotherHeaderOptionOrHostIsRefused) {
  for (const std::string_view text : {"me@example.org",
                                      "",
                                      "failed:",
                                      "failed:none",
                                      "mail:a@b,c@d",
                                      "mail:a@b\nBcc: c@d",
                                      "mail:-oQ/tmp",
                                      "mail:a b",
                                      "mail:<a@b>",
                                      "mail:a@",
                                      "command:",
                                      "command:told.sh",
                                      "command:sh -c x",
                                      "http://example.org/",
                                      "http://localhost.evil.org/",
                                      "http://127.0.0.1@evil.org/",
                                      "https://",
                                      "https:///x",
                                      "https://x.org/\"\nfile = \"/etc",
                                      "https://x.org/a b",
                                      "ftp://x.org",
                                      "file:///etc/passwd"})
    EXPECT_TRUE(std::holds_alternative<std::string>(parse_notify_target(text))) << text;
  EXPECT_TRUE(std::holds_alternative<std::string>(
      parse_notify_target("https://x.org/" + std::string(3000, 'a'))));
}

TEST(NotifyTarget, ASecretInAnAddressIsNotShown) {
  EXPECT_EQ(show_target(good("https://user:word@x.org:8443/T00/secret?key=1")),
            "the webhook of x.org:8443");
  EXPECT_EQ(show_target(good("failed:mail:me@x.org")), "mail:me@x.org");
}

}  // namespace
}  // namespace hpcbatch
