#include "wire/relay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch::wire {
namespace {

using Kind = RelayFrame::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

std::string sealed(const std::vector<RelayFrame>& frames) {
  std::string bytes;
  for (const RelayFrame& frame : frames) append(bytes, frame);
  return bytes;
}

TEST(RelayFrames, ComeOutAsTheyWentIn) {
  const std::vector<RelayFrame> frames{
      {.kind = Kind::Listening, .bytes = "address tcp 10.0.0.1 4000\n"},
      {.kind = Kind::Opened, .connection = 7},
      {.kind = Kind::Data, .connection = 7, .bytes = std::string("a\0b\xff", 4)},
      {.kind = Kind::Taken, .connection = 0xFFFFFFFF, .taken = 0x01020304},
      {.kind = Kind::Closed, .connection = 7},
      {.kind = Kind::Alive},
      {.kind = Kind::Ended, .bytes = "no space left"}};
  RelayFrames whole;
  EXPECT_EQ(*whole.receive(sealed(frames)), frames);
  RelayFrames by_byte;
  std::vector<RelayFrame> got;
  for (const char byte : sealed(frames)) {
    auto some = by_byte.receive({&byte, 1});
    ASSERT_TRUE(some);
    got.insert(got.end(), some->begin(), some->end());
  }
  EXPECT_EQ(got, frames);
}

TEST(RelayFrames, WhatIsNoFrameIsRefused) {
  const auto why = [](std::string bytes) {
    RelayFrames frames;
    const auto got = frames.receive(bytes);
    return got ? "taken" : got.error().text;
  };
  EXPECT_THAT(why("Welcome to the cluster!\n"), HasSubstr("a frame of kind 87"));
  EXPECT_THAT(why(std::string("\3\0\0\0\0\0\0\0\xff", 9)),
              HasSubstr("a frame of 4278190080 bytes"));
  EXPECT_THAT(why(std::string("\4\0\0\0\0\1\0\0\0x", 10)), HasSubstr("a count of 1 bytes"));
  EXPECT_THAT(why(std::string("\0\0\0\0\0\0\0\0\0", 9)), HasSubstr("kind 0"));
}

TEST(RelayFile, NamesWhereTheRelayListens) {
  const auto addresses =
      parse_relay_file("address tcp 10.0.0.1 4000\naddress tcp fd00::1 4001\n", "r");
  ASSERT_TRUE(addresses);
  EXPECT_THAT(*addresses, ElementsAre(Address{Address::Kind::Tcp, "10.0.0.1", 4000},
                                      Address{Address::Kind::Tcp, "fd00::1", 4001}));
  for (const char* text : {"", "\n", "address unix /x\n", "address relay /x\n", "tcp 10.0.0.1 1\n",
                           "address tcp 10.0.0.1 0\n"})
    EXPECT_FALSE(parse_relay_file(text, "r")) << text;
}

}  // namespace
}  // namespace hpcbatch::wire
