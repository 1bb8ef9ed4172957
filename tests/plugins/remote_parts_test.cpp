// The pure parts of the transports to other machines, and the reading of files that are sent.
#include "../../plugins/transports/common/checksum.hpp"
#include "../../plugins/transports/common/file_scripts.hpp"
#include "../../plugins/transports/common/local_file.hpp"
#include "../../plugins/transports/common/login.hpp"
#include "../../plugins/transports/common/remote_shell.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
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
  const auto of = [](const char* program) {
    Checksum checksum(*sum_named(program));
    checksum.add("hello ");
    checksum.add("world\n");
    return checksum.text();
  };
  EXPECT_EQ(of("cksum"), "3733384285 12");
  EXPECT_EQ(of("sha256sum"), "a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447");
  EXPECT_EQ(of("b2sum"), "c71b05fd1d1c7bf7e928ff18e58db5193e9316416cc26ba9cc9094da80d7011e");
  EXPECT_EQ(sum_named("md5sum"), std::nullopt);
}

TEST(SumBeside, IsThatOfAllBytesInTheirOrder) {
  std::string all(20u << 20, '\0');
  for (std::size_t at = 0; at < all.size(); ++at) all[at] = static_cast<char>(at * at >> 11);
  for (const Sum sum : {Sum::Blake2b, Sum::Sha256, Sum::Cksum}) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{512} << 10,
                                   (std::size_t{512} << 10) + 1, all.size()}) {
      const std::string_view bytes(all.data(), size);
      Checksum at_once(sum);
      at_once.add(bytes);
      SumBeside beside(sum);
      for (std::size_t at = 0; at < size; at += 60'000) beside.add(bytes.substr(at, 60'000));
      EXPECT_EQ(beside.size(), size);
      EXPECT_EQ(beside.text(), at_once.text()) << size;
    }
  }
}

TEST(SumBeside, MayBeGivenUpInTheMiddle) {
  const std::string piece(1u << 20, 'x');
  SumBeside beside(Sum::Sha256);
  for (int i = 0; i < 8; ++i) beside.add(piece);
}

/// The scripts of large files where these programs are and no others.
class CopyScript : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "copy-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::filesystem::create_directory(root_ / "bin");
    std::vector<std::string> programs{"sh",    "mkdir", "find", "wc",    "dd", "head", "stat",
                                      "chmod", "sync",  "mv",   "sleep", "rm", "cksum"};
    if (GetParam() != std::string("cksum")) programs.emplace_back("sha256sum");
    if (GetParam() == std::string("b2sum")) programs.emplace_back("b2sum");
    for (const std::string& program : programs)
      std::filesystem::create_symlink("/usr/bin/" + program, root_ / "bin" / program);
    for (char& c : text_) c = static_cast<char>((state_ = state_ * 1664525 + 1013904223) >> 24);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string run(const std::string& script, const std::string& input) {
    std::ofstream(root_ / "script") << script;
    std::ofstream(root_ / "input", std::ios::binary) << input;
    const std::string at = root_.string();
    const std::string line = "PATH=" + at + "/bin; export PATH; sh " + at + "/script <" + at +
                             "/input 2>" + at + "/error; echo exit $?";
    std::FILE* pipe = ::popen(line.c_str(), "r");
    std::string output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
    ::pclose(pipe);
    return output;
  }
  std::string file(const std::string& name) const {
    std::ifstream in(root_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string sum() const {
    Checksum checksum(*sum_named(GetParam()));
    checksum.add(text_);
    return checksum.text();
  }

  std::filesystem::path root_;
  std::uint32_t state_{1};
  std::string text_ = std::string(300'001, '\0');
};

TEST_P(CopyScript, TakesAFileAndSumsItWhileItFlows) {
  const Copy copy{"", (root_ / "to/file").string(), 0640};
  const std::string script = receive_script(copy, text_.size(), "mark");
  const std::string program = GetParam();
  // Cut off, which is no error of the far side.
  EXPECT_EQ(run(script, text_.substr(0, 200'000)), "0 " + program + "\nexit 92\n");
  EXPECT_EQ(file("error"), "");
  const std::string rest = text_.substr(200'000 / kBlock * kBlock);
  EXPECT_EQ(run(script, rest + "same\n"), "200000 " + program + "\n" + sum() + "\nexit 0\n");
  EXPECT_TRUE(file("to/file") == text_);
  EXPECT_EQ(run(script, text_ + "other\n"), "0 " + program + "\n" + sum() + "\nexit 91\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_ / "to"), {}), 1);
}

TEST_P(CopyScript, GivesAFileAndSumsItWhileItFlows) {
  std::ofstream(root_ / "file", std::ios::binary) << text_;
  const std::string script = send_script((root_ / "file").string());
  for (const std::uint64_t block : {0U, 2U}) {
    const std::string said = run(script, std::to_string(block) + "\n");
    const auto line = said.find('\n') + 1;
    EXPECT_THAT(said.substr(0, line),
                testing::AllOf(testing::StartsWith("300001 "),
                               HasSubstr(std::string(" ") + GetParam() + "\n")));
    EXPECT_TRUE(said.substr(line) == text_.substr(block * kBlock) + "exit 0\n");
    EXPECT_EQ(file("error"), "sum " + sum() + "\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, CopyScript, testing::Values("b2sum", "sha256sum", "cksum"));

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
  EXPECT_TRUE(source->unchanged());
  std::ofstream(path, std::ios::app) << "after";
  const auto same = source->unchanged();
  const auto later = SourceFile::open(path);
  ::unlink(path.c_str());
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().text, HasSubstr("was changed while it was being read"));
  ASSERT_TRUE(later);
  EXPECT_NE(source->mark(), later->mark());
}

}  // namespace
}  // namespace hpcbatch
