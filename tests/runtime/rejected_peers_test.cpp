// Peers that are no pilots of ours, or no longer behave as such: each is put out and counted under
// its reason, and the pilots beside it notice nothing.
#include "links/link_server.hpp"
#include "links/relay_stream.hpp"
#include "wire/relay.hpp"
#include "wire/wire.pb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <boost/asio/local/connect_pair.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/socket.h>
#include <unistd.h>
#include <csignal>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const wire::PilotName kPeer{"hgood1", 0};
const wire::PilotName kOther{"hgood2", 0};
const std::string kFourGigabytes = "\xFF\xFF\xFF\xFF";

std::string heartbeat(std::uint64_t number) {
  wire::ToEngine message;
  message.set_heartbeat(number);
  return message.SerializeAsString();
}

/// Address space that this process ever had, in KiB: what was reserved counts, used or not.
std::size_t most_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmPeak:")) return std::stoul(line.substr(7));
  }
  return 0;
}

/// Somebody at the other end of a connection.
struct Peer {
  asio::generic::stream_protocol::socket socket;
  wire::Link link;
  bool is_pilot{true};  ///< goes on as one does; else it says what the test has it say
  std::string said{};   ///< every byte
  bool is_put_out{false};

  void say(const std::string& bytes) {
    said += bytes;
    boost::system::error_code gone;
    asio::write(socket, asio::buffer(bytes), gone);
  }
  void turn() {
    if (is_pilot && link.has_output()) say(link.take_output());
    std::array<char, 65536> room;
    boost::system::error_code error;
    const std::size_t bytes = socket.read_some(asio::buffer(room), error);
    if (error == asio::error::would_block) return;
    if (error)
      is_put_out = true;
    else
      (void)link.receive({room.data(), bytes});
  }
};

class TurnedAwayTest : public testing::Test {
 protected:
  TurnedAwayTest()
      : server_(
            loop_,
            [this](const wire::PilotName& name) {
              return name == kPeer || name == kOther ? std::optional(key_) : std::nullopt;
            },
            [this](const auto&, const wire::ToEngine& message) {
              beats_.push_back(message.heartbeat());
            },
            [](const auto&) {}) {
    std::signal(SIGPIPE, SIG_IGN);  // as the engine does
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(log_);
    before_ = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    EXPECT_TRUE(server_.listen_unix(folder_ + "/link"));
    other_ = std::make_unique<Peer>(connect(kOther));
    until([&] { return other_->link.established(); });
  }
  void TearDown() override {
    spdlog::set_default_logger(before_);
    std::filesystem::remove_all(folder_);
  }

  wire::Link link_of(const wire::PilotName& name, std::optional<wire::Key> key = {}) {
    return wire::Link::connecting(name, key.value_or(key_));
  }
  Peer connect(const wire::PilotName& name, std::optional<wire::Key> key = {}) {
    asio::local::stream_protocol::socket socket(loop_);
    socket.connect(folder_ + "/link");
    socket.non_blocking(true);
    return {std::move(socket), link_of(name, key)};
  }
  Peer connect_as_no_pilot() {
    Peer peer = connect(kPeer);
    peer.is_pilot = false;
    return peer;
  }
  /// The server takes `theirs` with less patience than it has at its own listener.
  Peer connect_to_impatient() {
    asio::local::stream_protocol::socket ours(loop_), theirs(loop_);
    asio::local::connect_pair(ours, theirs);
    ours.non_blocking(true);
    server_.adopt(std::move(theirs), {.listener = 1, .handshake = 0s});
    return {std::move(ours), link_of(kPeer), false};
  }

  template <class Happened>
  void until(Happened happened, Peer* peer = nullptr) {
    for (const auto end = std::chrono::steady_clock::now() + 60s; !happened();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      if (peer) peer->turn();
      other_->turn();
      loop_.restart();
      loop_.run_one_for(5ms);
    }
  }
  void stands(Peer& peer) {
    until([&] { return peer.link.established(); }, &peer);
  }
  /// One that is taken.
  std::string say_a_frame(Peer& peer) {
    peer.link.send(heartbeat(1));
    std::string frame = peer.link.take_output();
    peer.say(frame);
    until([&] { return !beats_.empty(); }, &peer);
    return frame;
  }
  /// The peer is put out, that is counted once and under this reason alone, and the other pilot's
  /// link goes on.
  void must_be_put_out(Peer& peer, RejectionReason reason) {
    until([&] { return peer.is_put_out; }, &peer);
    for (const auto& [word, count] : server_.rejected_peers().counts())
      EXPECT_EQ(count, word == word_of(reason) ? 1U : 0U) << word;
    EXPECT_THAT(log_.str(), HasSubstr("rejected (" + std::string(word_of(reason)) + "): "));
    beats_.clear();
    other_->link.send(heartbeat(7));
    until([&] { return !beats_.empty(); });
    EXPECT_EQ(beats_, std::vector<std::uint64_t>{7});
    EXPECT_FALSE(other_->is_put_out);
  }

  std::string folder_ = testing::TempDir() + "/hpcbatch_XXXXXX";
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> before_;
  asio::io_context loop_;
  wire::Key key_ = wire::random_key();
  std::vector<std::uint64_t> beats_;
  LinkServer server_;
  std::unique_ptr<Peer> other_;
};

TEST_F(TurnedAwayTest, AWrongKey) {
  Peer peer = connect(kPeer, wire::random_key());
  must_be_put_out(peer, RejectionReason::WrongKey);
  EXPECT_FALSE(peer.link.established());
}

TEST_F(TurnedAwayTest, ANameThatNobodyHas) {
  Peer peer = connect({"hnobody", 0});
  must_be_put_out(peer, RejectionReason::UnknownPilot);
}

TEST_F(TurnedAwayTest, AllThatAPilotSaidSaidAgain) {
  Peer pilot = connect(kPeer);
  stands(pilot);
  pilot.link.send(heartbeat(1));
  until([&] { return !beats_.empty(); }, &pilot);
  Peer thief = connect_as_no_pilot();
  thief.say(pilot.said);
  must_be_put_out(thief, RejectionReason::WrongKey);
  EXPECT_EQ(thief.said, pilot.said);
  pilot.link.send(heartbeat(2));
  beats_.clear();
  until([&] { return !beats_.empty(); }, &pilot);
  EXPECT_EQ(beats_, std::vector<std::uint64_t>{2}) << "the pilot's own link goes on";
}

TEST_F(TurnedAwayTest, AFrameOfAnotherLink) {
  Peer pilot = connect(kPeer);
  stands(pilot);
  const std::string frame = say_a_frame(pilot);
  Peer again = connect(kPeer);
  stands(again);
  again.say(frame);
  must_be_put_out(again, RejectionReason::BrokenFrame);
}

TEST_F(TurnedAwayTest, AFrameSaidTwice) {
  Peer peer = connect(kPeer);
  stands(peer);
  const std::string frame = say_a_frame(peer);
  peer.say(frame);
  must_be_put_out(peer, RejectionReason::BrokenFrame);
}

TEST_F(TurnedAwayTest, AFrameThatHoldsNoMessage) {
  Peer peer = connect(kPeer);
  stands(peer);
  peer.link.send("\xFF\xFF\xFF");
  must_be_put_out(peer, RejectionReason::BrokenMessage);
}

TEST_F(TurnedAwayTest, FourGigabytesBeforeTheProof) {
  Peer peer = connect_as_no_pilot();
  peer.say(peer.link.take_output());
  const std::size_t before = most_memory();
  peer.say(std::string(24, 'h') + kFourGigabytes);
  must_be_put_out(peer, RejectionReason::TooLong);
  EXPECT_LT(most_memory() - before, std::size_t{1} << 20) << "room was made for it";
}

TEST_F(TurnedAwayTest, FourGigabytesBehindTheProof) {
  Peer peer = connect(kPeer);
  stands(peer);
  const std::size_t before = most_memory();
  peer.say(kFourGigabytes);
  must_be_put_out(peer, RejectionReason::TooLong);
  EXPECT_LT(most_memory() - before, std::size_t{1} << 20) << "room was made for it";
  EXPECT_THAT(log_.str(), HasSubstr("4294967295 bytes"));
}

TEST_F(TurnedAwayTest, FourGigabytesInsteadOfAHello) {
  Peer peer = connect_as_no_pilot();
  peer.say(kFourGigabytes);
  must_be_put_out(peer, RejectionReason::WrongHello);
}

TEST_F(TurnedAwayTest, ABrowser) {
  Peer peer = connect_as_no_pilot();
  peer.say("GET / HTTP/1.1\r\n\r\n");
  must_be_put_out(peer, RejectionReason::WrongHello);
}

TEST_F(TurnedAwayTest, AVersionThatIsNotSpoken) {
  Peer peer = connect(kPeer);
  peer.link = wire::Link::connecting(kPeer, key_, {900, 901});
  must_be_put_out(peer, RejectionReason::WrongVersion);
}

TEST_F(TurnedAwayTest, WhoSaysNothing) {
  Peer peer = connect_to_impatient();
  must_be_put_out(peer, RejectionReason::NoProof);
}

TEST_F(TurnedAwayTest, WhoStopsBehindTheHello) {
  Peer peer = connect_as_no_pilot();
  peer.say(peer.link.take_output());  // the engine's own door waits 5 s for more
  must_be_put_out(peer, RejectionReason::NoProof);
}

TEST_F(TurnedAwayTest, TheOldestOfTooManyWhoSayNothing) {
  Peer oldest = connect_as_no_pilot();
  std::vector<std::unique_ptr<Peer>> unproven_peers;
  unproven_peers.reserve(63);
  for (int i = 0; i < 63; ++i)
    unproven_peers.push_back(std::make_unique<Peer>(connect_as_no_pilot()));
  Peer pilot = connect(kPeer);
  stands(pilot);
  must_be_put_out(oldest, RejectionReason::TooManyAtATime);
}

TEST_F(TurnedAwayTest, AWrongKeyThatComesByARelay) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  asio::local::stream_protocol::socket relay(loop_, asio::local::stream_protocol(), ends[0]);
  relay.non_blocking(true);
  auto stream = std::make_shared<RelayStream>(
      loop_, ends[1],
      RelayStream::Callbacks{.listening = [](const std::string&) {},
                             .connected =
                                 [this](auto socket) {
                                   server_.adopt(std::move(socket),
                                                 {.listener = 1, .handshake = 30s});
                                 },
                             .ended = [](const std::string& why) { FAIL() << why; }});
  stream->start();
  using Frame = wire::RelayFrame::Kind;
  const auto say = [&](const wire::RelayFrame& frame) {
    std::string bytes;
    append(bytes, frame);
    asio::write(relay, asio::buffer(bytes));
  };
  wire::Link pilot = link_of(kPeer, wire::random_key());
  wire::RelayFrames frames;
  bool is_closed = false;
  say({.kind = Frame::Opened, .connection = 3});
  until([&] {
    if (pilot.has_output())
      say({.kind = Frame::Data, .connection = 3, .bytes = pilot.take_output()});
    std::array<char, 4096> room;
    boost::system::error_code error;
    const std::size_t bytes = relay.read_some(asio::buffer(room), error);
    if (error) return false;
    const auto heard = frames.receive({room.data(), bytes});
    EXPECT_TRUE(heard);
    for (const wire::RelayFrame& frame : *heard) {
      if (frame.kind == Frame::Data) (void)pilot.receive(frame.bytes);
      is_closed = is_closed || frame.kind == Frame::Closed;
    }
    return is_closed;
  });
  EXPECT_EQ(server_.rejected_peers().of(RejectionReason::WrongKey), 1U);
  stream->close();
}

TEST(RejectedPeers, TellsOnceAMinuteOfEachReason) {
  RejectedPeers away;
  const RejectedPeers::Time start{};
  EXPECT_EQ(away.count(RejectionReason::WrongKey, "a peer lied", start),
            "rejected (wrong_key): a peer lied");
  for (int i = 1; i < 60; ++i)
    EXPECT_FALSE(away.count(RejectionReason::WrongKey, "a peer lied", start + i * 1s));
  EXPECT_TRUE(away.count(RejectionReason::TooLong, "a peer was loud", start + 1s));
  EXPECT_EQ(away.count(RejectionReason::WrongKey, "another lied", start + 60s),
            "rejected (wrong_key): another lied; so were 59 others since the line before");
  EXPECT_EQ(away.count(RejectionReason::WrongKey, "one more", start + 200s),
            "rejected (wrong_key): one more");
  EXPECT_EQ(away.of(RejectionReason::WrongKey), 62U);
  EXPECT_EQ(away.of(RejectionReason::NoProof), 0U);
}

TEST(RejectedPeers, EachReasonHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (const auto& [word, count] : RejectedPeers{}.counts()) {
    EXPECT_FALSE(word.empty());
    words.insert(word);
  }
  EXPECT_EQ(words.size(), kRejectionReasons);
}

}  // namespace
}  // namespace hpcbatch
