// What goes from a workspace and what stays.
#include "sites/workspace_memory.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kMega = 1 << 20;

KeepRules rules() {
  KeepRules rules;
  rules.prefix = "habcde";
  rules.programs = {"bin/hpcbatch-pilot-2222", "bin/hpcbatch-gpu-2222"};
  rules.keep_for = 30 * 24h;
  rules.keep_limit = 1000 * kMega;
  return rules;
}

std::vector<std::string> gone(const std::vector<WorkspaceFile>& files, const KeepRules& rules) {
  std::vector<std::string> paths;
  for (const WorkspaceFile& file : decide_cleaning(files, rules).gone) paths.push_back(file.path);
  return paths;
}

TEST(Cleaning, TakesWhatIsOldAndNeededByNothing) {
  const std::vector<WorkspaceFile> files{{"logs/habcdeAAA.0.17.log", kMega, 40 * 24h},
                                         {"allocations/habcdeAAA.out", kMega, 41 * 24h},
                                         {"outbox/habcdeAAA.0.damaged", kMega, 42 * 24h},
                                         {"logs/habcdeBBB.0.17.log", kMega, 29 * 24h}};
  EXPECT_THAT(gone(files, rules()),
              ElementsAre("outbox/habcdeAAA.0.damaged", "allocations/habcdeAAA.out",
                          "logs/habcdeAAA.0.17.log"));
  KeepRules needed = rules();
  needed.needed = {"habcdeAAA"};
  EXPECT_THAT(gone(files, needed), IsEmpty());
}

TEST(Cleaning, TakesTheOldestWhereThereIsTooMuch) {
  const std::vector<WorkspaceFile> files{{"logs/habcdeAAA.0.1.log", 500 * kMega, 3h},
                                         {"logs/habcdeBBB.0.1.log", 500 * kMega, 4h},
                                         {"logs/habcdeCCC.0.1.log", 500 * kMega, 5h},
                                         {"logs/habcdeDDD.0.1.log", 500 * kMega, 59min}};
  EXPECT_THAT(gone(files, rules()), ElementsAre("logs/habcdeCCC.0.1.log"));
  KeepRules none = rules();
  none.keep_limit = 0;
  none.needed = {"habcdeCCC"};
  const Cleaning cleaning = decide_cleaning(files, none);
  EXPECT_EQ(cleaning.gone.size(), 2u) << "what a result names stays, and what is young";
  EXPECT_EQ(cleaning.gone_bytes, 1000 * kMega);
  EXPECT_EQ(cleaning.kept_files, 2u);
  EXPECT_EQ(cleaning.kept_bytes, 1000 * kMega);
}

TEST(Cleaning, TakesProgramsThatNobodyRuns) {
  const std::vector<WorkspaceFile> files{{"bin/hpcbatch-pilot-1111", kMega, 40 * 24h},
                                         {"bin/hpcbatch-pilot-2222", kMega, 50 * 24h}};
  EXPECT_THAT(gone(files, rules()), ElementsAre("bin/hpcbatch-pilot-1111"));
  KeepRules with_live = rules();
  with_live.has_live = true;
  EXPECT_THAT(gone(files, with_live), IsEmpty());
}

TEST(Cleaning, LeavesWhatIsNotOursAlone) {
  KeepRules none = rules();
  none.keep_limit = 0;
  EXPECT_THAT(gone({{"logs/hotherAAA.0.1.log", kMega, 90 * 24h},
                    {"logs/notes.txt", kMega, 90 * 24h},
                    {"allocations/habcdeAAA.mine", kMega, 90 * 24h},
                    {"outbox/habcdeAAA.0", kMega, 90 * 24h},
                    {"bin/tool", kMega, 90 * 24h}},
                   none),
              IsEmpty());
}

TEST(Cleaning, ListsAWorkspace) {
  std::string pattern = testing::TempDir() + "clean it's-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path root = pattern;
  for (const char* folder : {"logs", "bin", "logs/deeper"})
    std::filesystem::create_directory(root / folder);
  std::ofstream(root / "logs/a b.log") << "12345";
  std::ofstream(root / "logs/deeper/x.log") << "1";
  std::ofstream(root / "bin/hpcbatch-pilot-1") << "1";
  std::filesystem::last_write_time(root / "bin/hpcbatch-pilot-1",
                                   std::filesystem::file_time_type::clock::now() - 48h);
  const auto read = [](const std::string& place) {
    const CommandLine command = list_files_of(place);
    std::FILE* pipe = ::popen((shell_quoted(command.argv) + " 2>/dev/null").c_str(), "r");
    CommandOutput output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe))
      output.standard_output += static_cast<char>(c);
    output.exit_code = WEXITSTATUS(::pclose(pipe));
    return read_listing(output);
  };
  const auto files = read(root.string());
  ASSERT_TRUE(files) << files.error().text;
  std::vector<std::string> shown;
  for (const WorkspaceFile& file : *files)
    shown.push_back(file.path + " " + std::to_string(file.bytes) + (file.age > 47h ? " old" : ""));
  EXPECT_THAT(shown, UnorderedElementsAre("logs/a b.log 5", "bin/hpcbatch-pilot-1 1 old"));
  std::filesystem::remove_all(root);
  EXPECT_FALSE(read(root.string()));
  EXPECT_FALSE(read_listing({.standard_output = "5\n1 2 logs/x.log\n"})) << "half an answer";
}

}  // namespace
}  // namespace hpcbatch
