// A program that waits for its work is there while the connection of its request is open.
#include "api/api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {
namespace {

using testing::ElementsAre;

struct FakeReply final : HttpReply {
  void answer(int status, const boost::json::value&) override { answered = status; }
  void text(std::string_view, const std::string&) override {}
  void line(const boost::json::value&) override {}
  void finish() override {}
  std::size_t unsent() const override { return 0; }
  void when_sent(std::function<void()>) override {}
  void on_gone(std::function<void()> then) override { hang_up = std::move(then); }

  int answered{0};
  std::function<void()> hang_up;
};

struct ReadersRoutesTest : testing::Test {
  ReadersRoutesTest() {
    add_readers(*routes, [this](const std::string& reader, bool is_there) {
      heard.push_back(reader + (is_there ? " comes" : " goes"));
    });
  }
  std::shared_ptr<FakeReply> ask(const std::string& reader) {
    HttpRequest request;
    request.method = "GET";
    request.path = {"v1", "readers"};
    request.query["reader"] = reader;
    auto reply = std::make_shared<FakeReply>();
    routes->handle(request, reply);
    return reply;
  }

  std::unique_ptr<Routes> routes = std::make_unique<Routes>();
  std::vector<std::string> heard;
};

TEST_F(ReadersRoutesTest, ARequestIsOpenUntilItsConnectionEnds) {
  const std::weak_ptr<FakeReply> one = ask("one");
  const auto other = ask("other");
  ASSERT_FALSE(one.expired()) << "a reply that is dropped is answered";
  EXPECT_EQ(other->answered, 0);
  EXPECT_THAT(heard, ElementsAre("one comes", "other comes"));
  one.lock()->hang_up();
  EXPECT_THAT(heard, ElementsAre("one comes", "other comes", "one goes"));
  EXPECT_TRUE(one.expired());
  EXPECT_EQ(other->answered, 0);
}

TEST_F(ReadersRoutesTest, AnEngineThatEndsHangsUpAndHearsNothingMore) {
  const auto held = ask("one");
  const std::weak_ptr<FakeReply> dropped = ask("other");
  routes.reset();
  EXPECT_TRUE(dropped.expired());
  held->hang_up();
  EXPECT_THAT(heard, ElementsAre("one comes", "other comes"));
}

}  // namespace
}  // namespace hpcbatch
