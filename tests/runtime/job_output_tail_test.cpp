// What a batch job printed last, as sh finds it.
#include "sites/site_client.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class OutputTailTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "words it's-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void printed(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / (name + ".out")) << text;
  }
  OutputTails read(const std::vector<std::string>& names) const {
    const CommandLine command = ask_output_tails(directory_.string(), names);
    std::FILE* pipe = ::popen(shell_quoted(command.argv).c_str(), "r");
    std::string output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
    EXPECT_EQ(::pclose(pipe), 0);
    return read_output_tails(names, output);
  }

  std::filesystem::path directory_;
};

TEST_F(OutputTailTest, AreTheLastLineThatSaysSomething) {
  printed("hbA", "good morning\n/var/spool/5.SC: 12: pbsdsh: not found\n \n\n");
  printed("hbB", "no end of line");
  printed("hbC", "");
  printed("hbD", std::string(100'000, 'x') + "\nlast\x1b[0m\r\n");
  EXPECT_THAT(read({"hbA", "hbB", "hbC", "hbD", "hbE"}),
              ElementsAre(Pair("hbA", "/var/spool/5.SC: 12: pbsdsh: not found"),
                          Pair("hbB", "no end of line"), Pair("hbD", "last [0m")));
}

TEST_F(OutputTailTest, ALongLineIsCut) {
  printed("hbA", std::string(100'000, 'x'));
  const OutputTails words = read({"hbA"});
  EXPECT_EQ(words.at("hbA").size(), 300u);
  EXPECT_TRUE(words.at("hbA").ends_with("x..."));
}

TEST_F(OutputTailTest, OutputThatLooksLikeOursIsOutput) {
  printed("hbA", "hbout hbZ\nit\n");
  EXPECT_THAT(read({"hbA"}), ElementsAre(Pair("hbA", "it")));
}

TEST(NotLiving, AreThoseThatEndedOrAreNotListed) {
  const BatchJob ended{.name = "hbA", .state = BatchState::Ended};
  const BatchJob queued{.name = "hbB", .state = BatchState::Queued};
  EXPECT_THAT(not_living({"hbA", "hbB", "hbC"}, {ended, queued}), ElementsAre("hbA", "hbC"));
  EXPECT_THAT(not_living({}, {ended}), IsEmpty());
}

}  // namespace
}  // namespace hpcbatch
