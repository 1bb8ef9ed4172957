// The log pack on a file system that takes no more: nothing is lost before it is given up.
#include "pilot/tasks/pack_file.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <thread>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

class PackFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "pack-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &usual_);
  }
  void TearDown() override {
    allow(true);
    std::filesystem::remove_all(directory_);
  }
  void allow(bool writing) {
    const rlimit limit{writing ? usual_.rlim_cur : 0, usual_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  static std::uint64_t append(PackFile& pack, std::string_view bytes) {
    return pack.append({.array = 1, .stream = 1}, bytes);
  }
  static std::string bytes_of(PackFile& pack, std::uint64_t place, std::size_t length) {
    return pack.read(place - 1 + wire::kLogHeaderSize, length);
  }

  std::string directory_;
  rlimit usual_{};
};

TEST_F(PackFileTest, KeepsWhatCannotBeWrittenAndTriesAgain) {
  PackFile pack(directory_, "pack");
  const auto first = append(pack, "first");
  pack.flush();
  EXPECT_TRUE(pack.holds(first));
  allow(false);
  const auto second = append(pack, "second");
  ASSERT_NE(second, 0U);
  pack.flush();
  EXPECT_FALSE(pack.holds(second));
  EXPECT_EQ(bytes_of(pack, second, 6), "second");
  EXPECT_EQ(bytes_of(pack, first, 5), "first");
  ASSERT_TRUE(pack.next());
  std::this_thread::sleep_until(*pack.next());
  allow(true);
  pack.flush();
  EXPECT_TRUE(pack.holds(second));
  EXPECT_FALSE(pack.next());
  EXPECT_EQ(bytes_of(pack, second, 6), "second");
  EXPECT_FALSE(pack.is_lost());
}

TEST_F(PackFileTest, IsGivenUpAfterAWhile) {
  PackFile pack(directory_, "pack", 0ms);
  allow(false);
  const auto place = append(pack, "lost");
  pack.flush();
  EXPECT_TRUE(pack.is_lost());
  EXPECT_FALSE(pack.holds(place));
  EXPECT_TRUE(pack.holds(0));
  EXPECT_EQ(append(pack, "more"), 0U);
}

TEST_F(PackFileTest, SaysWhenWhoWritesHadBetterWait) {
  const std::string folder = directory_ + "/away";
  PackFile pack(folder, "pack");
  const std::string piece(std::size_t{1} << 20, 'x');
  unsigned kept = 0;
  while (!pack.is_full()) {
    ASSERT_LT(++kept, 100U);
    ASSERT_NE(append(pack, piece), 0U);
  }
  EXPECT_NE(pack.trouble().find("No such file"), std::string::npos) << pack.trouble();
  bool takes = false;
  pack.when_it_takes([&] { takes = true; });
  ASSERT_TRUE(pack.next());
  std::this_thread::sleep_until(*pack.next());
  std::filesystem::create_directory(folder);
  pack.flush();
  EXPECT_TRUE(takes);
  EXPECT_FALSE(pack.is_full());
  EXPECT_EQ(pack.trouble(), "");
  EXPECT_TRUE(pack.holds(1));
}

TEST_F(PackFileTest, WhoWaitsIsToldThatItIsGivenUp) {
  PackFile pack(directory_ + "/away", "pack");
  append(pack, "lost");
  pack.flush();
  bool takes = false;
  pack.when_it_takes([&] { takes = true; });
  pack.finish();
  EXPECT_TRUE(takes);
  EXPECT_TRUE(pack.is_lost());
  EXPECT_EQ(pack.trouble(), "");
}

}  // namespace
}  // namespace hpcbatch::pilot
