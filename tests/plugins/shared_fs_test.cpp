// The transport to our own machine: the contract of all transports, and its configuration.
#include "hpcbatch/contract/transport.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

std::unique_ptr<Transport> make(const std::string& config_yaml = "") {
  return contract::load<Transport>(PLUGINS "/transports/shared_fs.so", config_yaml);
}

Deadline soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

std::string refusal_of(const std::string& config_yaml) {
  try {
    make(config_yaml);
    return "accepted";
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(SharedFs, ItsEnvironmentCanBeSet) {
  const auto transport = make("environment: {SLURM_CONF: /etc/x.conf, PATH: /bin}");
  const auto output = transport->run({.argv = {"sh", "-c", "echo $SLURM_CONF $PATH"}}, soon());
  ASSERT_TRUE(output) << output.error().text;
  EXPECT_EQ(output->standard_output, "/etc/x.conf /bin\n");
}

TEST(SharedFs, ProgramsAreFoundInTheSitesPath) {
  const auto output = make("environment: {PATH: /nowhere}")->run({.argv = {"sh"}}, soon());
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().text, HasSubstr("not found in PATH=/nowhere"));
}

TEST(SharedFs, HandsOnTheClusterOfItsOwnEnvironment) {
  ::setenv("SLURM_CONF", "/somewhere/slurm.conf", 1);
  const auto output = make()->run({.argv = {"sh", "-c", "echo $SLURM_CONF"}}, soon());
  ::unsetenv("SLURM_CONF");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->standard_output, "/somewhere/slurm.conf\n");
}

TEST(SharedFs, OurOwnCommandsAreNotTakenForTheBatchSystems) {
  const std::string folder = testing::TempDir() + "own-commands-" + std::to_string(::getpid());
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  for (const char* name : {"/.hpcbatch-slurm-commands", "/sbatch"})
    std::ofstream(folder + name) << "#!/bin/sh\necho ours\n";
  ::chmod((folder + "/sbatch").c_str(), 0700);
  const std::string configured = "environment: {PATH: '" + folder + ":/nowhere'}";
  const auto output = make(configured)->run({.argv = {"sbatch"}}, soon());
  EXPECT_FALSE(output) << output->standard_output;
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", (folder + ":/usr/bin:" + folder + ":/bin").c_str(), 1);
  const auto shown = make()->run(
      {.argv = {"sh", "-c", "echo $PATH $HPCBATCH_SLURM_REAL $HPCBATCH_PBS_REAL"}}, soon());
  ::setenv("PATH", before.c_str(), 1);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->standard_output, "/usr/bin:/bin 1 1\n");
  std::filesystem::remove_all(folder);
}

TEST(SharedFs, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal_of("environment: {}\nenviroment: {A: b}"),
              HasSubstr("line 2: unknown key 'enviroment'"));
  EXPECT_THAT(refusal_of("environment: [A]"), HasSubstr("must be a map"));
  EXPECT_THAT(refusal_of("environment: {A: [1]}"), HasSubstr("value of 'A' must be a text"));
  EXPECT_THAT(refusal_of("- a"), HasSubstr("must be a map"));
}

TEST(SharedFs, SignalsThatTheEngineIgnoresReachCommands) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto output = make()->run({.argv = {"sh", "-c", "kill -PIPE $$; echo survived"}}, soon());
  ::signal(SIGPIPE, SIG_DFL);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->exit_code, 128 + SIGPIPE);
}

char state_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(") ");
  return name_end == std::string::npos ? 'X' : text[name_end + 2];
}

TEST(SharedFs, ACommandDiesWithTheEngineThatAskedForIt) {
  const std::string file = testing::TempDir() + "command-" + std::to_string(::getpid());
  const pid_t engine = ::fork();
  if (engine == 0) {
    (void)make()->run({.argv = {"sh", "-c", "echo $$ > " + file + "; exec sleep 60"}}, soon());
    ::_exit(0);
  }
  std::string command;
  for (int i = 0; i < 1000 && command.empty(); ++i) {
    std::ifstream(file) >> command;
    ::usleep(10'000);
  }
  ASSERT_FALSE(command.empty());
  EXPECT_NE(state_of(command), 'X');
  ::kill(engine, SIGKILL);
  ::waitpid(engine, nullptr, 0);
  const auto is_dead = [&] { return state_of(command) == 'X' || state_of(command) == 'Z'; };
  for (int i = 0; i < 1000 && !is_dead(); ++i) ::usleep(10'000);
  EXPECT_TRUE(is_dead());
  ::unlink(file.c_str());
}

TEST(SharedFs, ProgramsBehindStreamsAreReaped) {
  const auto transport = make();
  const auto stream = transport->open({.argv = {"sh", "-c", "echo $$"}}, soon());
  ASSERT_TRUE(stream);
  char buffer[32]{};
  ASSERT_GT(::read(*stream, buffer, sizeof buffer - 1), 0);
  EXPECT_EQ(::read(*stream, buffer + 16, 8), 0);  // its end
  ::close(*stream);
  const std::string process = std::to_string(std::atoi(buffer));
  const auto gone_by = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool gone = false;
  while (!gone && std::chrono::steady_clock::now() < gone_by) {
    ASSERT_TRUE(transport->run({.argv = {"true"}}, soon()));
    gone = !std::filesystem::exists("/proc/" + process);
  }
  EXPECT_TRUE(gone) << "process " << process << " is still there";
}

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(SharedFs, TransportContract,
                         testing::Values(TransportCase{.make = [] { return make(); },
                                                       .directory = testing::TempDir()}));
}  // namespace contract
}  // namespace hpcbatch
