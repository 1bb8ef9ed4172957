// The pure parts of the transports to other machines, and the reading of files that are sent.
#include "../../plugins/transports/common/back_off.hpp"
#include "../../plugins/transports/common/checksum.hpp"
#include "../../plugins/transports/common/file_scripts.hpp"
#include "../../plugins/transports/common/framed_answer.hpp"
#include "../../plugins/transports/common/local_file.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include <unistd.h>

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

TEST(Checksum, IsThatOfThePrograms) {
  Checksum checksum;
  checksum.add("hello ");
  checksum.add("world\n");
  EXPECT_EQ(checksum.cksum(), "3733384285 12");
  EXPECT_EQ(checksum.sha256(), "a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447");
}

TEST(ScriptError, TellsWhatPassesFromWhatAPersonMustMend) {
  const auto kind = [](const std::string& said) { return script_error("cannot", said).kind; };
  EXPECT_EQ(kind("dd: error writing 'a': No space left on device\n"), Error::Kind::Transient);
  EXPECT_EQ(kind("dd: error writing 'a': Disk quota exceeded\n"), Error::Kind::Transient);
  EXPECT_EQ(kind("mkdir: cannot create directory 'a': Permission denied\n"), Error::Kind::Rejected);
  EXPECT_EQ(script_error("cannot write a", "1+0 records in\n1+0 records out\ndd: no\n").text,
            "cannot write a: dd: no");
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

TEST(SourceFile, OneThatIsChangedWhileItIsReadIsAnError) {
  const std::string path = testing::TempDir() + "source-" + std::to_string(::getpid());
  std::ofstream(path) << "before";
  const auto source = SourceFile::open(path);
  ASSERT_TRUE(source);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  EXPECT_TRUE(source->content(deadline));
  std::ofstream(path, std::ios::app) << "after";
  const auto content = source->content(deadline);
  ::unlink(path.c_str());
  ASSERT_FALSE(content);
  EXPECT_THAT(content.error().text, HasSubstr("was changed while it was being read"));
}

}  // namespace
}  // namespace hpcbatch
