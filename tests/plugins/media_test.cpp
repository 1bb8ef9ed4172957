// What the plugin `media` tells of files that ffmpeg and sox make here, and of what is none.
#include "hpcbatch/contract/tool.hpp"
#include "hpcbatch/input_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <sys/stat.h>

namespace hpcbatch {
namespace {

using contract::ToolCase;
using contract::ToolContract;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kTool =
    "tool: t\nplugin: media\ninputs: {input: {}}\noutputs: {out: {}}\n"
    "resources: {time: 2m + input.seconds * 0.4s}\ncommand: [cp, '{input}', '{out}']\n";

std::unique_ptr<Tool> made(const std::string& text = kTool) {
  return contract::load<Tool>(PLUGINS "/tools/media.so", text);
}

ToolRequest request(const std::string& input) {
  return {.tool = "t",
          .parameters = {{"tool_dir", "/t"}},
          .inputs = {{"input", {{.path = input}}}},
          .outputs = {{"out", "/o/x"}}};
}
INSTANTIATE_TEST_SUITE_P(Media, ToolContract,
                         testing::Values(ToolCase{.make = [] { return made(); },
                                                  .good = {request("/in/-a b.wav")},
                                                  .bad = {ToolRequest{.tool = "t"}}}));

class MediaTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::path pattern = fs::temp_directory_path() / "media-XXXXXX";
    std::string name = pattern.string();
    folder_ = ::mkdtemp(name.data());
    tool_ = made();
    facts_ = dynamic_cast<const InputFacts*>(tool_.get());
    ASSERT_NE(facts_, nullptr);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Runs it in the folder.
  void run(const std::string& command) const {
    ASSERT_EQ(std::system(
                  ("cd '" + folder_.string() + "' && { " + command + "; } </dev/null >out.log 2>&1")
                      .c_str()),
              0)
        << command << "\n"
        << std::ifstream(path("out.log")).rdbuf();
  }
  void ffmpeg(const std::string& words) const { run("ffmpeg -v error -y " + words); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::map<std::string, double> facts(const std::string& name) const {
    return facts_->facts_of({.path = path(name)});
  }
  // What this process has read of all files, in bytes (proc(5), /proc/pid/io).
  static std::uintmax_t bytes_read() {
    std::ifstream io("/proc/self/io");
    std::string key;
    std::uintmax_t bytes{0};
    io >> key >> bytes;
    EXPECT_EQ(key, "rchar:");
    return bytes;
  }
  double seconds(const std::string& name) const { return facts(name).at("seconds"); }
  std::string refusal(const std::string& name) const {
    try {
      const auto told = facts_->facts_of({.path = path(name)});
      return "it has " + std::to_string(told.at("seconds")) + " seconds";
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  fs::path folder_;
  std::unique_ptr<Tool> tool_;
  const InputFacts* facts_{nullptr};
};

TEST_F(MediaTest, SoundHasItsSecondsChannelsAndRate) {
  run("sox -n -r 22050 -c 2 a.wav synth 12.5 pluck E3");
  ffmpeg("-i a.wav a.mp3");
  ffmpeg("-i a.wav a.flac");
  ffmpeg("-i a.wav -c:a aac a.m4a");
  ffmpeg("-i a.wav -c:a libvorbis a.ogg");
  for (const char* name : {"a.wav", "a.mp3", "a.flac", "a.m4a", "a.ogg"}) {
    const auto told = facts(name);
    EXPECT_NEAR(told.at("seconds"), 12.5, 0.1) << name;
    EXPECT_EQ(told.at("channels"), 2) << name;
    EXPECT_EQ(told.at("sample_rate"), 22050) << name;
    EXPECT_EQ(told.at("frames"), 0) << name;
    EXPECT_EQ(told.at("width"), 0) << name;
  }
}

TEST_F(MediaTest, PicturesHaveTheirSizeAndFrames) {
  ffmpeg(
      "-f lavfi -i testsrc=size=320x240:rate=10:duration=7 -f lavfi -i sine=duration=5 -shortest "
      "-t 5 five.mp4");
  ffmpeg(
      "-f lavfi -i testsrc=size=320x240:rate=10:duration=7 -f lavfi -i sine=duration=3 long.mkv");
  ffmpeg("-f lavfi -i testsrc=size=64x48:rate=10:duration=1 -frames:v 1 still.png");
  ffmpeg("-i still.png still.jpg");
  auto told = facts("five.mp4");
  EXPECT_NEAR(told.at("seconds"), 5, 0.1);
  EXPECT_NEAR(told.at("frames"), 50, 1);
  EXPECT_EQ(told.at("width"), 320);
  EXPECT_EQ(told.at("height"), 240);
  EXPECT_EQ(told.at("channels"), 1);
  told = facts("long.mkv");
  EXPECT_NEAR(told.at("seconds"), 7, 0.1) << "the longer of sound and picture";
  EXPECT_NEAR(told.at("frames"), 70, 1);
  for (const char* name : {"still.png", "still.jpg"}) {
    told = facts(name);
    EXPECT_EQ(told.at("seconds"), 0) << name;
    EXPECT_EQ(told.at("frames"), 1) << name;
    EXPECT_EQ(told.at("width"), 64) << name;
    EXPECT_EQ(told.at("height"), 48) << name;
  }
}

TEST_F(MediaTest, ACoverIsNoPicture) {
  ffmpeg("-f lavfi -i testsrc=size=64x48 -frames:v 1 cover.jpg");
  ffmpeg(
      "-f lavfi -i sine=duration=9 -i cover.jpg -map 0 -map 1 -c:v copy -disposition:v "
      "attached_pic a.mp3");
  const auto told = facts("a.mp3");
  EXPECT_NEAR(told.at("seconds"), 9, 0.1);
  EXPECT_EQ(told.at("width"), 0);
  EXPECT_EQ(told.at("frames"), 0);
}

TEST_F(MediaTest, WhatSaysNoLengthIsMeasured) {
  // Half noise, half silence: frames of all sizes, where the first ones tell nothing of the rest.
  ffmpeg(
      "-f lavfi -i anoisesrc=duration=30 -f lavfi -i anullsrc=duration=90:sample_rate=48000 "
      "-filter_complex '[0][1]concat=n=2:v=0:a=1' -ar 44100 both.wav");
  ffmpeg("-i both.wav -q:a 2 -write_xing 0 vbr.mp3");
  ffmpeg("-i both.wav -c:a aac -q:a 1 raw.aac");
  ffmpeg("-i both.wav -c:a libopus -f matroska pipe:1 | cat > piped.mkv");
  ffmpeg("-i both.wav -f wav pipe:1 | cat > piped.wav");
  run("sox both.wav -t wav - | cat > sox.wav");
  ffmpeg(
      "-f lavfi -i testsrc=size=64x48:rate=10:duration=120 -i both.wav -f flv -c:v flv1 "
      "-flvflags no_duration_filesize pipe:1 | cat > piped.flv");
  ffmpeg("-f lavfi -i testsrc=size=64x48:rate=10:duration=120 -f mpegts pipe:1 | cat > a.ts");
  for (const char* name :
       {"vbr.mp3", "raw.aac", "piped.mkv", "piped.wav", "sox.wav", "piped.flv", "a.ts"})
    EXPECT_NEAR(seconds(name), 120, 1.5) << name;
}

TEST_F(MediaTest, TwoHoursAreToldWithoutHearingThem) {
  ffmpeg("-f lavfi -i sine=duration=60 -b:a 32k -ac 1 -ar 16000 minute.mp3");
  ffmpeg("-stream_loop 119 -i minute.mp3 -c copy long.mp3");
  ffmpeg("-i long.mp3 -c copy -write_xing 0 raw.mp3");
  ffmpeg("-i long.mp3 -c copy -f matroska pipe:1 | cat > piped.mkv");
  run("sox -n -r 16000 minute.wav synth 60 sine 440");
  ffmpeg("-stream_loop 119 -i minute.wav -c copy long.wav");
  // A file that says its length is asked for it, one that does not is read once.
  for (const auto& [name, part] :
       {std::pair{"long.mp3", 0.01}, {"long.wav", 0.01}, {"raw.mp3", 1.01}, {"piped.mkv", 1.01}}) {
    const auto before = bytes_read();
    EXPECT_NEAR(seconds(name), 7200, 72) << name;
    EXPECT_LT(static_cast<double>(bytes_read() - before),
              part * static_cast<double>(fs::file_size(path(name))))
        << name;
  }
}

TEST_F(MediaTest, WhatIsCutOffIsRefusedOrCounted) {
  run("sox -n -r 16000 a.wav synth 100 sine 440");
  ffmpeg("-i a.wav -c:a aac a.m4a");
  ffmpeg("-i a.wav a.mp3");
  const std::string wav = read("a.wav"), m4a = read("a.m4a"), mp3 = read("a.mp3");
  write("half.wav", wav.substr(0, wav.size() / 2));
  write("half.m4a", m4a.substr(0, m4a.size() / 2));
  write("half.mp3", mp3.substr(0, mp3.size() / 2));
  write("head.wav", wav.substr(0, 44));
  write("part.wav", wav.substr(0, 20));
  EXPECT_NEAR(seconds("half.wav"), 50, 0.1) << "not what its head claims";
  EXPECT_THAT(refusal("half.m4a"),
              AllOf(HasSubstr(path("half.m4a")), HasSubstr("it may be cut off or damaged")));
  EXPECT_THAT(refusal("head.wav"), HasSubstr("it may be cut off or damaged"));
  EXPECT_THAT(refusal("part.wav"), HasSubstr("knows no such kind of file"));
  EXPECT_GE(seconds("half.mp3"), 50) << "never less than there is";
}

TEST_F(MediaTest, WhatIsNoMediaIsRefusedInOneSentence) {
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same bytes each time
  std::string noise(100'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  std::string letters;
  for (int i = 0; i < 5000; ++i)
    letters += "These are words of a letter, line " + std::to_string(i) + ".\n";
  write("empty.wav", "");
  write("letter.txt", letters);
  write("short.txt", "hello\n");
  write("noise.mp3", noise);
  write("zeros.mp4", std::string(100'000, '\0'));
  write("words.srt",
        "1\n00:00:01,000 --> 00:00:04,000\nhello\n\n2\n00:01:01,000 --> 00:02:04,000\nyou\n");
  EXPECT_THAT(refusal("empty.wav"), HasSubstr("it is empty"));
  for (const char* name : {"letter.txt", "short.txt", "noise.mp3", "zeros.mp4"})
    EXPECT_THAT(refusal(name),
                AllOf(HasSubstr(path(name)), HasSubstr("knows no such kind of file")));
  EXPECT_THAT(refusal("words.srt"), HasSubstr("neither sound nor pictures"));
  ASSERT_EQ(::mkfifo(path("fifo.wav").c_str(), 0600), 0);
  EXPECT_THAT(refusal("fifo.wav"), HasSubstr("it is no regular file"));
  EXPECT_THAT(refusal("."), HasSubstr("it is no regular file"));
  EXPECT_THAT(refusal("gone.wav"), HasSubstr("No such file"));
}

TEST_F(MediaTest, NoOtherFileIsOpened) {
  run("sox -n -r 16000 secret.wav synth 77 sine 440");
  ffmpeg("-i secret.wav -c:a aac -f mpegts secret.ts");
  write("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:80\n#EXTINF:77,\n" + path("secret.ts") +
                         "\n#EXT-X-ENDLIST\n");
  write("list.txt", "ffconcat version 1.0\nfile secret.wav\n");
  for (const char* name : {"list.m3u8", "list.txt"})
    EXPECT_THAT(refusal(name), AllOf(HasSubstr("cannot tell"), Not(HasSubstr("77"))));
  // Names that mean something to libavformat are names.
  for (const std::string name :
       {"-a.wav", "a%03d.wav", "concat:secret.wav|secret.wav", "http:a b.wav"}) {
    run("sox -n -r 16000 -t wav './" + name + "' synth 3 sine 440");
    EXPECT_NEAR(seconds(name), 3, 0.01) << name;
  }
}

}  // namespace
}  // namespace hpcbatch
