// Whose turn it is to import on a node.
#include "pilot/services/service_socket.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace hpcbatch::pilot {
namespace {

class ImportLockTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "turnXXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string only_file() const {
    return std::filesystem::directory_iterator(folder_)->path().string();
  }

  std::string folder_;
};

TEST_F(ImportLockTest, OneAfterAnother) {
  ImportLock first;
  ImportLock second;
  ImportLock other;
  EXPECT_TRUE(first.begin(folder_, "galaxy"));
  EXPECT_FALSE(second.begin(folder_, "galaxy"));
  EXPECT_TRUE(other.begin(folder_, "snakemake"));
  first.end();
  EXPECT_TRUE(second.begin(folder_, "galaxy"));
  EXPECT_FALSE(first.begin(folder_, "galaxy"));
}

TEST_F(ImportLockTest, NothingIsLeftBehind) {
  {
    ImportLock turn;
    EXPECT_TRUE(turn.begin(folder_, "galaxy"));
    EXPECT_FALSE(std::filesystem::is_empty(folder_));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ImportLockTest, WhereNoTurnsCanBeTakenNobodyWaits) {
  ImportLock turn;
  EXPECT_TRUE(turn.begin(folder_ + "/absent", "galaxy"));
}

TEST_F(ImportLockTest, WhatSomebodyElsePutThereIsNotWaitedFor) {
  ImportLock turn;
  ASSERT_TRUE(turn.begin(folder_, "galaxy"));
  const std::string lock = only_file();
  turn.end();
  std::ofstream(folder_ + "/kept") << "mine";
  std::filesystem::create_symlink(folder_ + "/kept", lock);
  EXPECT_TRUE(turn.begin(folder_, "galaxy"));
  turn.end();
  EXPECT_TRUE(std::filesystem::is_symlink(lock));
  std::filesystem::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_TRUE(turn.begin(folder_, "galaxy"));
}

}  // namespace
}  // namespace hpcbatch::pilot
