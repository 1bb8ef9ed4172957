// Publishing: all outputs or none, regular files only, nothing outside what the owner may write.
#include "dropbox/publish.hpp"
#include "folder_of_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

struct PublishTest : testing::Test {
  PublishTest() {
    folder.make("staged");
    folder.make("out");
    ::chmod((folder / "out").c_str(), 0755);
    folder.write("staged/a", "first");
    folder.write("staged/b", "second");
  }

  Publication output(const std::string& key, const std::string& destination) const {
    return {.key = key, .staged = folder / ("staged/" + key), .destination = folder / destination};
  }
  std::string refusal(const std::vector<Publication>& outputs) const {
    const auto result = publish(outputs, rights);
    return result ? "published" : result.error().text;
  }
  std::size_t files_in_out() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder / "out"))
      ++count;
    return count;
  }

  FolderOfTest folder;
  PublishRights rights{.owner = ::geteuid(), .allow = {}, .dropbox = {}};
};

TEST_F(PublishTest, PutsAllThere) {
  folder.write("out/b.tsv", "old");
  ASSERT_EQ(::chmod((folder / "out/b.tsv").c_str(), 0640), 0);
  ASSERT_TRUE(check_destinations({output("a", "out/a.tsv"), output("b", "out/b.tsv")}, rights));
  EXPECT_EQ(refusal({output("a", "out/a.tsv"), output("b", "out/b.tsv")}), "published");
  EXPECT_EQ(folder.read("out/a.tsv"), "first");
  EXPECT_EQ(folder.read("out/b.tsv"), "second");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "out/b.tsv").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U) << "as the file was that it replaces";
  EXPECT_EQ(files_in_out(), 2U);
  EXPECT_EQ(refusal({output("a", "out/a.tsv"), output("b", "out/b.tsv")}), "published")
      << "a repeat does the same";
}

TEST_F(PublishTest, AllOrNone) {
  EXPECT_THAT(refusal({output("a", "out/a.tsv"), output("missing", "out/m.tsv")}),
              HasSubstr("output_missing: the tool did not write 'missing'"));
  EXPECT_EQ(files_in_out(), 0U);
  folder.make("out/taken");
  EXPECT_THAT(refusal({output("a", "out/a.tsv"), output("b", "out/taken")}),
              HasSubstr("no regular file stands there"));
  EXPECT_FALSE(folder.has("out/a.tsv"));
}

TEST_F(PublishTest, OnlyRegularFiles) {
  folder.make("staged/folder");
  std::filesystem::create_symlink("/etc/passwd", folder / "staged/link");
  EXPECT_THAT(refusal({output("folder", "out/x")}), HasSubstr("output_invalid"));
  EXPECT_THAT(refusal({output("link", "out/x")}), HasSubstr("output_invalid"));
  EXPECT_EQ(files_in_out(), 0U);
}

TEST_F(PublishTest, NeverThroughALink) {
  folder.write("victim", "precious");
  std::filesystem::create_symlink(folder / "victim", folder / "out/link");
  EXPECT_THAT(refusal({output("a", "out/link")}), HasSubstr("a symbolic link stands there"));
  EXPECT_EQ(folder.read("victim"), "precious");
}

TEST_F(PublishTest, AFolderThatOthersCanWriteMustBeAllowed) {
  ASSERT_EQ(::chmod((folder / "out").c_str(), 0777), 0);
  EXPECT_THAT(refusal({output("a", "out/a.tsv")}), HasSubstr("--allow"));
  EXPECT_EQ(files_in_out(), 0U);
  rights.allow = {folder / "out"};
  EXPECT_EQ(refusal({output("a", "out/a.tsv")}), "published");
}

TEST_F(PublishTest, AllowedFoldersAreComparedWithoutLinks) {
  ASSERT_EQ(::chmod((folder / "out").c_str(), 0777), 0);
  folder.make("allowed");
  std::filesystem::create_symlink(folder / "out", folder / "allowed/escape");
  rights.allow = {folder / "allowed"};
  EXPECT_THAT(refusal({output("a", "allowed/escape/a.tsv")}), HasSubstr("--allow"));
}

TEST_F(PublishTest, AnotherUsersFolderIsRefused) {
  rights.owner = ::geteuid() + 1;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  EXPECT_THAT(refusal({output("a", "out/a.tsv")}), HasSubstr("belongs to user"));
  EXPECT_EQ(files_in_out(), 0U);
}

TEST_F(PublishTest, TheSuperuserGivesTheFileToTheOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can give files away";
  rights.owner = 12345;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::chown((folder / "out").c_str(), 12345, 12345), 0);
  EXPECT_EQ(refusal({output("a", "out/a.tsv")}), "published");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "out/a.tsv").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12345U);
}

TEST_F(PublishTest, TheKernelSaysWhereTheSubmitterMayWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can be another";
  rights.owner = 12345;
  ASSERT_EQ(::chown((folder / "out").c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0700), 0);
  EXPECT_THAT(refusal({output("a", "out/a.tsv")}), HasSubstr("Permission denied"))
      << "his own folder, where he cannot go";
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod((folder / "out").c_str(), 0555), 0);
  EXPECT_THAT(refusal({output("a", "out/a.tsv")}), HasSubstr("user 12345 cannot write its folder"));
  ASSERT_EQ(::chmod((folder / "out").c_str(), 0300), 0);
  EXPECT_EQ(refusal({output("a", "out/a.tsv")}), "published") << "he need not be able to list it";
  EXPECT_EQ(files_in_out(), 1U);
}

TEST_F(PublishTest, HolesStayHoles) {
  std::filesystem::resize_file(folder / "staged/a", std::uintmax_t{3} << 30);
  ASSERT_EQ(refusal({output("a", "out/a.tsv")}), "published");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "out/a.tsv").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, off_t{3} << 30);
  EXPECT_LT(status.st_blocks, 1'000);
}

TEST_F(PublishTest, AnothersResultStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can give files away";
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  rights.allow = {folder / "out"};
  rights.owner = 12345;
  EXPECT_EQ(refusal({output("a", "out/a.tsv")}), "published");
  rights.owner = 12346;
  EXPECT_THAT(refusal({output("b", "out/a.tsv")}), HasSubstr("a file of user 12345"));
  EXPECT_EQ(folder.read("out/a.tsv"), "first");
  rights.owner = 12345;
  EXPECT_EQ(refusal({output("b", "out/a.tsv")}), "published") << "his own he may replace";
}

TEST_F(PublishTest, TheSubmitterCanReadItWhateverTheToolsUmask) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can give files away";
  rights.owner = 12345;
  rights.allow = {folder / "out"};
  ASSERT_EQ(::chmod((folder / "staged/a").c_str(), 0), 0);
  EXPECT_EQ(refusal({output("a", "out/a.tsv")}), "published");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "out/a.tsv").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0400U);
  EXPECT_EQ(status.st_uid, 12345U);
}

TEST_F(PublishTest, RefusesOddDestinations) {
  EXPECT_THAT(refusal({output("a", "out/x"), output("b", "out/../out/x")}),
              HasSubstr("it holds '..'"));
  EXPECT_THAT(refusal({output("a", "out/x"), output("b", "out/./x")}),
              HasSubstr("goes to the same file"));
  EXPECT_THAT(refusal({output("a", "nowhere/x")}), HasSubstr("its folder cannot be opened"));
  rights.dropbox = folder / "out";
  EXPECT_THAT(refusal({output("a", "out/x.job")}), HasSubstr("in the drop box itself"));
  EXPECT_EQ(files_in_out(), 0U);
}

TEST_F(PublishTest, OddNamesAreKept) {
  for (const std::string name :
       {"-rf", "a b", "*", "~", "new\nline", "\xF0\x9F\x98\x80", "'q'", "end "}) {
    EXPECT_EQ(refusal({output("a", "out/" + name)}), "published") << name;
    EXPECT_EQ(folder.read("out/" + name), "first");
  }
  EXPECT_EQ(refusal({output("a", "out/" + std::string(255, 'n'))}), "published");
}

}  // namespace
}  // namespace hpcbatch
