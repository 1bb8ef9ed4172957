// Files of a site, in place and by commands there: both do the same.
#include "sites/workspace_files.hpp"

#include "plugin_host/plugin_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// This machine, and nobody knows.
class FarTransport final : public Transport {
 public:
  explicit FarTransport(std::unique_ptr<Transport> real) : real_(std::move(real)) {}
  Result<CommandOutput> run(const CommandLine& command, Deadline deadline) override {
    CommandLine sent = command;
    if (loses_input) sent.input.resize(sent.input.size() / 2);
    if (!loses_input && alters_input) sent.input.back() ^= 1;
    return real_->run(sent, deadline);
  }
  Result<int> open(const CommandLine& command, Deadline deadline) override {
    return real_->open(command, deadline);
  }
  bool loses_input{false};
  bool alters_input{false};

 private:
  std::unique_ptr<Transport> real_;
};

class WorkspaceFiles : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string made = (fs::temp_directory_path() / "workspace-files-XXXXXX").string();
    directory_ = ::mkdtemp(made.data());
    auto real = plugins_.transport("shared_fs", "");
    ASSERT_TRUE(real) << real.error().text;
    if (GetParam()) {
      auto far = std::make_unique<FarTransport>(std::move(*real));
      far_ = far.get();
      transport_ = std::move(far);
    } else {
      transport_ = std::move(*real);
    }
  }
  void TearDown() override { fs::remove_all(directory_); }
  static Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }
  std::string at(const std::string& name) const { return directory_ + "/" + name; }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static mode_t mode_of(const std::string& path) {
    struct stat facts {};
    EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
    return facts.st_mode & 07777;
  }

  PluginHost plugins_{{PLUGINS}};
  std::string directory_;
  std::unique_ptr<Transport> transport_;
  FarTransport* far_{nullptr};
};

TEST_P(WorkspaceFiles, AppearWholeWithTheirModesAndFolders) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string odd = at("a/b/-odd 'name\" \\n\xff\n$x");
  const auto written = write_files(
      *transport_, {{odd, all + all, 0640}, {at("a/empty"), "", 0600}, {at("tool"), "x", 0755}},
      soon());
  ASSERT_TRUE(written) << written.error().text;
  EXPECT_EQ(text_of(odd), all + all);
  EXPECT_EQ(mode_of(odd), 0640u);
  EXPECT_EQ(mode_of(at("a/b")), 0700u);
  EXPECT_EQ(mode_of(at("a/empty")), 0600u);
  EXPECT_EQ(mode_of(at("tool")), 0755u);
  ASSERT_TRUE(write_files(*transport_, {{odd, "other", 0600}}, soon()));
  EXPECT_EQ(text_of(odd), "other");
  EXPECT_EQ(list_folder(*transport_, at("a/b"), soon())->size(), 1u) << "nothing stays beside it";
  const auto part = [&](std::uint64_t offset, std::uint64_t length) {
    const auto text = read_part(*transport_, odd, offset, length, soon());
    return text ? *text : text.error().text;
  };
  EXPECT_EQ(part(0, 3), "oth");
  EXPECT_EQ(part(3, 100), "er");
  EXPECT_EQ(part(5, 100), "");
  EXPECT_EQ(part(1000, 1), "");
  EXPECT_EQ(read_whole(*transport_, odd, soon()).value(), "other");
}

TEST_P(WorkspaceFiles, WhatAPersonMustMendIsSaidSo) {
  const auto full = write_files(*transport_, {{"/dev/full/x", "text", 0600}}, soon());
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, Error::Kind::Rejected) << full.error().text;
  EXPECT_THAT(full.error().text, HasSubstr("/dev/full"));
  fs::create_directory(at("folder"));
  EXPECT_FALSE(write_files(*transport_, {{at("folder"), "text", 0600}}, soon()));
  EXPECT_TRUE(fs::is_empty(at("folder")));
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  for (const std::string& path : {at("absent"), at("pipe")}) {
    const auto text = read_part(*transport_, path, 0, 1, soon());
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().kind, Error::Kind::Rejected) << text.error().text;
    EXPECT_THAT(text.error().text, HasSubstr(path));
  }
  EXPECT_FALSE(write_files(*transport_, {{at("late"), "", 0600}}, {}));
  EXPECT_FALSE(fs::exists(at("late")));
}

TEST_P(WorkspaceFiles, WhatDoesNotArriveAsItWasSentIsNotPutThere) {
  // Nothing stands between.
  if (!far_) return;
  ASSERT_TRUE(write_files(*transport_, {{at("file"), "before", 0600}}, soon()));
  far_->loses_input = true;
  EXPECT_FALSE(write_files(*transport_, {{at("file"), "after that", 0600}}, soon()));
  far_->loses_input = false;
  far_->alters_input = true;
  const auto altered = write_files(*transport_, {{at("file"), "after that", 0600}}, soon());
  ASSERT_FALSE(altered);
  EXPECT_THAT(altered.error().text, HasSubstr("is not what was sent"));
  EXPECT_EQ(text_of(at("file")), "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
}

TEST_P(WorkspaceFiles, AreListedAndRemovedButNotWhatLinksPointTo) {
  ASSERT_TRUE(write_files(
      *transport_,
      {{at("kept/file"), "", 0600}, {at("tree/a/b"), "", 0600}, {at("tree/.hidden"), "", 0600}},
      soon()));
  fs::create_symlink(at("kept"), at("tree/link"));
  fs::create_symlink(at("kept"), at("away"));
  EXPECT_TRUE(remove_files(*transport_, {at("away/")}, soon()));
  EXPECT_FALSE(fs::is_symlink(at("away")));
  EXPECT_EQ(list_folder(*transport_, at("tree"), soon()).value(),
            (std::vector<std::string>{".hidden", "a", "link"}));
  EXPECT_EQ(list_folder(*transport_, at("none"), soon()).value(), std::vector<std::string>());
  EXPECT_FALSE(list_folder(*transport_, at("kept/file"), soon()));
  EXPECT_TRUE(remove_files(*transport_, {at("tree"), at("absent")}, soon()));
  EXPECT_EQ(list_folder(*transport_, directory_, soon()).value(), std::vector<std::string>{"kept"});
  EXPECT_TRUE(fs::exists(at("kept/file")));
  EXPECT_TRUE(remove_files(*transport_, {at("tree")}, soon()));
}

INSTANTIATE_TEST_SUITE_P(HereAndFar, WorkspaceFiles, testing::Bool());

}  // namespace
}  // namespace hpcbatch
