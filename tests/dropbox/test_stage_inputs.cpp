// Inputs: only regular files that may be read come in; nothing hangs.
#include "dropbox/job_folder.hpp"
#include "dropbox/job_rights.hpp"
#include "folder_of_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kAny = ~std::uint64_t{0};

TEST(StageInputs, CopiesByteForByte) {
  const FolderOfTest folder;
  std::string text(3'000'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  folder.write("in", text);
  ASSERT_TRUE(stage_input(folder / "in", folder / "copy", ::geteuid(), kAny));
  EXPECT_EQ(folder.read("copy"), text);
  folder.write("empty", "");
  ASSERT_TRUE(stage_input(folder / "empty", folder / "copy2", ::geteuid(), kAny));
  EXPECT_EQ(look_at_input(folder / "in", ::geteuid())->size, 3'000'000U);
  EXPECT_FALSE(stage_input(folder / "in", folder / "copy", ::geteuid(), kAny))
      << "the target must not exist";
}

TEST(StageInputs, HolesStayHoles) {
  const FolderOfTest folder;
  folder.write("in", "head");
  constexpr off_t kMiddle = off_t{3} << 29;
  {
    std::fstream file(folder / "in", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kMiddle);
    file << "middle";
  }
  std::filesystem::resize_file(folder / "in", std::uintmax_t{3} << 30);
  const auto staged = stage_input(folder / "in", folder / "copy", ::geteuid(), kAny);
  ASSERT_TRUE(staged) << staged.error().text;
  EXPECT_EQ(*staged, std::uint64_t{3} << 30);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "copy").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, off_t{3} << 30);
  EXPECT_LT(status.st_blocks, 1'000);
  std::ifstream copy(folder / "copy", std::ios::binary);
  std::string text(6, ' ');
  copy.read(text.data(), 4);
  EXPECT_EQ(text.substr(0, 4), "head");
  copy.seekg(kMiddle);
  copy.read(text.data(), 6);
  EXPECT_EQ(text, "middle");
}

TEST(StageInputs, RefusesWhatIsTooLarge) {
  const FolderOfTest folder;
  folder.write("in", "12345");
  EXPECT_EQ(*stage_input(folder / "in", folder / "copy", ::geteuid(), 5), 5U);
  const auto refused = stage_input(folder / "in", folder / "copy2", ::geteuid(), 4);
  EXPECT_THAT(refused.error().text, HasSubstr("input_too_large"));
  EXPECT_FALSE(folder.has("copy2"));
}

TEST(StageInputs, RefusesWhatIsNoRegularFile) {
  const FolderOfTest folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(folder / "nothing", folder / "dangling");
  folder.make("folder");
  for (const std::string& bad :
       {folder / "fifo", folder / "dangling", folder / "folder", folder / "missing",
        std::string("/dev/null"), std::string("/dev/zero")}) {
    const auto staged = stage_input(bad, folder / "copy", ::geteuid(), kAny);
    ASSERT_FALSE(staged) << bad;
    EXPECT_THAT(staged.error().text, HasSubstr("input_missing: cannot use " + bad));
    EXPECT_FALSE(look_at_input(bad, ::geteuid()));
    EXPECT_FALSE(folder.has("copy"));
  }
}

/// Below a folder that everyone can search, which a folder of a test may not be.
struct InputOfAnother : testing::Test {
  InputOfAnother() {
    std::string name = "/tmp/hpcbatch_XXXXXX";
    place = ::mkdtemp(name.data());
    std::filesystem::create_directory(place + "/private");
    file = place + "/private/in";
    std::ofstream(file) << "secret";
    ::chmod(place.c_str(), 0755);
    ::chmod((place + "/private").c_str(), 0755);
    ::chmod(file.c_str(), 0644);
  }
  ~InputOfAnother() override { std::filesystem::remove_all(place); }
  bool is_given() const { return look_at_input(file, another).has_value(); }

  std::string place;
  std::string file;
  std::uint32_t another = 54'321;
};

TEST_F(InputOfAnother, IsWhatThatUserCouldRead) {
  EXPECT_TRUE(is_given());
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  EXPECT_THAT(look_at_input(file, another).error().text, HasSubstr("cannot read it"));
}

TEST_F(InputOfAnother, LiesWhereThatUserCouldGo) {
  ASSERT_EQ(::chmod((place + "/private").c_str(), 0700), 0);
  EXPECT_FALSE(is_given());
  ASSERT_EQ(::chmod((place + "/private").c_str(), 0701), 0);
  EXPECT_TRUE(is_given());
  ASSERT_EQ(::chmod(place.c_str(), 0700), 0);
  EXPECT_FALSE(is_given()) << "every folder above counts";
}

TEST_F(InputOfAnother, IsJudgedWhereALinkLeads) {
  ASSERT_EQ(::chmod((place + "/private").c_str(), 0700), 0);
  std::filesystem::create_symlink(file, place + "/link");
  EXPECT_FALSE(look_at_input(place + "/link", another));
}

/// `who` may do with it what `right` says, whatever the mode lets others do.
void set_acl(const std::string& path, std::uint32_t who, std::uint16_t right) {
  const std::array<AclEntry, 5> entries{{{AclEntry::Owner, 7, ~0U},
                                         {AclEntry::User, right, who},
                                         {AclEntry::OwnGroup, 5, ~0U},
                                         {AclEntry::Mask, 7, ~0U},
                                         {AclEntry::Others, 5, ~0U}}};
  std::string bytes("\2\0\0\0", 4);
  bytes.append(reinterpret_cast<const char*>(entries.data()), sizeof entries);
  ASSERT_EQ(::setxattr(path.c_str(), "system.posix_acl_access", bytes.data(), bytes.size(), 0), 0);
}

TEST_F(InputOfAnother, IsKeptFromHimByAnAcl) {
  set_acl(file, another, 0);
  EXPECT_FALSE(is_given());
  set_acl(file, another, 4);
  EXPECT_TRUE(is_given());
  set_acl(place + "/private", another, 0);
  EXPECT_FALSE(is_given()) << "of a folder above";
}

/// What an engine that is not root computes must be what the kernel says to one that is.
TEST_F(InputOfAnother, IsComputedAsTheKernelJudges) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can ask the kernel";
  for (const std::uint32_t who : {another, another + 1}) {
    for (const unsigned right : {0U, 4U, 5U, 7U}) {
      for (const mode_t mode : {0600U, 0640U, 0604U, 0644U}) {
        set_acl(file, who, static_cast<std::uint16_t>(right));
        ASSERT_EQ(::chmod(file.c_str(), mode), 0);
        struct stat status {};
        ASSERT_EQ(::stat(file.c_str(), &status), 0);
        const UserRights reader{.user = another, .groups = {another}};
        EXPECT_EQ(has_right(reader, status, read_acl(file.c_str()), S_IROTH), is_given())
            << who << " " << right << " " << mode;
      }
    }
  }
}

TEST_F(InputOfAnother, MayBeReachedAsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can make files of others";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  ASSERT_EQ(::chmod((place + "/private").c_str(), 0700), 0);
  ASSERT_EQ(::chown(file.c_str(), another, another), 0);
  EXPECT_FALSE(is_given());
  ASSERT_EQ(::chown((place + "/private").c_str(), another, another), 0);
  EXPECT_TRUE(is_given());
}

TEST_F(InputOfAnother, MayBeReachedThroughAGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can give files to groups";
  const struct passwd* const daemon = ::getpwnam("daemon");
  if (!daemon) GTEST_SKIP() << "there is no user daemon";
  another = daemon->pw_uid;
  ASSERT_EQ(::chmod((place + "/private").c_str(), 0710), 0);
  EXPECT_FALSE(is_given());
  ASSERT_EQ(::chown((place + "/private").c_str(), 0, daemon->pw_gid), 0);
  EXPECT_TRUE(is_given());
}

}  // namespace
}  // namespace hpcbatch
