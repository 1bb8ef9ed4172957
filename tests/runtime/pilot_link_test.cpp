// The engine's end of a link to a pilot, over a pair of sockets.
#include "links/link_server.hpp"
#include "wire/wire.pb.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/connect_pair.hpp>

#include <gtest/gtest.h>

#include <array>

namespace hpcbatch {
namespace {

class PilotLinkTest : public testing::Test {
 protected:
  PilotLinkTest() : engines_(loop_), pilots_(loop_) {
    asio::local::connect_pair(engines_, pilots_);
    pilots_.non_blocking(true);
    link_ = std::make_shared<PilotLink>(
        asio::generic::stream_protocol::socket(std::move(engines_)),
        wire::Link::accepting([this](const wire::PilotName&) { return std::optional(key_); }),
        Patience{}, [](const auto&, const wire::ToEngine&) {}, [](const auto&) {});
    link_->start();
  }
  ~PilotLinkTest() override { link_->close(); }

  /// Both ends in turn until the pilot has this many messages, or nothing comes any more.
  void carry(std::size_t messages) {
    std::array<char, 65536> buffer{};
    for (int idle = 0; idle < 1000 && (messages_.size() < messages || !pilot_.established());) {
      loop_.poll();
      loop_.restart();
      boost::system::error_code error;
      const std::string out = pilot_.take_output();
      if (!out.empty()) asio::write(pilots_, asio::buffer(out), error);
      const std::size_t read = pilots_.read_some(asio::buffer(buffer), error);
      idle = read == 0 ? idle + 1 : 0;
      auto got = pilot_.receive({buffer.data(), read});
      ASSERT_TRUE(got) << got.error().text;
      messages_.insert(messages_.end(), got->begin(), got->end());
    }
  }

  asio::io_context loop_;
  asio::local::stream_protocol::socket engines_, pilots_;
  wire::Key key_ = wire::random_key();
  wire::Link pilot_ = wire::Link::connecting({"habcde123456789", 0}, key_);
  std::shared_ptr<PilotLink> link_;
  std::vector<std::string> messages_;
};

TEST_F(PilotLinkTest, SendsWhatIsSmallInOneFrame) {
  carry(0);
  for (int i = 0; i < 100; ++i) link_->outgoing().add_kill();
  carry(1);
  carry(2);
  EXPECT_EQ(messages_.size(), 1U);
}

TEST_F(PilotLinkTest, CutsWhatIsTooLargeForOneFrame) {
  carry(0);
  const std::string large(3U << 20, 'x');
  for (int i = 0; i < 8; ++i) link_->outgoing(large.size()).add_start()->add_argv(large);
  link_->outgoing().set_end(true);
  carry(8);
  ASSERT_EQ(messages_.size(), 8U);
  int starts = 0;
  wire::ToPilot message;
  for (const std::string& text : messages_) {
    ASSERT_TRUE(message.ParseFromString(text));
    starts += message.start_size();
  }
  EXPECT_EQ(starts, 8);
  EXPECT_TRUE(message.end()) << "the order is kept";
}

}  // namespace
}  // namespace hpcbatch
