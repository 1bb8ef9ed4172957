// Inputs: only regular files that may be read come in; nothing hangs.
#include "dropbox/stage_inputs.hpp"
#include "folder_of_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

TEST(StageInputs, CopiesByteForByte) {
  const FolderOfTest folder;
  std::string text(3'000'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  folder.write("in", text);
  ASSERT_TRUE(stage_input(folder / "in", folder / "copy", ::geteuid()));
  EXPECT_EQ(folder.read("copy"), text);
  folder.write("empty", "");
  ASSERT_TRUE(stage_input(folder / "empty", folder / "copy2", ::geteuid()));
  EXPECT_EQ(look_at_input(folder / "in", ::geteuid())->size, 3'000'000U);
  EXPECT_FALSE(stage_input(folder / "in", folder / "copy", ::geteuid()))
      << "the target must not exist";
}

TEST(StageInputs, RefusesWhatIsNoRegularFile) {
  const FolderOfTest folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(folder / "nothing", folder / "dangling");
  folder.make("folder");
  for (const std::string& bad :
       {folder / "fifo", folder / "dangling", folder / "folder", folder / "missing",
        std::string("/dev/null"), std::string("/dev/zero")}) {
    const auto staged = stage_input(bad, folder / "copy", ::geteuid());
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
