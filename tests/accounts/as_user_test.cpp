// What is done in another's name: the kernel judges by his user and groups, and we stay who we are.
#include "accounts/accounts.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

namespace hpcbatch {
namespace {

constexpr uid_t kHe = 54'321;
constexpr gid_t kGroup = 54'400;

struct AsUser : testing::Test {
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can be another";
    std::string name = "/tmp/hpcbatch_XXXXXX";
    folder = ::mkdtemp(name.data());
    ::chmod(folder.c_str(), 0755);
    file = folder + "/file";
    std::ofstream(file) << "text";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  int open_as(const UserRights& who, Fd* opened = nullptr) const {
    return as_user(
        who, [this] { return ::open(file.c_str(), O_RDONLY | O_CLOEXEC); }, opened);
  }
  std::string folder;
  std::string file;
};

TEST_F(AsUser, TheKernelJudgesByUserAndGroups) {
  ::chmod(file.c_str(), 0640);
  EXPECT_EQ(open_as({.user = kHe, .groups = {}}), EACCES);
  ASSERT_EQ(::chown(file.c_str(), 0, kGroup), 0);
  EXPECT_EQ(open_as({.user = kHe, .groups = {}}), EACCES);
  EXPECT_EQ(open_as({.user = kHe, .groups = {kHe, kGroup}}), 0);
  ASSERT_EQ(::chown(file.c_str(), kHe, 0), 0);
  EXPECT_EQ(open_as({.user = kHe, .groups = {}}), 0);
  EXPECT_EQ(open_as({.user = kHe + 1, .groups = {}}), EACCES) << "root's own groups do not count";
}

TEST_F(AsUser, WhatWasOpenedComesBack) {
  Fd opened;
  ASSERT_EQ(open_as({.user = kHe, .groups = {}}, &opened), 0);
  char text[5] = {};
  EXPECT_EQ(::read(opened.get(), text, 4), 4);
  EXPECT_STREQ(text, "text");
  EXPECT_NE(::fcntl(opened.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(AsUser, WhatIsMadeIsHisAndWeStayWhoWeAre) {
  ASSERT_EQ(::chown(folder.c_str(), kHe, kGroup), 0);
  const std::string path = folder + "/his";
  EXPECT_EQ(as_user({.user = kHe, .groups = {kGroup}},
                    [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600); }),
            0);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, kHe);
  EXPECT_EQ(status.st_gid, kGroup);
  EXPECT_EQ(::geteuid(), 0U);
  EXPECT_EQ(::getegid(), 0U);
}

TEST_F(AsUser, OneThatDiesIsToldAsAnError) {
  EXPECT_EQ(as_user({.user = kHe, .groups = {}}, [] { return ::raise(SIGKILL); }), EIO);
}

TEST_F(AsUser, ManyThreadsAtOnce) {
  ::chmod(file.c_str(), 0600);
  ASSERT_EQ(::chown(file.c_str(), kHe, kHe), 0);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uid_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 10; ++n)
        wrong += open_as({.user = kHe + i % 2, .groups = {}}) != (i % 2 == 0 ? 0 : EACCES) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hpcbatch
