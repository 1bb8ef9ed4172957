// What a file holds is said only where it stayed as it is.
#include "staging/hash_files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class HashFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = (fs::temp_directory_path() / "hash-XXXXXX").string();
    directory_ = ::mkdtemp(made.data());
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  /// In as many calls as it takes.
  std::vector<HashAnswer> hash(std::vector<std::string> paths, std::chrono::milliseconds slice) {
    std::vector<HashAnswer> answers(paths.size());
    std::vector<std::size_t> places(paths.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    for (calls_ = 0; !places.empty(); ++calls_) {
      std::vector<std::string> left;
      left.reserve(places.size());
      for (const std::size_t place : places) left.push_back(paths[place]);
      HashProgress progress(left.size());
      hasher_.hash(left, {left.begin(), left.end()}, slice, progress);
      const auto files = progress.files();
      std::vector<std::size_t> next;
      for (std::size_t i = 0; i < files.size(); ++i) {
        EXPECT_NE(files[i].stage, HashProgress::Stage::Begun);
        if (files[i].answer) {
          answers[places[i]] = *files[i].answer;
        } else {
          next.push_back(places[i]);
        }
      }
      places = std::move(next);
    }
    return answers;
  }
  static std::string hash_of(const HashAnswer& answer) {
    const auto* file = std::get_if<HashedFile>(&answer);
    return file ? file->hash : std::string(to_string(std::get<StageError>(answer).failure));
  }

  std::string directory_;
  FileHasher hasher_;
  int calls_{0};
};

TEST_F(HashFilesTest, TheHashIsBlake2b) {
  const auto answers = hash({write("abc", "abc"), write("empty", "")}, 10s);
  EXPECT_EQ(hash_of(answers[0]),
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(hash_of(answers[1]),
            "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
}

TEST_F(HashFilesTest, WhatIsLargeIsReadOverManyCalls) {
  const std::string text(20 << 20, 'x');
  const std::string large = write("large", text);
  wire::ContentHash expected;
  expected.add(text);
  const auto answers = hash({large, write("small", "small"), directory_ + "/none"}, 1ms);
  EXPECT_EQ(hash_of(answers[0]), expected.digits());
  EXPECT_GT(calls_, 1);
  EXPECT_EQ(hash_of(answers[2]), "input_missing");
}

TEST_F(HashFilesTest, WhereASliceIsOverBeforeItBeginsAFileIsReadAllTheSame) {
  const std::string text(20 << 20, 'x');
  wire::ContentHash expected;
  expected.add(text);
  const auto answers = hash({write("large", text), write("small", "small")}, 0ms);
  EXPECT_EQ(hash_of(answers[0]), expected.digits());
}

TEST_F(HashFilesTest, WhatIsWrittenAllTheTimeIsNotSaidToBeAnything) {
  const std::string path = write("log", std::string(32 << 20, 'x'));
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    std::ofstream out(path, std::ios::app);
    while (!ends) out << "more" << std::flush;
  });
  const auto answers = hash({path}, 10s);
  ends = true;
  writer.join();
  EXPECT_EQ(hash_of(answers[0]), "input_changed");
}

TEST_F(HashFilesTest, WhatWasReplacedIsReadAgain) {
  const std::string path = write("a", "one");
  const auto old = fs::last_write_time(path) - 1h;
  fs::last_write_time(path, old);
  const auto before = hash_of(hash({path}, 10s)[0]);
  write("b", "two");
  fs::last_write_time(directory_ + "/b", old);
  fs::rename(directory_ + "/b", path);
  EXPECT_NE(hash_of(hash({path}, 10s)[0]), before) << "same size, same time, another file";
}

}  // namespace
}  // namespace hpcbatch
