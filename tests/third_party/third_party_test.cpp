// A plugin of a third party, from its sources to a task: against the installed package, as one .so.
#include "plugin_host/plugin_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Installs, configures and builds once for all tests of the suite.
class ThirdParty : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = testing::TempDir() + "third-party-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    const std::string prefix = (root_ / "prefix").string();
    const std::string build = (root_ / "build").string();
    const mode_t before = ::umask(002);  // as on sites where each user has a group of their own
    run(CMAKE " --install " BUILD " --prefix " + prefix);
    run(CMAKE " -S " PROJECT " -B " + build +
        " -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=" COMPILER
        " -DCMAKE_PREFIX_PATH=" +
        prefix + " -DCMAKE_INSTALL_PREFIX=" + prefix);
    run(CMAKE " --build " + build);
    run(CMAKE " --install " + build);
    ::umask(before);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(root_); }

  static void run(const std::string& command) {
    const std::filesystem::path log = root_ / "log";
    ASSERT_EQ(std::system((command + " > " + log.string() + " 2>&1").c_str()), 0) << command << "\n"
                                                                                  << text_of(log);
  }
  static std::filesystem::path plugin() { return root_ / "prefix/lib/hpcbatch/tools/by_size.so"; }

  static std::filesystem::path root_;
};
std::filesystem::path ThirdParty::root_;

TEST_F(ThirdParty, IsFoundBesideOurOwnPluginsAndChoosesItsWalltime) {
  const PluginHost host(plugin_search_path({}, "", root_ / "prefix/bin/hpcbatch"));
  const auto facts = PluginHost::check(plugin());
  ASSERT_TRUE(facts) << facts.error().text;
  EXPECT_EQ(facts->version, "0.1");
  const auto tool =
      host.tool("by_size", text_of(root_ / "prefix/share/hpcbatch/tools/copy_by_size.yaml"));
  ASSERT_TRUE(tool) << tool.error().text;
  ToolRequest request{.tool = "copy_by_size",
                      .parameters = {},
                      .inputs = {{"input", {{.path = "/in", .size = 500}}}},
                      .outputs = {{"copy", "/out"}}};
  EXPECT_THAT((*tool)->render(request).argv, testing::ElementsAre("cp", "/in", "/out"));
  EXPECT_EQ((*tool)->render(request).needs.time, 60s);
  request.inputs["input"].front().size = 36'000'000;
  EXPECT_EQ((*tool)->render(request).needs.time, 420s);
  EXPECT_TRUE(host.tool("command", "tool: a\ncommand: [\"true\"]"));
  EXPECT_TRUE(host.scheduler("local", ""));
  EXPECT_TRUE(host.scheduler("slurm", ""));
  EXPECT_TRUE(host.transport("shared_fs", ""));
}

TEST_F(ThirdParty, ExportsOneSymbol) {
  run(NM " -D --defined-only " + plugin().string());
  const std::string symbols = text_of(root_ / "log");
  EXPECT_EQ(std::count(symbols.begin(), symbols.end(), '\n'), 1) << symbols;
  EXPECT_THAT(symbols, testing::HasSubstr(" hpcbatch_plugin\n"));
}

TEST_F(ThirdParty, CanBeProvedWithTheInstalledContract) {
  run((root_ / "build/by_size_test").string());
}

TEST_F(ThirdParty, AnotherMajorOfThePackageIsRefused) {
  std::ofstream(root_ / "CMakeLists.txt")
      << "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\n"
         "find_package(hpcbatch 2 REQUIRED)\n";
  const std::string command = CMAKE " -S " + root_.string() + " -B " + (root_ / "other").string() +
                              " -G Ninja -DCMAKE_PREFIX_PATH=" + (root_ / "prefix").string();
  const std::string log = (root_ / "log").string();
  EXPECT_NE(std::system((command + " > " + log + " 2>&1").c_str()), 0);
  EXPECT_THAT(text_of(log), testing::HasSubstr("compatible with requested version \"2\""));
}

}  // namespace
}  // namespace hpcbatch
