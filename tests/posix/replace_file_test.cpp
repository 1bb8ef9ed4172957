// A replaced file is the old one or the new one, and nothing is left beside it.
#include "posix/files.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

class ReplaceFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/hpcbatch_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  mode_t mode(const std::string& name) const {
    struct stat status {};
    ::stat(path(name).c_str(), &status);
    return status.st_mode & 07777;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_))
      all.push_back(entry.path().filename());
    return all;
  }

  std::string folder_;
};

TEST_F(ReplaceFile, TheNewBytesAreThereAndNothingElse) {
  EXPECT_EQ(replace_file(AT_FDCWD, path("a"), "one", {}), 0);
  EXPECT_EQ(text("a"), "one");
  EXPECT_EQ(mode("a"), 0600U);
  EXPECT_EQ(replace_file(AT_FDCWD, path("a"), "", {.sync_folder = true}), 0);
  EXPECT_EQ(text("a"), "");
  const Fd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(replace_file(folder.get(), "b", "two", {.sync_folder = true}), 0);
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b"));
}

TEST_F(ReplaceFile, TheUmaskCountsWhereItIsToCount) {
  const mode_t before = ::umask(0077);
  EXPECT_EQ(replace_file(AT_FDCWD, path("a"), "", {.mode = 0666}), 0);
  EXPECT_EQ(replace_file(AT_FDCWD, path("b"), "", {.mode = 0755, .against_umask = true}), 0);
  ::umask(before);
  EXPECT_EQ(mode("a"), 0600U);
  EXPECT_EQ(mode("b"), 0755U);
}

TEST_F(ReplaceFile, WhatCannotBeWrittenLeavesTheOldFile) {
  ASSERT_EQ(replace_file(AT_FDCWD, path("a"), "old", {}), 0);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{2, before.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &little);
  EXPECT_EQ(replace_file(AT_FDCWD, path("a"), "longer", {}), EFBIG);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(text("a"), "old");
  EXPECT_THAT(names(), UnorderedElementsAre("a"));
  EXPECT_EQ(replace_file(AT_FDCWD, path("absent/a"), "", {}), ENOENT);
  fs::create_directory(path("d"));
  EXPECT_EQ(replace_file(AT_FDCWD, path("d"), "", {}), EISDIR);
  EXPECT_THAT(names(), UnorderedElementsAre("a", "d"));
}

TEST_F(ReplaceFile, AFileAtTheEndOfALinkIsReplacedWhereTheLinkLies) {
  ASSERT_EQ(replace_file(AT_FDCWD, path("a"), "old", {}), 0);
  fs::create_symlink("a", path("link"));
  EXPECT_EQ(replace_file(AT_FDCWD, path("link"), "new", {}), 0);
  EXPECT_FALSE(fs::is_symlink(path("link")));
  EXPECT_EQ(text("a"), "old");
}

TEST_F(ReplaceFile, TheFileMayBeKeptOpen) {
  Fd file;
  ASSERT_EQ(replace_file(AT_FDCWD, path("a"), "x", {.hidden = true}, &file), 0);
  struct stat opened {
  }, named{};
  ASSERT_EQ(::fstat(file.get(), &opened), 0);
  ASSERT_EQ(::stat(path("a").c_str(), &named), 0);
  EXPECT_EQ(opened.st_ino, named.st_ino);
}

}  // namespace
}  // namespace hpcbatch
