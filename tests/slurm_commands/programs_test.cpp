// Programs that Slurm's commands start: the steps of srun, and the real commands.
#include "slurm_commands/commands.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace hpcbatch::slurm_commands {
namespace {

using testing::HasSubstr;

class SlurmPrograms : public testing::Test {
 public:
  SlurmPrograms() {
    std::string pattern = testing::TempDir() + "slurm-programs-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SlurmPrograms() override { std::filesystem::remove_all(folder_); }

 protected:
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string text_of(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  int step(const std::vector<std::string>& words) const {
    Interrupt interrupt;
    return srun({"srun", words, {{"HPCBATCH_TASK_ID", "12"}}}, Session{Places{}, interrupt});
  }
  std::string folder_;
};

TEST_F(SlurmPrograms, RanksAddToAFileThatTheyShare) {
  std::ofstream(file("out")) << "of before\n";
  std::string all;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(step({"-n6", "-o", file("out"), "sh", "-c", "echo rank $SLURM_PROCID"}), 0);
    all = text_of("out");
  }
  EXPECT_EQ(all.size(), 6 * std::string("rank 0\n").size()) << all;
  for (const char* rank : {"0", "1", "2", "3", "4", "5"})
    EXPECT_THAT(all, HasSubstr(std::string("rank ") + rank + "\n"));
  EXPECT_EQ(step({"-n2", "--open-mode=append", "-o", file("out"), "echo", "more"}), 0);
  EXPECT_EQ(text_of("out").size(), all.size() + 2 * std::string("more\n").size());
  EXPECT_EQ(step({"-n2", "-o", file("no/out"), "true"}), 127);
}

TEST_F(SlurmPrograms, AStepIsBoundToCpusWhereItHasAllOfThem) {
  ASSERT_EQ(step({"-l", "-n1", "-o", file("all"), "nproc"}), 0);
  const std::string all = text_of("all").substr(0, text_of("all").find('\n'));
  ASSERT_EQ(step({"-l", "-n1", "-c1", "-o", file("one"), "nproc"}), 0);
  EXPECT_EQ(text_of("one"), all + "\n") << "others may run beside it";
  ASSERT_EQ(step({"-n", all, "-c1", "-o", file("each"), "nproc"}), 0);
  EXPECT_THAT(text_of("each"), testing::StartsWith("1\n"));
}

TEST_F(SlurmPrograms, CommandsThatCallEachOtherAreEndedUnlessItWasLongAgo) {
  const std::string real = file("squeue");
  std::ofstream(real) << "#!/bin/sh\necho \"$HPCBATCH_SLURM_CALLS\" > " << file("calls") << "\n";
  std::filesystem::permissions(real, std::filesystem::perms::owner_all);
  const auto now = std::to_string(static_cast<long>(now_in_seconds()));
  const auto run = [&](const std::string& calls) {
    const Call call{"squeue", {}, {{"PATH", folder_}, {"HPCBATCH_SLURM_CALLS", calls}}};
    return run_real(call, {}).value_or(-1);
  };
  EXPECT_EQ(run("8:" + now), 127);
  EXPECT_EQ(run("7:" + now), 0);
  EXPECT_EQ(text_of("calls"), "8:" + now + "\n") << "since the first of them";
  EXPECT_EQ(run("8:" + std::to_string(std::stol(now) - 100)), 0);
  EXPECT_THAT(text_of("calls"), testing::StartsWith("1:"));
  EXPECT_EQ(run("8"), 0);
}

}  // namespace
}  // namespace hpcbatch::slurm_commands
