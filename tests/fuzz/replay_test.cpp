// All inputs that were kept, and all that were ever found, once more.
#include "fuzz/harness.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace hpcbatch::fuzz {
namespace {

namespace fs = std::filesystem;

struct Kept {
  Harness harness;
  fs::path file;
};

std::vector<Kept> kept_inputs() {
  std::vector<Kept> all;
  for (const Harness& harness : harnesses()) {
    for (const char* folder : {"corpus", "found"}) {
      const fs::path path = fs::path(FUZZ) / folder / harness.name;
      if (!fs::exists(path)) continue;
      for (const auto& entry : fs::directory_iterator(path)) all.push_back({harness, entry.path()});
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Kept>& info) {
  std::string name =
      std::string(info.param.harness.name) + "_" + info.param.file.filename().string();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

class KeptInput : public testing::TestWithParam<Kept> {};

TEST_P(KeptInput, HoldsWhatItsHarnessAsks) {
  std::ifstream in(GetParam().file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto begin = std::chrono::steady_clock::now();
  GetParam().harness.try_input(bytes);
  // The fuzzer's bound is half of it; what is not linear takes minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

INSTANTIATE_TEST_SUITE_P(Fuzz, KeptInput, testing::ValuesIn(kept_inputs()), name_of);

TEST(Fuzz, EachHarnessHasACorpus) {
  for (const Harness& harness : harnesses()) {
    const fs::path corpus = fs::path(FUZZ) / "corpus" / harness.name;
    EXPECT_TRUE(fs::exists(corpus) && !fs::is_empty(corpus)) << harness.name;
  }
}

}  // namespace
}  // namespace hpcbatch::fuzz
