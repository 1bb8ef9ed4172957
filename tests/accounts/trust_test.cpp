// The guard of trusted paths with this machine's own accounts.
#include "accounts/accounts.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

struct Trust : testing::Test {
  Trust() {
    std::string name = "/tmp/hpcbatch_XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~Trust() override { std::filesystem::remove_all(folder); }
  std::string folder;
};

TEST_F(Trust, OnesOwnIsTrustedAndWhatAllMayWriteIsNot) {
  EXPECT_FALSE(distrust(folder, Wanted::Folder));
  EXPECT_FALSE(distrust(folder + "/new", Wanted::Folder));
  ::chmod(folder.c_str(), 0777);
  EXPECT_TRUE(distrust(folder + "/new", Wanted::Folder)->is_refusal);
}

TEST_F(Trust, AGroupIsLookedUpByItsName) {
  const struct group* const daemon = ::getgrnam("daemon");
  if (::geteuid() != 0 || !daemon) GTEST_SKIP() << "only root can give folders to groups";
  ASSERT_EQ(::chown(folder.c_str(), 0, daemon->gr_gid), 0);
  ::chmod(folder.c_str(), 02770);
  const auto said = distrust(folder, Wanted::Folder);
  ASSERT_TRUE(said);
  EXPECT_FALSE(said->is_refusal);
  EXPECT_EQ(said->group_hint, ", or trust them: 'trust_group: daemon'");
  EXPECT_FALSE(distrust(folder, Wanted::Folder, "daemon"));
  EXPECT_TRUE(distrust(folder, Wanted::Folder, "no-such-group")->is_refusal);
}

}  // namespace
}  // namespace hpcbatch
