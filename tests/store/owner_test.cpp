// One engine for one state directory.
#include "store/owner.hpp"

#include "model/owner.hpp"
#include "posix/files.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::store {
namespace {

class OwnerTest : public testing::Test {
 public:
  ~OwnerTest() override { std::filesystem::remove_all(folder); }

 protected:
  OwnerTest() {
    std::string path = testing::TempDir() + "/hpcbatch-owner-XXXXXX";
    folder = ::mkdtemp(path.data());
  }
  void write_lock(const std::string& host, const std::string& boot, long long process,
                  long long heartbeat) {
    std::ofstream(folder + "/engine.lock")
        << "host " << host << "\nboot " << boot << "\nprocess " << process
        << "\nstart 1\nheartbeat " << heartbeat << "\n";
  }
  static bool is_ours(const std::variant<OwnerLock, NotOwner>& taken) {
    return std::holds_alternative<OwnerLock>(taken);
  }
  std::string folder;
};

TEST_F(OwnerTest, IsFreeAgainWhenItsOwnerIsGone) {
  { ASSERT_TRUE(is_ours(OwnerLock::take(folder))); }
  EXPECT_TRUE(is_ours(OwnerLock::take(folder)));
}

TEST_F(OwnerTest, RefusesASecondEngineAndNamesTheFirst) {
  const auto first = OwnerLock::take(folder);
  ASSERT_TRUE(is_ours(first));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto second = OwnerLock::take(folder);
    const auto* refused = std::get_if<NotOwner>(&second);
    const bool named =
        refused && refused->text.find(std::to_string(::getppid())) != std::string::npos;
    ::_exit(named && refused->why == NotOwner::Why::Here ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(OwnerTest, TakesOverFromAProcessThatIsNoMore) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  write_lock(host, "another-boot", 1, static_cast<long long>(std::time(nullptr)));
  EXPECT_TRUE(is_ours(OwnerLock::take(folder)));
}

TEST_F(OwnerTest, SaysHowItRunsForWhoeverStartsTheNext) {
  auto taken = OwnerLock::take(folder, {"/home/me/my sites.yaml", true});
  ASSERT_TRUE(is_ours(taken));
  const auto kept = [&] {
    std::ifstream in(folder + "/engine.lock");
    std::stringstream text;
    text << in.rdbuf();
    return parse_owner(text.str()).value();
  };
  EXPECT_EQ(kept().config, "/home/me/my sites.yaml");
  EXPECT_TRUE(kept().ends_when_idle);
  std::get<OwnerLock>(taken).renew(false);
  EXPECT_EQ(kept().config, "/home/me/my sites.yaml");
  EXPECT_FALSE(kept().ends_when_idle);
  EXPECT_EQ(kept().process, ::getpid());
}

TEST_F(OwnerTest, AFileThatWasRemovedOrReplacedIsMadeAgain) {
  auto taken = OwnerLock::take(folder, {"/sites.yaml", false});
  ASSERT_TRUE(is_ours(taken));
  auto& lock = std::get<OwnerLock>(taken);
  const auto named = [&] {
    std::ifstream in(folder + "/engine.lock");
    std::stringstream text;
    text << in.rdbuf();
    return parse_owner(text.str()).value_or(Owner{});
  };
  std::filesystem::remove(folder + "/engine.lock");
  EXPECT_FALSE(lock.stand_again());
  EXPECT_EQ(named().process, ::getpid());
  EXPECT_EQ(named().config, "/sites.yaml");
  std::filesystem::rename(folder + "/engine.lock", folder + "/aside");
  std::ofstream(folder + "/engine.lock") << "";
  EXPECT_FALSE(lock.stand_again());
  EXPECT_EQ(named().process, ::getpid());
  EXPECT_FALSE(lock.stand_again());
  std::filesystem::remove(folder + "/engine.lock");
  write_lock("far-away", "boot", 4711, static_cast<long long>(std::time(nullptr)));
  const auto refused = lock.stand_again();
  ASSERT_TRUE(refused) << "another host's engine has taken it meanwhile";
  EXPECT_EQ(refused->why, NotOwner::Why::Elsewhere);
  EXPECT_EQ(named().host, "far-away");
}

TEST_F(OwnerTest, SaysThatALockCannotBeOpened) {
  std::filesystem::create_directory(folder + "/engine.lock");
  const auto refused = OwnerLock::take(folder);
  ASSERT_FALSE(is_ours(refused));
  EXPECT_EQ(std::get<NotOwner>(refused).why, NotOwner::Why::Failed);
}

TEST_F(OwnerTest, SaysThatAFifoIsNoLock) {
  auto taken = OwnerLock::take(folder);
  ASSERT_TRUE(is_ours(taken));
  std::filesystem::remove(folder + "/engine.lock");
  ASSERT_EQ(::mkfifo((folder + "/engine.lock").c_str(), 0600), 0);
  const auto refused = std::get<OwnerLock>(taken).stand_again();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->why, NotOwner::Why::Failed);
  EXPECT_EQ(refused->text, "cannot lock " + folder + "/engine.lock: it is no regular file");
}

TEST_F(OwnerTest, WhoStandsAgainDoesNotWaitForAnOwnerThatIsDying) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  auto taken = OwnerLock::take(folder);
  ASSERT_TRUE(is_ours(taken));
  std::filesystem::remove(folder + "/engine.lock");
  write_lock(host, "another-boot", 1, static_cast<long long>(std::time(nullptr)));
  const Fd dying(::open((folder + "/engine.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(dying.get(), LOCK_EX), 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(std::get<OwnerLock>(taken).stand_again());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{1});
}

TEST_F(OwnerTest, BelievesAnotherHostWhileItsHeartbeatIsYoung) {
  write_lock("far-away", "boot", 4711, static_cast<long long>(std::time(nullptr)));
  const auto refused = OwnerLock::take(folder);
  ASSERT_FALSE(is_ours(refused));
  EXPECT_EQ(std::get<NotOwner>(refused).why, NotOwner::Why::Elsewhere);
  EXPECT_NE(std::get<NotOwner>(refused).text.find("far-away"), std::string::npos);
  write_lock("far-away", "boot", 4711, static_cast<long long>(std::time(nullptr)) - 3600);
  EXPECT_TRUE(is_ours(OwnerLock::take(folder)));
}

}  // namespace
}  // namespace hpcbatch::store
