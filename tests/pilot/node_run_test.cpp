// What is started on another node of a task: one machine is both nodes, the pilot's own programs
// are the two ends.
#include "pilot/nodes/task_nodes.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace hpcbatch::pilot {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct NodeRunTest : testing::Test {
  NodeRunTest() {
    std::string name = testing::TempDir() + "/hpcbatch-nodes-XXXXXX";
    folder = ::mkdtemp(name.data());
    const TaskNodes nodes{"a1", {{0, 1, "here"}, {1, 1, "there"}}};
    EXPECT_EQ(make_nodes_folder(folder, nodes, HPCBATCH_PILOT), "");
    EXPECT_EQ(spawn_program({HPCBATCH_PILOT, "node-agent", folder, "a1", "1", "1"}, {}, agent), 0);
    ::setenv(kNodesFolder, folder.c_str(), 1);
    ::setenv(kNodeIndex, "0", 1);
  }
  ~NodeRunTest() override {
    end_agent();
    fs::remove_all(folder);
  }
  void end_agent() {
    if (agent <= 0) return;
    ::kill(agent, SIGTERM);
    wait_for_end(agent);
    agent = 0;
  }
  /// $rsh is node-rsh, $run is node-run.
  Ran shell(const std::string& script, std::chrono::milliseconds time = 60s) const {
    const auto ran = run_in_time(
        {"bash", "-c",
         "rsh=" + folder + "/node-rsh; run=" + folder + "/node-run; exec 2>&1; " + script},
        time);
    EXPECT_TRUE(ran) << "not within its time: " << script;
    return ran.value_or(Ran{});
  }

  std::string folder;
  pid_t agent{0};
};

TEST_F(NodeRunTest, ExitCodeArrivesWhereInputIsNotRead) {
  for (int i = 0; i < 10; ++i) {
    const Ran ran = shell("yes | $rsh there 'exit 7'");
    EXPECT_EQ(shell_code_of(ran.status), 7) << ran.out;
  }
}

TEST_F(NodeRunTest, ManyBytesGoBothWaysAtOnce) {
  const Ran ran = shell("head -c 20000000 /dev/urandom > " + folder + "/in; $rsh there cat < " +
                        folder + "/in | cmp - " + folder + "/in");
  EXPECT_EQ(shell_code_of(ran.status), 0) << ran.out;
}

TEST_F(NodeRunTest, InputEndsOnTheOtherNodeToo) {
  EXPECT_EQ(shell("printf 'a\\nb\\n' | $rsh there 'wc -l; echo over'").out, "2\nover\n");
  EXPECT_EQ(shell("$rsh there cat < /dev/null; echo over").out, "over\n");
}

TEST_F(NodeRunTest, ManyAtOnceHaveConnectionsOfTheirOwn) {
  const Ran ran = shell(
      "for i in $(seq 12); do ( $rsh there \"sleep 0.2; echo $i; exit $i\"; echo code $? ) & done; "
      "wait");
  for (int i = 1; i <= 12; ++i)
    EXPECT_NE(ran.out.find("code " + std::to_string(i) + "\n"), std::string::npos) << ran.out;
}

TEST_F(NodeRunTest, OneThatGoesOnInTheBackgroundIsNotWaitedFor) {
  const Ran ran = shell("$rsh there 'setsid sleep 60 & exit 3'", 20s);
  EXPECT_EQ(shell_code_of(ran.status), 3) << ran.out;
}

TEST_F(NodeRunTest, OneWhoseOutputIsClosedEnds) {
  EXPECT_EQ(shell("$rsh there yes | head -1", 20s).out, "y\n");
}

TEST_F(NodeRunTest, SignalsAreForwarded) {
  const Ran ran =
      shell("$rsh there 'trap \"exit 9\" TERM; echo up; while :; do sleep 0.1; done' > " + folder +
            "/out & until grep -q up " + folder + "/out; do sleep 0.1; done; kill $!; wait $!");
  EXPECT_EQ(shell_code_of(ran.status), 9) << ran.out;
}

TEST_F(NodeRunTest, OneThatIsNotThereSaysSo) {
  const Ran ran = shell("$rsh elsewhere true");
  EXPECT_EQ(shell_code_of(ran.status), 2);
  EXPECT_NE(ran.out.find("'elsewhere' is no node of the task"), std::string::npos) << ran.out;
}

TEST_F(NodeRunTest, NodesThatTheTaskDoesNotHaveAreRefused) {
  for (const char* names : {"gone", "there,gone", "''"}) {
    const Ran ran = shell("$run -w " + std::string(names) + " echo started");
    EXPECT_EQ(shell_code_of(ran.status), 2) << ran.out;
    EXPECT_EQ(ran.out.find("started"), std::string::npos) << ran.out;
  }
  EXPECT_EQ(shell("$run -w there echo started").out, "started\n");
}

TEST_F(NodeRunTest, TheFirstNodeIsNotWaitedForByAnother) {
  const Ran ran = shell("$rsh there \"$run -w here true\"", 20s);
  EXPECT_EQ(shell_code_of(ran.status), 125) << ran.out;
  EXPECT_NE(ran.out.find("only the first node of the task, here"), std::string::npos) << ran.out;
}

TEST_F(NodeRunTest, WithItsAgentEndsWhatItHasStarted) {
  const std::string up = folder + "/up";
  pid_t caller{};
  ASSERT_EQ(
      spawn_program({folder + "/node-rsh", "there", "echo $$ > " + up + "; sleep 61"}, {}, caller),
      0);
  pid_t started = 0;
  for (int i = 0; i < 600 && started == 0; ++i, ::usleep(100'000)) std::ifstream(up) >> started;
  ASSERT_NE(started, 0);
  end_agent();
  EXPECT_EQ(shell_code_of(wait_for_end(caller)), 125);
  for (int i = 0; i < 100 && start_of_process(started) != 0; ++i) ::usleep(100'000);
  EXPECT_EQ(start_of_process(started), 0);
}

}  // namespace
}  // namespace hpcbatch::pilot
