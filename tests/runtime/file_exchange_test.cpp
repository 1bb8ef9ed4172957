// What the engine sends over a stream and hears on it, where the other end is the test.
#include "staging/file_exchange.hpp"

#include "plugin_host/plugin_host.hpp"
#include "posix/files.hpp"
#include "wire/checksum.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string hash_of(const std::string& text) {
  wire::ContentHash hash;
  hash.add(text);
  return hash.digits();
}

class FileExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = (fs::temp_directory_path() / "file-exchange-XXXXXX").string();
    directory_ = ::mkdtemp(made.data());
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    tools_.stream = std::make_unique<FileStream>(Fd(ends[0]));
    there_ = Fd(ends[1]);
  }
  void TearDown() override { fs::remove_all(directory_); }

  /// What the program there has said before it was asked.
  void said(const std::vector<wire::FilesReport>& reports) const {
    std::string frames;
    for (const auto& report : reports)
      wire::append_file_frame(frames, wire::FileFrame::Kind::Report, report.SerializeAsString());
    ASSERT_EQ(write_all(there_.get(), frames), 0);
  }
  StagedFiles::Sending file(const std::string& text, const std::string& key) const {
    std::string path = directory_ + "/input";
    std::ofstream(path) << text;
    const Fd fd(open_to_read(path));
    return {key, path, state_of(fd.get()).value_or(FileState{})};
  }
  static Deadline soon() { return std::chrono::steady_clock::now() + 5s; }

  std::string directory_;
  PilotProgram program_{HPCBATCH_PILOT};
  FileTools tools_;
  Fd there_;
};

TEST_F(FileExchangeTest, ASmallFileIsHashedAgainHoweverOldItIs) {
  // Two changes within a tick look like one; long after that they still do.
  const std::string old = std::string(PLUGINS) + "/transports/shared_fs.so";
  const Fd fd(open_to_read(old));
  const auto state = state_of(fd.get());
  ASSERT_TRUE(state);
  auto exchange = std::make_shared<FileExchange>();
  exchange->plan.small = {{wire::store_key(hash_of("as it was"), "x"), old, *state}};
  ExchangeQueue queue([](const std::shared_ptr<FileExchange>&) {});
  queue.add(exchange);
  said({wire::FilesReport()});
  const auto done = exchange_files(tools_, program_, directory_, queue, soon());
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(exchange->outcome.changed, ElementsAre(0u));
  EXPECT_THAT(exchange->outcome.put, IsEmpty());
}

TEST_F(FileExchangeTest, ALargeFileGoesUnderTheKeyOfItsBytesAlone) {
  said({wire::FilesReport()});
  const auto sent =
      send_large(tools_, program_, directory_,
                 file("as it is", wire::store_key(hash_of("as it was"), "input")), soon());
  EXPECT_TRUE(sent.result) << sent.result.error().text;
  EXPECT_TRUE(sent.is_changed);
}

TEST_F(FileExchangeTest, AStoreThatTakesWhatWasNotSentYetIsNotBelieved) {
  wire::FilesReport taken;
  taken.add_adopt();
  said({wire::FilesReport(), taken});
  const auto sent = send_large(tools_, program_, directory_, file("text", ""), soon());
  ASSERT_FALSE(sent.result);
  EXPECT_FALSE(sent.hash);
}

TEST_F(FileExchangeTest, WhatReadsMuchMayBeSilentForLonger) {
  EXPECT_EQ(patience_with(0), 150s);
  EXPECT_EQ(patience_with(std::uint64_t{1} << 40), 150s + 65536s);
  EXPECT_LE(patience_with(UINT64_MAX), 150s + 240h);
}

TEST_F(FileExchangeTest, WhatTheProgramSaysWhereItFailsIsCut) {
  std::string frame;
  wire::append_file_frame(frame, wire::FileFrame::Kind::Failed, std::string(100'000, '!'));
  ASSERT_EQ(write_all(there_.get(), frame), 0);
  const auto report = tools_.stream->receive_report(soon());
  ASSERT_FALSE(report);
  EXPECT_LT(report.error().text.size(), 1000u);
}

TEST_F(FileExchangeTest, AProgramThatIsNotWhatItWasIsNotPutThere) {
  PluginHost plugins({PLUGINS});
  const auto transport = plugins.transport("shared_fs", "");
  ASSERT_TRUE(transport) << transport.error().text;
  const std::string workspace = directory_ + "/workspace";
  fs::create_directory(workspace);
  const std::string own = directory_ + "/program";
  std::ofstream(own) << "#!/bin/sh\n";
  const PilotProgram program(own);
  const auto expect_refusal = [&] {
    const auto put = program.deliver(**transport, workspace, soon());
    ASSERT_FALSE(put);
    EXPECT_THAT(put.error().text, HasSubstr("restart the engine"));
    EXPECT_FALSE(fs::exists(program.path_in(workspace)));
  };
  std::ofstream(own) << "another";
  expect_refusal();
  fs::remove(own);
  expect_refusal();
  std::ofstream(own) << "#!/bin/sh\n";
  const auto put = program.deliver(**transport, workspace, soon());
  EXPECT_TRUE(put) << put.error().text;
  EXPECT_TRUE(fs::exists(program.path_in(workspace)));
}

}  // namespace
}  // namespace hpcbatch
