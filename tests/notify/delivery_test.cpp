#include "notify/delivery.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Optional;

std::optional<std::string> delivered(const Parcel& parcel, std::chrono::seconds longest = 60s) {
  asio::io_context loop;
  std::optional<std::string> said = "nothing was said";
  const auto delivery = std::make_shared<Delivery>(loop);
  delivery->start(parcel, longest, [&](std::optional<std::string> why) { said = std::move(why); });
  loop.run();
  return said;
}

Parcel shell(const std::string& line) {
  return {{"/bin/sh", "-c", line}, {"GREETING=hello"}, "read me\n", "and me\n"};
}

TEST(Delivery, HandsOverInputVariablesAndTheThirdDescriptor) {
  EXPECT_EQ(
      delivered(shell("read a; read b <&3; test \"$a $b $GREETING\" = 'read me and me hello'")),
      std::nullopt);
}

TEST(Delivery, SaysWhatWentWrong) {
  EXPECT_THAT(delivered(shell("echo no such user >&2; exit 67")),
              Optional(HasSubstr("exit code 67: no such user")));
  EXPECT_THAT(delivered({{"/nowhere/told"}, {}, "", ""}),
              Optional(HasSubstr("/nowhere/told: not found")));
}

TEST(Delivery, OneThatSaysALotIsHeardOut) {
  EXPECT_EQ(delivered(shell("head -c 3000000 /dev/zero")), std::nullopt);
}

TEST(Delivery, WhatHangsIsKilledWithAllThatItStarted) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(delivered(shell("sleep 300 & sleep 300"), 1s), Optional(HasSubstr("was killed")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST(Delivery, OneThatIsLeftSaysNothing) {
  asio::io_context loop;
  bool was_called = false;
  const auto delivery = std::make_shared<Delivery>(loop);
  delivery->start(shell("sleep 300"), 60s, [&](const auto&) { was_called = true; });
  delivery->leave();
  loop.run();
  EXPECT_FALSE(was_called);
}

}  // namespace
}  // namespace hpcbatch
