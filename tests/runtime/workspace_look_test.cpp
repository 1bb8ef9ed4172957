// What a real shell finds of a workspace, for the guard of trusted paths.
#include "../posix/trusted_path_cases.hpp"
#include "sites/log_reader.hpp"
#include "sites/workspace_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

CommandOutput run_here(const CommandLine& command) {
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

class WorkspaceLook : public ::testing::Test {
 protected:
  WorkspaceLook() {
    std::string made = (fs::temp_directory_path() / "look XXXXXX").string();
    workspace_ = ::mkdtemp(made.data());
  }
  void TearDown() override { fs::remove_all(workspace_); }

  void folder(const std::string& name, mode_t mode) const {
    ::mkdir((workspace_ + name).c_str(), 0700);
    ::chmod((workspace_ + name).c_str(), mode);
  }
  WorkspaceFinding look(const std::string& workspace) const {
    const auto finding = read_workspace(run_here(look_at_workspace(workspace, "")));
    if (!finding) throw std::runtime_error("it did not look");
    return *finding;
  }
  std::string workspace_;
};

TEST_F(WorkspaceLook, WhatIsOnesOwnIsTaken) {
  folder("/bin", 0755);
  EXPECT_FALSE(distrust(look(workspace_), ""));
  EXPECT_FALSE(distrust(look(workspace_ + "/not there yet"), ""));
}

TEST_F(WorkspaceLook, AFolderInItIsJudgedToo) {
  for (const char* part : {"/allocations", "/logs", "/outbox", "/work", "/bin"}) {
    folder(part, 0777);
    const auto found = distrust(look(workspace_), "");
    ASSERT_TRUE(found && found->is_refusal) << part;
    EXPECT_EQ(found->path, workspace_ + part);
    folder(part, 0755);
  }
  folder("/open", 0777);
  fs::remove(workspace_ + "/bin");
  fs::create_directory_symlink("open", workspace_ + "/bin");
  EXPECT_EQ(distrust(look(workspace_), "")->path, workspace_ + "/open");
}

// The table's users have no accounts here, so they are put in place of what was asked of the shell.
TEST(WorkspaceCases, AShellFindsWhatTheGuardFindsItself) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const TrustedPathCases table(TRUSTED_PATHS);
  for (const auto& one : table.cases()) {
    if (TrustedPathCases::wanted(one) == Wanted::File) continue;
    const TrustedBase base;
    table.lay_out(one, base.path());
    auto finding = read_workspace(run_here(
        look_at_workspace(base.path() + "/" + std::string(one.at("path").as_string()), "")));
    ASSERT_TRUE(finding) << one.at("name");
    PathFacts& facts = finding->paths.front();
    facts.user = table.user("self");
    facts.accounts.clear();
    facts.groups.clear();
    table.add_accounts(facts);
    const auto found = distrust(facts, Wanted::Folder, TrustedPathCases::trust_group(one));
    TrustedPathCases::expect(one, base.path(), found);
  }
}

TEST(WorkspaceCases, AccountsAndGroupsAreAskedForThere) {
  const auto finding = read_workspace(run_here(look_at_workspace("/", "root")));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->paths.front().accounts.at(0).name, "root");
  EXPECT_EQ(finding->paths.front().groups.at(0).name, "root");
  EXPECT_FALSE(distrust(*finding, "root"));
  EXPECT_TRUE(distrust(*finding, "no-such-group"));
}

TEST_F(WorkspaceLook, ANameThatHoldsLinesIsRefused) {
  const std::string name = "/a\npart 41ed 0 0 x\nwhole x\nlooked";
  folder(name, 0777);
  const auto finding = read_workspace(run_here(look_at_workspace(workspace_ + name, "")));
  ASSERT_TRUE(finding);
  EXPECT_TRUE(distrust(*finding, "")->is_refusal);
}

TEST_F(WorkspaceLook, ABareOneOnAnotherFileSystemIsNotMadeAnew) {
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

TEST_F(WorkspaceLook, AFileSystemInMemoryIsTheSameAfterItsMachinesStart) {
  EXPECT_FALSE(refusal_of_bare({{}, true, "tmpfs 12"}, "tmpfs 34", "/w"));
  EXPECT_TRUE(refusal_of_bare({{}, true, "tmpfs 12"}, "ext2/ext3 12", "/w"));
}

TEST(LogsOfAWorkspace, ANameThatLeadsOutIsRefused) {
  EXPECT_TRUE(lies_in_workspace("logs/habcde123456789.2.aa.log"));
  EXPECT_TRUE(lies_in_workspace("logs/a..b.log"));
  for (const char* file : {"../secret", "logs/../../secret", "logs/..", "..", "/etc/shadow"})
    EXPECT_FALSE(lies_in_workspace(file)) << file;
}

TEST(WorkspaceAnswer, AnAnswerThatWasCutOffSaysNothing) {
  EXPECT_FALSE(read_workspace({.exit_code = 0,
                               .timed_out = true,
                               .standard_output = "look\npart 41ed 0 0 /\n",
                               .standard_error = {}}));
  EXPECT_FALSE(read_workspace({}));
}

}  // namespace
}  // namespace hpcbatch
