// Plugins that misbehave, each in a way of its own: whoever asked hears it, and the next is served.
#include "tool_host/apart_tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::tool_host {
namespace {

using namespace std::chrono_literals;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

class ApartToolTest : public testing::Test {
 protected:
  static std::shared_ptr<HostProcess> host(std::chrono::milliseconds longest = 60s) {
    return std::make_shared<HostProcess>(HostProcess::Options{
        .program = PROGRAM, .plugin_path = BROKEN_PLUGINS ":" PLUGINS, .longest = longest});
  }
  std::shared_ptr<HostProcess> host_{host()};

  ApartTool tool(const std::string& plugin, const std::string& text = "tool: t\n") const {
    return {host_, plugin, text};
  }
  /// What whoever asks for a task of it hears.
  std::string heard(const std::string& plugin) const {
    try {
      tool(plugin).validate({});
      return "rendered: " + tool(plugin).render({}).argv.at(0);
    } catch (const std::exception& error) {
      return error.what();
    }
  }
};

TEST_F(ApartToolTest, OneThatIsSoundAnswersAsItWouldHere) {
  EXPECT_EQ(tool("sound").describe().summary, "sound enough");
  EXPECT_EQ(heard("sound"), "rendered: true");
  EXPECT_EQ(heard("talkative"), "rendered: true") << "what it prints is no answer";
  const ToolRequest request{.tool = "t",
                            .parameters = {{"n", "3"}, {"tool_dir", "/t"}},
                            .inputs = {{"in", {{.path = "/a b"}}}},
                            .outputs = {}};
  const std::string text =
      "tool: t\nparameters: {n: {type: int}}\ninputs: {in: {type: file}}\n"
      "command: [head, '-n', '{n}', '{in}']\n";
  EXPECT_THAT(tool("command", text).render(request).argv, ElementsAre("head", "-n", "3", "/a b"));
}

TEST_F(ApartToolTest, OneThatKnowsNoFactsHasNone) {
  EXPECT_TRUE(tool("sound").facts().empty());
  EXPECT_THROW((void)tool("sound").facts_of({.path = "/a"}), std::exception);
}

TEST_F(ApartToolTest, AFileThatEndsItsProcessIsNamedAndTheNextIsServed) {
  EXPECT_EQ(tool("abortsonfile").facts().at(0).name, "seconds");
  try {
    (void)tool("abortsonfile").facts_of({.path = "/hostile.mp4"});
    ADD_FAILURE() << "it answered";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("its plugin abortsonfile ended its process by SIGABRT"));
    EXPECT_THAT(error.what(), HasSubstr("/hostile.mp4"));
  }
  EXPECT_EQ(heard("sound"), "rendered: true");
}

TEST_F(ApartToolTest, APluginThatWasInstalledAnewIsTheOneThatAnswers) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "apart_tool_anew";
  const fs::path file = folder / "tools" / "sound.so";
  fs::remove_all(folder);
  fs::create_directories(file.parent_path());
  fs::copy_file(BROKEN_PLUGINS "/tools/sound.so", file);
  host_ = std::make_shared<HostProcess>(
      HostProcess::Options{.program = PROGRAM, .plugin_path = folder.string(), .longest = 60s});
  EXPECT_EQ(heard("sound"), "rendered: true");
  // As an installation replaces it.
  std::ofstream(folder / "new") << "this is no ELF";
  fs::rename(folder / "new", file);
  EXPECT_THAT(heard("sound"), HasSubstr("sound.so")) << "what was loaded before is not asked";
  EXPECT_THAT(heard("sound"), testing::Not(HasSubstr("rendered")));
  fs::copy_file(BROKEN_PLUGINS "/tools/sound.so", folder / "new");
  fs::rename(folder / "new", file);
  EXPECT_EQ(heard("sound"), "rendered: true");
  fs::remove(file);
  EXPECT_THAT(heard("sound"), HasSubstr("there is no tool plugin 'sound'"));
}

#ifdef MEDIA
TEST_F(ApartToolTest, FactsOfAFileComeBack) {
  const ApartTool media = tool("media", "tool: t\ninputs: {in: {}}\ncommand: ['true', '{in}']\n");
  const auto known = media.facts();
  ASSERT_FALSE(known.empty());
  EXPECT_EQ(known.front().name, "seconds");
  const std::string folder = testing::TempDir(), path = folder + "/apart_tool_test.wav";
  // A second of silence: 8000 samples of a byte.
  std::ofstream(path, std::ios::binary)
      << std::string(
             "RIFF\x64\x1f\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0"
             "data\x40\x1f\0\0",
             44)
      << std::string(8000, '\x80');
  EXPECT_NEAR(media.facts_of({.path = path}).at("seconds"), 1, 0.01);
  EXPECT_EQ(media.facts_of({.path = path}).at("sample_rate"), 8000);
  EXPECT_THROW((void)media.facts_of({.path = folder + "/no such file"}), std::exception);
}
#endif

TEST_F(ApartToolTest, OneThatEndsItsProcessIsNamedAndTheNextIsServed) {
  for (const auto& [plugin, how] : {std::pair{"aborts", "ended its process by SIGABRT"},
                                    {"exits", "ended its process with exit code 7"},
                                    {"badpointer", "ended its process"},
                                    {"closing", "ended its process"}}) {
    EXPECT_THAT(heard(plugin), HasSubstr(std::string("its plugin ") + plugin + " " + how));
    EXPECT_EQ(heard("sound"), "rendered: true") << "after " << plugin;
  }
}

/// Processes that this one has started and that have not been waited for.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::ifstream list("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (pid_t child = 0; list >> child;) found.push_back(child);
  return found;
}

TEST_F(ApartToolTest, AProcessThatSomebodyElseEndedIsNobodysFault) {
  EXPECT_EQ(heard("sound"), "rendered: true");
  const std::vector<pid_t> host = children();
  ASSERT_EQ(host.size(), 1U);
  ::kill(host.front(), SIGKILL);
  siginfo_t end{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(host.front()), &end, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(heard("sound"), "rendered: true");
}

TEST_F(ApartToolTest, OneThatNeverAnswersIsEnded) {
  host_ = host(500ms);
  EXPECT_THAT(heard("endless"),
              ContainsRegex("its plugin endless gave no answer within . s and was ended"));
  host_ = host();
  EXPECT_EQ(heard("sound"), "rendered: true");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ApartToolTest, OneThatWantsTenGigabytesGetsNone) {
  EXPECT_EQ(heard("tengigabytes"), "std::bad_alloc");
  EXPECT_EQ(heard("sound"), "rendered: true");
}
#endif

TEST_F(ApartToolTest, WhatAPluginSaysIsHeard) {
  EXPECT_EQ(heard("throwrender"), "no such model");
  EXPECT_EQ(heard("thrownumber"),
            "its plugin thrownumber threw something that is no std::exception");
  EXPECT_THAT(heard("throwctor"), HasSubstr("no such model"));
  EXPECT_THAT(heard("abi1"), HasSubstr("it was built for plugin ABI 1"));
  EXPECT_THAT(heard("garbage"), HasSubstr("cannot load plugin"));
  EXPECT_THAT(heard("soun"), HasSubstr("did you mean 'sound'"));
}

TEST_F(ApartToolTest, WithoutItsProgramItSaysSo) {
  host_ = std::make_shared<HostProcess>(
      HostProcess::Options{.program = "/no/such/host", .plugin_path = ""});
  EXPECT_THAT(heard("sound"), HasSubstr("cannot start /no/such/host"));
}

TEST_F(ApartToolTest, SeveralThreadsAskOneAfterAnother) {
  std::vector<std::thread> threads;
  for (const char* plugin : {"sound", "aborts", "sound", "throwrender"})
    threads.emplace_back([this, plugin] {
      for (int i = 0; i < 20; ++i) {
        const std::string said = heard(plugin);
        EXPECT_TRUE(said == "rendered: true" || plugin != std::string("sound")) << said;
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hpcbatch::tool_host
