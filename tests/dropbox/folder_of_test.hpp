// A directory that a test may fill; it goes with the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace hpcbatch {

class FolderOfTest {
 public:
  FolderOfTest() {
    std::string name = testing::TempDir() + "/hpcbatch_XXXXXX";
    path_ = std::filesystem::canonical(::mkdtemp(name.data()));
  }
  FolderOfTest(const FolderOfTest&) = delete;
  FolderOfTest& operator=(const FolderOfTest&) = delete;
  ~FolderOfTest() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return path_ / name; }
  std::string path() const { return path_; }
  std::string make(const std::string& name) const {
    std::filesystem::create_directories(path_ / name);
    return path_ / name;
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ / name, std::ios::binary).rdbuf();
    return text.str();
  }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }

 private:
  std::filesystem::path path_;
};

}  // namespace hpcbatch
