// Inputs: only regular files that may be read come in; nothing hangs.
#include "dropbox/stage_inputs.hpp"
#include "folder_of_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(StageInputs, AnotherUserGetsOnlyWhatThatUserCouldRead) {
  const FolderOfTest folder;
  const std::string file = folder.write("in", "secret");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_THAT(look_at_input(file, ::geteuid() + 1).error().text, HasSubstr("it is not for user"));
  ASSERT_EQ(::chmod(file.c_str(), 0604), 0);
  EXPECT_TRUE(look_at_input(file, ::geteuid() + 1));
}

}  // namespace
}  // namespace hpcbatch
