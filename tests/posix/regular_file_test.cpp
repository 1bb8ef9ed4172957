// What may stand at a name that others choose: opened and read is a regular file alone, at once and within its bound.
#include "posix/files.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include <sys/socket.h>
#include <sys/un.h>
#include <cerrno>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::size_t kMost = 1000;

class RegularFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/hpcbatch_XXXXXX";
    path_ = ::mkdtemp(name.data());
    folder_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::ofstream(path_ + "/file") << "text";
  }
  void TearDown() override { fs::remove_all(path_); }
  int error_of(const std::string& name, Links links = Links::Refused) const {
    return read_regular(folder_.get(), name, kMost, links).error;
  }

  std::string path_;
  Fd folder_;
};

TEST_F(RegularFileTest, ReadsAFileWhole) {
  const RegularText read = read_regular(folder_.get(), "file", kMost);
  EXPECT_EQ(read.error, 0);
  EXPECT_EQ(read.text, "text");
  EXPECT_EQ(read.facts.st_size, 4);
  EXPECT_EQ(read_regular(AT_FDCWD, path_ + "/file", 4).text, "text");
  EXPECT_EQ(error_of("none"), ENOENT);
  EXPECT_EQ(error_of(std::string("file\0x", 6)), EINVAL);
}

TEST_F(RegularFileTest, OpensNothingElse) {
  ASSERT_EQ(::mkfifo((path_ + "/fifo").c_str(), 0600), 0);
  fs::create_directory(path_ + "/folder");
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{AF_UNIX, {}};
  (path_ + "/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const char* name : {"fifo", "folder", "socket"}) {
    for (const Links links : {Links::Refused, Links::Followed}) {
      EXPECT_EQ(error_of(name, links), kNotRegular) << name;
      EXPECT_EQ(open_regular(folder_.get(), name, O_WRONLY | O_CREAT, links).error, kNotRegular)
          << name;
    }
  }
  EXPECT_EQ(why_not_regular(kNotRegular), "it is no regular file");
}

TEST_F(RegularFileTest, FollowsALinkOnlyWhereThatIsMeant) {
  fs::create_symlink("file", path_ + "/link");
  fs::create_symlink("/dev/zero", path_ + "/zero");
  fs::create_symlink("made", path_ + "/dangling");
  EXPECT_EQ(error_of("link"), ELOOP);
  EXPECT_THAT(why_not_regular(ELOOP), HasSubstr("not followed"));
  EXPECT_EQ(error_of("link", Links::Followed), 0);
  EXPECT_EQ(error_of("zero"), ELOOP);
  EXPECT_EQ(error_of("zero", Links::Followed), kNotRegular);
  EXPECT_EQ(open_regular(folder_.get(), "dangling", O_WRONLY | O_CREAT).error, ELOOP);
  EXPECT_FALSE(fs::exists(path_ + "/made"));
}

TEST_F(RegularFileTest, ReadsNoMoreThanWasSaid) {
  fs::resize_file(path_ + "/file", kMost);
  EXPECT_EQ(error_of("file"), 0);
  fs::resize_file(path_ + "/file", kMost + 1);
  EXPECT_EQ(error_of("file"), EFBIG);
  fs::resize_file(path_ + "/file", std::uintmax_t{1} << 40);
  EXPECT_EQ(error_of("file"), EFBIG);
  EXPECT_EQ(read_regular(AT_FDCWD, "/proc/self/maps", 10).error, EFBIG)
      << "it says that it has no bytes";
}

TEST_F(RegularFileTest, SaysWhatTheSystemRefused) {
  if (::geteuid() == 0 && ::seteuid(65534) != 0) GTEST_SKIP() << "cannot be anybody else";
  const int error = read_regular(AT_FDCWD, "/etc/shadow", 1U << 20).error;
  ASSERT_EQ(::seteuid(::getuid()), 0);
  EXPECT_EQ(error, EACCES);
}

}  // namespace
}  // namespace hpcbatch
