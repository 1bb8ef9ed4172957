// The engine's end of a relay's stream; the relay is this test.
#include "links/relay_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>

#include <array>
#include <chrono>
#include <csignal>

#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using Kind = wire::RelayFrame::Kind;
using testing::ElementsAre;

class RelayStreamTest : public testing::Test {
 protected:
  RelayStreamTest() : relay_(loop_) {
    std::signal(SIGPIPE, SIG_IGN);  // as the engine does
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    relay_.assign(asio::local::stream_protocol(), ends[0]);
    relay_.non_blocking(true);
    stream_ = std::make_shared<RelayStream>(
        loop_, ends[1],
        RelayStream::Callbacks{
            .listening = [this](const std::string& addresses) { addresses_ = addresses; },
            .connected = [this](auto socket) { pilots_.push_back(std::move(socket)); },
            .ended = [this](const std::string& why) { ended_ = why; }});
    stream_->start();
  }
  ~RelayStreamTest() override { stream_->close(); }

  void say(const wire::RelayFrame& frame) {
    std::string bytes;
    append(bytes, frame);
    asio::write(relay_, asio::buffer(bytes));
  }
  template <class Happened>
  void until(Happened happened) {
    for (const auto end = std::chrono::steady_clock::now() + 30s; !happened();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      loop_.restart();
      loop_.run_one_for(10ms);
      hear();
    }
  }
  void hear() {
    if (!relay_.is_open()) return;
    std::array<char, 65536> room;
    boost::system::error_code error;
    const std::size_t bytes = relay_.read_some(asio::buffer(room), error);
    if (error) return;
    auto frames = frames_.receive({room.data(), bytes});
    ASSERT_TRUE(frames);
    heard_.insert(heard_.end(), frames->begin(), frames->end());
  }
  std::string until_closed(asio::generic::stream_protocol::socket& pilot) {
    pilot.non_blocking(true);
    std::string text;
    boost::system::error_code error;
    until([&] {
      asio::read(pilot, asio::dynamic_buffer(text), error);
      return error == asio::error::eof;
    });
    return text;
  }
  std::size_t heard_bytes(std::uint32_t connection) const {
    std::size_t bytes = 0;
    for (const auto& frame : heard_)
      if (frame.connection == connection) bytes += frame.bytes.size();
    return bytes;
  }

  asio::io_context loop_;
  asio::local::stream_protocol::socket relay_;
  std::shared_ptr<RelayStream> stream_;
  std::vector<asio::generic::stream_protocol::socket> pilots_;
  std::string addresses_;
  std::string ended_;
  wire::RelayFrames frames_;
  std::vector<wire::RelayFrame> heard_;
};

TEST_F(RelayStreamTest, ConnectionsComeOutOfIt) {
  say({.kind = Kind::Listening, .bytes = "address tcp 10.0.0.1 1\n"});
  say({.kind = Kind::Opened, .connection = 5});
  say({.kind = Kind::Data, .connection = 5, .bytes = "from five"});
  until([&] { return pilots_.size() == 1; });
  EXPECT_EQ(addresses_, "address tcp 10.0.0.1 1\n");
  until([&] { return pilots_[0].available() == 9; });
  until([&] { return !heard_.empty(); });
  EXPECT_THAT(heard_,
              ElementsAre(wire::RelayFrame{.kind = Kind::Taken, .connection = 5, .taken = 9}));
  heard_.clear();
  asio::write(pilots_[0], asio::buffer(std::string("to five")));
  until([&] { return !heard_.empty(); });
  EXPECT_THAT(heard_, ElementsAre(wire::RelayFrame{
                          .kind = Kind::Data, .connection = 5, .bytes = "to five"}));
}

TEST_F(RelayStreamTest, AnEndOfEitherSideIsTold) {
  say({.kind = Kind::Opened, .connection = 1});
  say({.kind = Kind::Opened, .connection = 2});
  until([&] { return pilots_.size() == 2; });
  pilots_[0].close();
  until([&] { return !heard_.empty(); });
  EXPECT_THAT(heard_, ElementsAre(wire::RelayFrame{.kind = Kind::Closed, .connection = 1}));
  say({.kind = Kind::Data, .connection = 2, .bytes = "last words"});
  say({.kind = Kind::Closed, .connection = 2});
  until([&] { return pilots_[1].available() == 10; });
  EXPECT_EQ(until_closed(pilots_[1]), "last words");
}

TEST_F(RelayStreamTest, TheEngineSaysNoMoreThanTheWindow) {
  say({.kind = Kind::Opened, .connection = 1});
  until([&] { return pilots_.size() == 1; });
  pilots_[0].non_blocking(true);
  const std::string text(1 << 20, 'x');
  std::size_t sent = 0;
  const auto push = [&] {
    boost::system::error_code error;
    sent += pilots_[0].write_some(asio::buffer(text), error);
  };
  until([&] {
    push();
    return heard_bytes(1) == wire::kRelayWindow;
  });
  for (int round = 0; round < 50; ++round) {
    push();
    loop_.restart();
    loop_.poll();
    hear();
  }
  EXPECT_EQ(heard_bytes(1), wire::kRelayWindow);
  say({.kind = Kind::Taken, .connection = 1, .taken = 100});
  until([&] { return heard_bytes(1) == wire::kRelayWindow + 100; });
}

TEST_F(RelayStreamTest, WhatIsNoFrameEndsItAndItsConnections) {
  say({.kind = Kind::Opened, .connection = 1});
  until([&] { return pilots_.size() == 1; });
  asio::write(relay_, asio::buffer(std::string("Connection to login closed.\n")));
  until([&] { return !ended_.empty(); });
  EXPECT_THAT(ended_, testing::HasSubstr("a frame of kind 67"));
  EXPECT_EQ(until_closed(pilots_[0]), "");
}

TEST_F(RelayStreamTest, ARelayThatCannotGoOnSaysWhy) {
  say({.kind = Kind::Ended, .bytes = "cannot listen for pilots on 10.0.0.1"});
  until([&] { return !ended_.empty(); });
  EXPECT_EQ(ended_, "it ended: cannot listen for pilots on 10.0.0.1");
}

TEST_F(RelayStreamTest, ARelayThatGoesIsTold) {
  relay_.close();
  until([&] { return !ended_.empty(); });
  EXPECT_EQ(ended_, "the relay has ended");
}

}  // namespace
}  // namespace hpcbatch
