// A relay between pilots that connect and an engine that is this test.
#include "pilot/site/relay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "pilot/link/ways_to_engine.hpp"
#include "wire/node_addresses.hpp"
#include "wire/whole_file.hpp"

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;
using Kind = wire::RelayFrame::Kind;
namespace fs = std::filesystem;
using testing::ElementsAre;

std::vector<std::string> chosen(const std::vector<std::string>& addresses) {
  std::vector<wire::NodeAddress> all;
  all.reserve(addresses.size());
  for (const std::string& address : addresses) all.push_back({"eth0", address});
  return wire::addresses_for_others(all);
}

TEST(RelayListener, ListensInsideTheClusterWhereThereIsAnInside) {
  EXPECT_THAT(chosen({"127.0.0.1", "130.1.2.3", "10.1.0.1", "fe80::1", "::1"}),
              ElementsAre("10.1.0.1"));
  EXPECT_THAT(chosen({"127.0.0.1", "130.1.2.3", "2001:db8::1"}),
              ElementsAre("130.1.2.3", "2001:db8::1"));
  EXPECT_THAT(
      chosen({"172.16.0.1", "172.32.0.1", "192.168.1.1", "100.64.0.1", "100.128.0.1", "fd00::1"}),
      ElementsAre("172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1"));
  EXPECT_THAT(chosen({"127.0.0.1", "::1", "169.254.1.1"}), ElementsAre());
}

TEST(RelayListener, TakesNoBridgeToANodesOwnGuestsForTheInside) {
  EXPECT_THAT(wire::addresses_for_others({{"lo", "127.0.0.1"},
                                          {"eno1", "130.1.2.3"},
                                          {"docker0", "172.17.0.1"},
                                          {"br-0123456789ab", "172.18.0.1"},
                                          {"virbr0", "192.168.122.1"}}),
              ElementsAre("130.1.2.3"));
  EXPECT_THAT(wire::addresses_for_others({{"bond0", "10.1.0.1"}, {"docker0", "172.17.0.1"}}),
              ElementsAre("10.1.0.1"));
}

class RelayTest : public testing::Test {
 protected:
  RelayTest() {
    std::signal(SIGPIPE, SIG_IGN);  // as its main() does
    std::string made = (fs::temp_directory_path() / "relay-XXXXXX").string();
    directory_ = ::mkdtemp(made.data());
  }
  void TearDown() override {
    stop();
    fs::remove_all(directory_);
  }

  void start() {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    engine_ = Fd(ends[0]);
    auto door = RelayListener::open(directory_, "127.0.0.1");
    ASSERT_TRUE(door) << door.error().text;
    thread_ = std::thread(
        [door = std::move(*door), in = Fd(::dup(ends[1])), out = Fd(ends[1])]() mutable {
          Relay(std::move(door), std::move(in), std::move(out)).run();
        });
    const auto frame = next();
    ASSERT_EQ(frame.kind, Kind::Listening);
    addresses_ = *wire::parse_relay_file(frame.bytes, "frame");
  }
  void stop() {
    engine_.reset();
    if (thread_.joinable()) thread_.join();
  }
  wire::RelayFrame next() {
    while (waiting_.empty()) {
      pollfd wait{engine_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 30'000) != 1) throw std::runtime_error("the relay says nothing");
      char room[65536];
      const ssize_t got = ::recv(engine_.get(), room, sizeof room, 0);
      if (got <= 0) throw std::runtime_error("the relay is gone");
      auto frames = frames_.receive({room, static_cast<std::size_t>(got)});
      if (!frames) throw std::runtime_error(frames.error().text);
      waiting_.insert(waiting_.end(), frames->begin(), frames->end());
    }
    wire::RelayFrame frame = waiting_.front();
    waiting_.erase(waiting_.begin());
    return frame;
  }
  void say(const wire::RelayFrame& frame) const {
    std::string bytes;
    append(bytes, frame);
    ASSERT_EQ(::send(engine_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  Fd connect() const {
    auto socket = start_connecting(addresses_.front());
    pollfd wait{socket->get(), POLLOUT, 0};
    ::poll(&wait, 1, 30'000);
    return std::move(*socket);
  }
  static std::string hear(const Fd& pilot, std::size_t length) {
    std::string text;
    char room[65536];
    while (text.size() < length) {
      pollfd wait{pilot.get(), POLLIN, 0};
      if (::poll(&wait, 1, 30'000) != 1) break;
      const ssize_t got = ::recv(pilot.get(), room, std::min(sizeof room, length - text.size()), 0);
      if (got <= 0) break;
      text.append(room, static_cast<std::size_t>(got));
    }
    return text;
  }

  std::string directory_;
  Fd engine_;
  std::thread thread_;
  wire::RelayFrames frames_;
  std::vector<wire::RelayFrame> waiting_;
  std::vector<wire::Address> addresses_;
};

TEST_F(RelayTest, ConnectionsAreKeptApart) {
  start();
  const Fd one = connect();
  EXPECT_EQ(next(), (wire::RelayFrame{.kind = Kind::Opened, .connection = 1}));
  const Fd two = connect();
  EXPECT_EQ(next(), (wire::RelayFrame{.kind = Kind::Opened, .connection = 2}));
  ASSERT_EQ(::send(two.get(), "two", 3, 0), 3);
  EXPECT_EQ(next(), (wire::RelayFrame{.kind = Kind::Data, .connection = 2, .bytes = "two"}));
  say({.kind = Kind::Data, .connection = 1, .bytes = "for one"});
  EXPECT_EQ(hear(one, 7), "for one");
  EXPECT_EQ(next(), (wire::RelayFrame{.kind = Kind::Taken, .connection = 1, .taken = 7}));
  say({.kind = Kind::Closed, .connection = 1});
  EXPECT_EQ(hear(one, 1), "") << "it is closed";
}

TEST_F(RelayTest, APilotThatGoesIsTold) {
  start();
  connect().reset();
  EXPECT_EQ(next().kind, Kind::Opened);
  EXPECT_EQ(next(), (wire::RelayFrame{.kind = Kind::Closed, .connection = 1}));
}

TEST_F(RelayTest, APilotMayNotSayMoreThanItsWindow) {
  start();
  const Fd pilot = connect();
  next();
  std::thread speaker([&] {
    const std::string text(wire::kRelayWindow * 2, 'x');
    for (std::size_t done = 0; done < text.size();) {
      pollfd wait{pilot.get(), POLLOUT, 0};
      ::poll(&wait, 1, 30'000);
      const ssize_t count =
          ::send(pilot.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (count > 0) done += static_cast<std::size_t>(count);
    }
  });
  std::size_t heard = 0;
  while (heard < wire::kRelayWindow) heard += next().bytes.size();
  EXPECT_EQ(heard, wire::kRelayWindow);
  // Another one is heard meanwhile.
  const Fd other = connect();
  EXPECT_EQ(next(), (wire::RelayFrame{.kind = Kind::Opened, .connection = 2}));
  say({.kind = Kind::Taken, .connection = 1, .taken = wire::kRelayWindow});
  while (heard < 2 * wire::kRelayWindow) heard += next().bytes.size();
  speaker.join();
}

TEST_F(RelayTest, ItsFileGoesWithItAndItsPortIsTakenAgain) {
  start();
  const auto file = wire::read_file(wire::relay_file(directory_), wire::Readers::OwnerOnly);
  ASSERT_TRUE(file);
  const auto before = addresses_;
  EXPECT_EQ(*wire::parse_relay_file(*file, "file"), before);
  stop();
  EXPECT_FALSE(fs::exists(wire::relay_file(directory_)));
  // One that was killed leaves it, and the next one listens where it did.
  ASSERT_TRUE(wire::replace_file(wire::relay_file(directory_), *file, wire::Readers::OwnerOnly));
  frames_ = {};
  start();
  EXPECT_EQ(addresses_, before);
}

TEST_F(RelayTest, AnEngineThatSaysWhatIsNoFrameIsLeft) {
  start();
  const Fd pilot = connect();
  next();
  ASSERT_EQ(::send(engine_.get(), "Welcome!", 9, 0), 9);
  thread_.join();
  EXPECT_EQ(hear(pilot, 1), "");
}

}  // namespace
}  // namespace hpcbatch::pilot
