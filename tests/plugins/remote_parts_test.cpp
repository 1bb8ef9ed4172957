// The pure parts of the transports to other machines.
#include "../../plugins/transports/common/login.hpp"
#include "../../plugins/transports/common/remote_shell.hpp"

#include <gmock/gmock.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

TEST(FramedAnswer, IsCutOutHoweverItArrives) {
  const Frame frame = new_frame();
  const std::string all = "Welcome\nhpcbatch-begin-0 1\n" + frame.begin() +
                          " 77\nthe hpcbatch-end-answer" + frame.end() +
                          " 3\nand what was left running";
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    FramedAnswer answer(frame);
    for (const Stream stream : {Stream::Output, Stream::Error}) {
      for (std::size_t at = 0; at < all.size(); at += piece)
        answer.received(stream, std::string_view(all).substr(at, piece));
    }
    ASSERT_TRUE(answer.is_whole()) << piece;
    EXPECT_EQ(answer.kept(Stream::Output), "the hpcbatch-end-answer");
    EXPECT_EQ(answer.kept(Stream::Error), "the hpcbatch-end-answer");
    EXPECT_EQ(answer.exit_code(), 3);
    EXPECT_EQ(answer.group(), 77);
  }
}

TEST(FramedAnswer, NothingThatCannotBeItsEndIsHeldBack) {
  const Frame frame = new_frame();
  FramedAnswer answer(frame);
  answer.received(Stream::Output, frame.begin() + " 1\n1234\n");
  EXPECT_EQ(answer.kept(Stream::Output), "1234\n");
  EXPECT_TRUE(answer.has_begun());
  EXPECT_FALSE(answer.is_whole());
}

TEST(FramedAnswer, KnowsWhatTheLoginShellSaidInstead) {
  FramedAnswer answer(new_frame());
  answer.received(Stream::Output, "This account is currently not available.\n");
  EXPECT_FALSE(answer.has_begun());
  EXPECT_THAT(answer.around(Stream::Output), HasSubstr("not available"));
}

TEST(BackOff, PausesEverLongerUpToAMinute) {
  BackOff back_off;
  const auto start = BackOff::Clock::now();
  EXPECT_FALSE(back_off.pause(start));
  back_off.failed({Error::Kind::Rejected, "no"}, start);
  const auto pause = back_off.pause(start);
  ASSERT_TRUE(pause);
  EXPECT_EQ(pause->kind, Error::Kind::Transient);
  EXPECT_THAT(pause->text, HasSubstr("no (login 1 that failed"));
  EXPECT_FALSE(back_off.pause(start + std::chrono::milliseconds(1001)));
  for (int i = 0; i < 20; ++i) back_off.failed({Error::Kind::Transient, "no"}, start);
  EXPECT_TRUE(back_off.pause(start + std::chrono::seconds(35)));
  EXPECT_FALSE(back_off.pause(start + std::chrono::seconds(61)));
  back_off.succeeded();
  EXPECT_FALSE(back_off.pause(start));
}

TEST(BackOff, WhoWasRefusedKnocksLessOften) {
  BackOff back_off;
  const auto start = BackOff::Clock::now();
  for (int i = 0; i < 20; ++i) back_off.failed({Error::Kind::Rejected, "no"}, start);
  EXPECT_TRUE(back_off.pause(start + std::chrono::seconds(350)));
  EXPECT_FALSE(back_off.pause(start + std::chrono::seconds(601)));
}

}  // namespace
}  // namespace hpcbatch
