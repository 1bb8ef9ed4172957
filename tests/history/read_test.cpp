// Lines of a history: what is written is read again, and what nobody wrote is refused with its
// place.
#include "history/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace hpcbatch::history {
namespace {

class ReadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "hpcbatch-history-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::filesystem::path folder_;
};

TEST(HistoryLineTest, WhatIsWrittenIsReadAgain) {
  const Record record{1'700'000'000'000'001,
                      "pilot/habc.0/17",
                      "attempt-ended",
                      {{"task", "1.2"}, {"reason", "100 % of it=gone\nü"}, {"empty", ""}}};
  std::string line = wire::to_line(record);
  ASSERT_EQ(line.back(), '\n');
  line.pop_back();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto again = read_history_line(line);
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again.value().time_us, record.time_us);
  EXPECT_EQ(again.value().by, record.by);
  EXPECT_EQ(again.value().what, record.what);
  EXPECT_EQ(again.value().facts, record.facts);
  EXPECT_EQ(fact_of(again.value(), "empty"), "");
  EXPECT_EQ(fact_of(again.value(), "nothing"), "");
}

TEST(HistoryLineTest, EachWrongLineIsRefusedWithWhatWasExpected) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "a time"},
      {"x engine/1 accepted", "a time"},
      {"1", "who recorded what"},
      {"1 engine/1", "who"},
      {"1 engine/1 a b", "NAME=VALUE"},
      {"1 engine/1 a =b", "NAME=VALUE"},
      {"1 e a b=%G1", "%XX"},
      {"1 e a b=%1", "%XX"},
      {"1 e a b=c=d", "%XX"},
  };
  for (const auto& [line, expected] : wrong) {
    const auto read = read_history_line(line);
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().text, ::testing::HasSubstr(expected)) << line;
  }
}

TEST_F(ReadTest, FilesAreMergedByTimeAndKeepTheirOwnOrder) {
  write("engine.history", "1 engine/1 a\n3 engine/1 b\n3 engine/1 c\n");
  write("pilot.history", "2 pilot/h.0/1 d\n4 pilot/h.0/1 e\n5 pilot/h.0/1 half");
  write("notes.txt", "not a history\n");
  const auto history = read_history({folder_});
  ASSERT_TRUE(history) << history.error().text;
  std::string order;
  for (const Record& record : history.value()) order += record.what;
  EXPECT_EQ(order, "adbce") << "half a line is what a killed process leaves";
}

TEST_F(ReadTest, ADamagedLineIsNamed) {
  const std::string path = write("engine.history", "1 engine/1 a\nnonsense\n");
  const auto history = read_history({path});
  ASSERT_FALSE(history);
  EXPECT_THAT(history.error().text, ::testing::StartsWith(path + ":2: "));
  EXPECT_THAT(read_history({folder_ / "none"}).error().text, ::testing::HasSubstr("cannot open"));
}

}  // namespace
}  // namespace hpcbatch::history
