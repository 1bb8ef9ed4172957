// Both ends of a link that is carried by files: the pilot's carrier and the engine's exchange, in
// one folder.
#include "pilot/link/spool_carrier.hpp"
#include "pilot/site/file_service.hpp"
#include "wire/relay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class SpoolTest : public testing::Test {
 public:
  ~SpoolTest() override {
    // The carrier may write as long as it carries; a folder that fills again cannot be removed.
    socket_.reset();
    if (carrier_) carrier_->wait_until_written(std::chrono::steady_clock::now() + 2s);
    std::error_code left_to_the_carrier;
    fs::remove_all(directory_, left_to_the_carrier);
  }

 protected:
  SpoolTest() {
    std::string made = (fs::temp_directory_path() / "spool-XXXXXX").string();
    directory_ = ::mkdtemp(made.data());
    order_.set_prefix("hab");
    order_.set_most_bytes(1 << 20);
  }

  std::string spool() const { return directory_ + "/spool"; }
  void start() {
    fs::create_directory(spool());
    carrier_.emplace(spool(), wire::PilotName{"habc", 0});
    socket_ = carrier_->take_socket();
  }
  void say(const std::string& text) const {
    for (std::size_t done = 0; done < text.size();) {
      pollfd wait{socket_.get(), POLLOUT, 0};
      ASSERT_EQ(::poll(&wait, 1, 30'000), 1);
      const ssize_t count = ::send(socket_.get(), text.data() + done, text.size() - done, 0);
      ASSERT_GT(count, 0);
      done += static_cast<std::size_t>(count);
    }
  }
  /// What the engine hears, until `happened`.
  template <class Happened>
  void until(Happened happened) {
    for (const auto end = std::chrono::steady_clock::now() + 30s; !happened();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      report_ = *exchange(spool(), order_);
      for (const wire::SpoolPiece& piece : report_.pieces()) {
        if (piece.number() != heard_ + 1) continue;
        heard_ = piece.number();
        said_ += piece.data();
      }
      order_.clear_taken();
      wire::SpoolPiece* taken = order_.add_taken();
      if (report_.connections_size() == 1) taken->set_connection(report_.connections(0).name());
      taken->set_number(heard_);
    }
  }
  /// What the pilot is told.
  std::string hear(std::size_t length) const {
    std::string text;
    while (text.size() < length) {
      pollfd wait{socket_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 30'000) != 1) break;
      char room[4096];
      const ssize_t got = ::recv(socket_.get(), room, sizeof room, 0);
      if (got <= 0) break;
      text.append(room, static_cast<std::size_t>(got));
    }
    return text;
  }
  void tell(std::uint64_t number, const std::string& text) {
    wire::SpoolPiece* piece = order_.add_pieces();
    piece->set_connection(report_.connections(0).name());
    piece->set_number(number);
    piece->set_data(text);
  }

  std::string directory_;
  std::optional<SpoolCarrier> carrier_;
  Fd socket_;
  wire::SpoolOrder order_;
  wire::SpoolReport report_;
  std::string said_;
  std::uint64_t heard_{0};
};

TEST_F(SpoolTest, BytesGoBothWaysInTheirOrder) {
  start();
  say("hello");
  until([&] { return said_ == "hello"; });
  tell(1, "wel");
  tell(2, "come");
  (void)exchange(spool(), order_);
  EXPECT_EQ(hear(7), "welcome");
  std::thread speaker([this] { say(std::string(3 << 20, 'x')); });
  until([&] { return said_.size() == 5 + (3 << 20); });
  speaker.join();
}

TEST_F(SpoolTest, WhatIsSaidTwiceIsHeardOnce) {
  start();
  say("hello");
  until([&] { return said_ == "hello"; });
  tell(1, "one");
  (void)exchange(spool(), order_);
  EXPECT_EQ(hear(3), "one");
  tell(2, "two");
  (void)exchange(spool(), order_);  // the first piece again: its answer was lost
  EXPECT_EQ(hear(3), "two");
}

TEST_F(SpoolTest, ACloseReachesThePilotBehindTheLastWordsAndNothingStays) {
  start();
  say("hello");
  until([&] { return said_ == "hello"; });
  tell(1, "bye");
  order_.add_closed(report_.connections(0).name());
  (void)exchange(spool(), order_);
  EXPECT_EQ(hear(100), "bye");
  carrier_->wait_until_written(std::chrono::steady_clock::now() + 30s);
  EXPECT_TRUE(fs::is_empty(spool()));
}

TEST_F(SpoolTest, LastWordsAreWrittenBeforeAPilotEnds) {
  start();
  say("hello");
  until([&] { return said_ == "hello"; });
  tell(1, "welcome");
  (void)exchange(spool(), order_);
  EXPECT_EQ(hear(7), "welcome");
  say("last words");
  socket_.reset();
  carrier_->wait_until_written(std::chrono::steady_clock::now() + 30s);
  until([&] { return said_ == "hellolast words"; });
}

TEST_F(SpoolTest, ATryThatNobodyAnsweredLeavesNothing) {
  start();
  say("hello");
  socket_.reset();
  carrier_->wait_until_written(std::chrono::steady_clock::now() + 30s);
  EXPECT_TRUE(fs::is_empty(spool()));
}

TEST_F(SpoolTest, BehindAPieceThatCannotBeWrittenNoneIs) {
  start();
  say("hello");
  until([&] { return said_ == "hello"; });
  const std::string name = report_.connections(0).name();
  fs::create_directory(spool() + "/" + name + "/down/" + wire::piece_name(2));
  for (std::uint64_t number = 1; number <= 3; ++number) tell(number, "piece");
  const auto report = exchange(spool(), order_);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->connections_size(), 1);
  EXPECT_EQ(report->connections(0).put(), 1U);
  EXPECT_THAT(report->trouble(), testing::HasSubstr(wire::piece_name(2)));
  EXPECT_FALSE(fs::exists(spool() + "/" + name + "/down/" + wire::piece_name(3)));
}

TEST_F(SpoolTest, WhatCannotBeSeenIsNotGone) {
  std::ofstream(spool()) << "no folder";
  const auto report = exchange(spool(), order_);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text, testing::HasSubstr("cannot open " + spool()));
}

TEST_F(SpoolTest, AnotherEnginesConnectionsAreLeftAlone) {
  start();
  say("hello");
  until([&] { return said_ == "hello"; });
  wire::SpoolOrder other;
  other.set_prefix("hxy");
  other.set_most_bytes(1 << 20);
  other.add_closed(report_.connections(0).name());
  wire::SpoolPiece* piece = other.add_pieces();
  piece->set_connection("hxy/../../habc");
  piece->set_number(1);
  EXPECT_EQ(exchange(spool(), other)->connections_size(), 0);
  EXPECT_EQ(exchange(spool(), order_)->connections_size(), 1);
}

}  // namespace
}  // namespace hpcbatch::pilot
