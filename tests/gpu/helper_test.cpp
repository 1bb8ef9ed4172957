// The helper beside a node whose devices are emulated: what it says of good and of broken ones.
#include "posix/programs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace hpcbatch::gpu {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

class GpuHelper : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hb-gpu-XXXXXX";
    folder_ = ::mkdtemp(path);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void emulated(const std::vector<std::string>& words) {
    std::vector<std::string> argv{HPCBATCH_FAKEGPU};
    argv.insert(argv.end(), words.begin(), words.end());
    const auto ran = run_in_time(argv, 10s);
    ASSERT_TRUE(ran && ran->status == 0);
  }

  std::vector<json::object> helper(std::vector<std::string> words, const char* shown = nullptr) {
    words.insert(words.begin(), HPCBATCH_GPU);
    std::vector<std::string> variables{"HPCBATCH_FAKEGPU=" + folder_,
                                       "LD_LIBRARY_PATH=" HPCBATCH_FAKEGPU_LIBRARIES};
    if (shown != nullptr) variables.push_back(std::string("CUDA_VISIBLE_DEVICES=") + shown);
    const auto ran = run_in_time({Program{words, variables}}, 30s).front();
    EXPECT_TRUE(ran && ran->status == 0);
    std::vector<json::object> lines;
    std::string text = ran ? ran->out : "";
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      lines.push_back(json::parse(text.substr(0, end)).as_object());
      text.erase(0, end + 1);
    }
    return lines;
  }

  static std::string trouble(const json::object& line) {
    const json::value* text = line.if_contains("trouble");
    return text == nullptr ? "" : std::string(text->as_string());
  }

  std::string folder_;
};

TEST_F(GpuHelper, SaysWhatIsThere) {
  emulated({"new", folder_, "a100:2:40960:8.0", "v100:1"});
  const auto all = helper({"list"});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].at("name").as_string(), "NVIDIA a100");
  EXPECT_EQ(all[0].at("memory").to_number<std::uint64_t>(), std::uint64_t{40960} << 20);
  EXPECT_EQ(all[0].at("capability").as_string(), "8.0");
  EXPECT_EQ(all[0].at("cuda").as_string(), "12.4");
  const auto some = helper({"list"}, "2,0");
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some[0].at("uuid"), all[2].at("uuid"));
  EXPECT_EQ(some[1].at("uuid"), all[0].at("uuid"));
}

TEST_F(GpuHelper, FindsEachThatIsBroken) {
  emulated({"new", folder_, "a100:7"});
  emulated({"fault", folder_, "1", "wrong"});
  emulated({"fault", folder_, "2", "lost"});
  emulated({"fault", folder_, "3", "taken=9000"});
  emulated({"fault", folder_, "4", "fails"});
  emulated({"fault", folder_, "5", "stuck"});
  emulated({"fault", folder_, "6", "short"});
  const auto lines = helper({"check", "5"});
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_EQ(trouble(lines[0]), "");
  EXPECT_THAT(trouble(lines[1]), HasSubstr("computes wrong: 1 of"));
  EXPECT_THAT(trouble(lines[2]), HasSubstr("GPU is lost"));
  EXPECT_THAT(trouble(lines[3]), HasSubstr("not free: 8.8 GiB of its 16.0 GiB"));
  EXPECT_THAT(trouble(lines[4]), HasSubstr("unspecified launch failure"));
  EXPECT_THAT(trouble(lines[5]), HasSubstr("had not ended after 5 s"));
  EXPECT_THAT(trouble(lines[6]), HasSubstr("cannot be had: out of memory"));
}

TEST_F(GpuHelper, RunsTheSitesTestForEachThatIsGood) {
  emulated({"new", folder_, "a100:3"});
  emulated({"fault", folder_, "2", "lost"});
  const auto all = helper({"list"});
  const std::string first(all[0].at("uuid").as_string());
  const auto lines =
      helper({"check", "60", "test $CUDA_VISIBLE_DEVICES = " + first + " || { echo no; exit 7; }"});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(trouble(lines[0]), "");
  EXPECT_EQ(trouble(lines[1]), "the site's test exits 7: no");
  EXPECT_THAT(trouble(lines[2]), HasSubstr("GPU is lost"));
}

TEST_F(GpuHelper, OfANodeWithoutAnySaysNothing) {
  std::filesystem::remove_all(folder_);
  EXPECT_TRUE(helper({"check"}).empty());
}

}  // namespace
}  // namespace hpcbatch::gpu
