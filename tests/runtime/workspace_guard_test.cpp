// Folders that another user could put programs into, as a real shell finds them.
#include "sites/workspace_guard.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

class WorkspaceGuardTest : public ::testing::Test {
 protected:
  WorkspaceGuardTest() {
    std::string made = (fs::temp_directory_path() / "guard XXXXXX").string();
    workspace_ = ::mkdtemp(made.data());
  }
  void TearDown() override { fs::remove_all(workspace_); }

  void folder(const std::string& name, mode_t mode) const {
    ::mkdir((workspace_ + name).c_str(), 0700);
    ::chmod((workspace_ + name).c_str(), mode);
  }
  WorkspaceFinding look(const std::string& workspace) const {
    const auto finding = read_workspace(run(look_at_workspace(workspace)));
    if (!finding) throw std::runtime_error("it did not look");
    return *finding;
  }
  static CommandOutput run(const CommandLine& command) {
    std::string line;
    for (const std::string& word : command.argv) {
      line += "'";
      for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
      line += "' ";
    }
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(line.c_str(), "r"), ::pclose);
    CommandOutput output;
    char room[4096];
    for (std::size_t n = 0; (n = ::fread(room, 1, sizeof room, pipe.get())) > 0;)
      output.standard_output.append(room, n);
    return output;
  }

  std::string workspace_;
};

TEST_F(WorkspaceGuardTest, WhatIsOnesOwnIsTaken) {
  folder("/bin", 0755);
  EXPECT_EQ(look(workspace_).others, "");
  EXPECT_EQ(look(workspace_).group, "");
  EXPECT_EQ(look(workspace_ + "/not there yet").others, "");
}

TEST_F(WorkspaceGuardTest, ABareOneOnAnotherFileSystemIsNotMadeAnew) {
  const WorkspaceFinding bare = look(workspace_ + "/not there yet");
  EXPECT_TRUE(bare.is_bare);
  EXPECT_NE(bare.file_system, "");
  EXPECT_EQ(bare.file_system, look(workspace_).file_system);
  EXPECT_FALSE(refusal_of_bare(bare, "", "/w"));
  EXPECT_FALSE(refusal_of_bare(bare, bare.file_system, "/w"));
  const auto refusal = refusal_of_bare(bare, "nfs 0", "/w");
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("mkdir -p /w/outbox"), std::string::npos) << *refusal;
  folder("/outbox", 0700);
  EXPECT_FALSE(refusal_of_bare(look(workspace_), "nfs 0", "/w"));
}

TEST_F(WorkspaceGuardTest, AFileSystemInMemoryIsTheSameAfterItsMachinesStart) {
  EXPECT_FALSE(refusal_of_bare({"", "", true, "tmpfs 12"}, "tmpfs 34", "/w"));
  EXPECT_TRUE(refusal_of_bare({"", "", true, "tmpfs 12"}, "ext2/ext3 12", "/w"));
}

TEST_F(WorkspaceGuardTest, WhatOthersMayWriteIsNamed) {
  folder("/bin", 0777);
  EXPECT_EQ(look(workspace_).others, workspace_ + "/bin");
  folder("/bin", 0775);
  EXPECT_EQ(look(workspace_).others, "");
  EXPECT_EQ(look(workspace_).group, workspace_ + "/bin");
  ::chmod(workspace_.c_str(), 01777);
  EXPECT_EQ(look(workspace_).others, workspace_);
}

TEST_F(WorkspaceGuardTest, ALinkIsFollowed) {
  folder("/real", 0777);
  fs::create_directory_symlink(workspace_ + "/real", workspace_ + "/link");
  EXPECT_EQ(look(workspace_ + "/link").others, workspace_ + "/link");
}

TEST_F(WorkspaceGuardTest, AFolderOfAnotherUserIsNotOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give folders away";
  folder("/bin", 0755);
  ASSERT_EQ(::chown((workspace_ + "/bin").c_str(), 65534, 65534), 0);
  EXPECT_EQ(look(workspace_).others, workspace_ + "/bin");
}

TEST(WorkspaceGuard, AnAnswerThatWasCutOffSaysNothing) {
  EXPECT_FALSE(read_workspace(
      {.exit_code = 0, .timed_out = true, .standard_output = "group /w\n", .standard_error = {}}));
  EXPECT_FALSE(read_workspace({}));
}

}  // namespace
}  // namespace hpcbatch
