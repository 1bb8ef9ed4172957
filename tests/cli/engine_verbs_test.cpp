// Starting an engine where none runs, and what else is said to it.  The engine is the probe's own
// (probe_main.cpp).
#include "cli/verbs/doctor.hpp"
#include "model/owner.hpp"
#include "posix/programs.hpp"
#include "verb_test.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::test {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

class EngineVerbsTest : public VerbTest {
 protected:
  void TearDown() override { cli({"engine", "stop"}); }

  std::string starts() const {
    std::ifstream file(home() + "/starts");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static CliOptions engine_that(const std::string& what) {
    CliOptions options;
    options.environment["PROBE_ENGINE"] = what;
    return options;
  }
};

TEST_F(EngineVerbsTest, RunStartsAnEngineOnceAndUsesItAgain) {
  for (int turn = 0; turn < 2; ++turn) {
    const CliResult result = cli({"run", "--", "x"});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_EQ(result.out, "hi\n");
  }
  EXPECT_EQ(starts(), "idle -\n");
  struct stat log {};
  ASSERT_EQ(::stat((home() + "/engine.log").c_str(), &log), 0);
  EXPECT_EQ(log.st_mode & 0777u, 0600u);
}

TEST_F(EngineVerbsTest, TheHomeIsMadeForItsOwnerAlone) {
  CliOptions options;
  options.environment["HPCBATCH_HOME"] = home() + "/a/b";
  EXPECT_EQ(cli({"engine", "start"}, options).exit_code, 0);
  struct stat made {};
  ASSERT_EQ(::stat((home() + "/a/b").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777u, 0700u);
  EXPECT_EQ(cli({"engine", "stop"}, options).exit_code, 0);
}

TEST_F(EngineVerbsTest, ManyClientsAtOnceEndWithOneEngine) {
  std::vector<std::unique_ptr<CliProcess>> clients(8);
  for (auto& client : clients)
    client = std::make_unique<CliProcess>(home(), std::vector<std::string>{"run", "--", "x"});
  for (const auto& client : clients) {
    const CliResult result = client->wait();
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_EQ(result.out, "hi\n");
  }
  EXPECT_EQ(starts(), "idle -\n");
}

TEST_F(EngineVerbsTest, AWrongConfigurationIsTheEnginesSentence) {
  const CliResult submit = cli({"submit", "--", "x"}, engine_that("wrong configuration"));
  EXPECT_EQ(submit.exit_code, 2);
  EXPECT_EQ(submit.err,
            "hpcbatch: config.yaml:3: unknown key 'sheduler'; did you mean 'scheduler'?\n");
  EXPECT_EQ(cli({"run", "--", "x"}, engine_that("wrong configuration")).exit_code, 125);
}

TEST_F(EngineVerbsTest, AnEngineOnAnotherHostIsNamed) {
  const CliResult result = cli({"submit", "--", "x"}, engine_that("elsewhere"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.err, "hpcbatch: the engine runs on host login2 (process 17)\n");
}

TEST_F(EngineVerbsTest, AnEngineThatJustDiesIsSaid) {
  const CliResult result = cli({"engine", "start"}, engine_that("dies"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("exit code 9; see " + home() + "/engine.log"));
}

TEST_F(EngineVerbsTest, StartStatusStop) {
  EXPECT_EQ(cli({"engine", "status"}).exit_code, 3);
  EXPECT_THAT(cli({"engine", "start", "--config", "/c.yaml"}).out,
              HasSubstr("the engine runs: process "));
  EXPECT_EQ(starts(), "stay /c.yaml\n");
  EXPECT_THAT(cli({"engine", "start"}).out, HasSubstr("runs already"));
  EXPECT_THAT(cli({"engine", "start", "--config", "/c.yaml"}).out, HasSubstr("runs already"));
  const CliResult other = cli({"engine", "start", "--config", "/d.yaml"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("an engine runs already, with the configuration /c.yaml"));
  EXPECT_EQ(json::parse(cli({"engine", "status", "--json"}).out).at("version"), "1");
  EXPECT_EQ(cli({"engine", "stop"}).exit_code, 0);
  EXPECT_EQ(cli({"engine", "status"}).exit_code, 3);
  EXPECT_EQ(cli({"engine", "stop"}).out, "no engine runs\n");
}

TEST_F(EngineVerbsTest, StartMakesAnEngineThatATaskHasStartedStay) {
  cli({"run", "--", "x"});
  EXPECT_EQ(starts(), "idle -\n");
  EXPECT_EQ(cli({"engine", "start"}).exit_code, 0);
  EXPECT_EQ(starts(), "idle -\nstays\n");
}

TEST_F(EngineVerbsTest, LooksNameAnEngineOnAnotherHost) {
  const auto write_lock = [&](long long age) {
    file("engine.lock", "host far-away\nboot x\nprocess 4711\nstart 1\nheartbeat " +
                            std::to_string(std::time(nullptr) - age) + "\n");
  };
  write_lock(10);
  for (const auto& words : {std::vector<std::string>{"engine", "stop"},
                            {"engine", "status"},
                            {"list"},
                            {"wait", "1"},
                            {"cancel", "1"}}) {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 3) << words[0];
    EXPECT_THAT(result.err, HasSubstr("runs on far-away (process 4711)")) << words[0];
  }
  write_lock(3600);
  EXPECT_EQ(cli({"engine", "stop"}).out, "no engine runs\n");
}

TEST_F(EngineVerbsTest, AnEngineThatHasLostItsSocketIsNamedAndWaitedFor) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  file("engine.lock", to_text(Owner{.host = host,
                                    .boot_id = boot_id(),
                                    .process = ::getpid(),
                                    .process_start = start_of_process(::getpid()),
                                    .heartbeat = 1}));
  CliOptions options;
  options.is_terminal = true;
  CliProcess status(home(), {"engine", "status"}, options);
  status.wait_for_output("waits for the engine: an engine runs here (process " +
                         std::to_string(::getpid()));
  CliProcess doctor(home(), {"doctor"}, options);
  doctor.wait_for_output("waits for the engine: an engine runs here");
  engine_answers({{"GET /v1/engine", R"({"pid": 12, "version": "1"})"}, {"GET /v1/sites", "{}"}});
  EXPECT_EQ(status.wait().exit_code, 0);
  EXPECT_THAT(doctor.wait().out, HasSubstr("runs as process " + std::to_string(::getpid())));
  engine_ends();
  ::unlink((home() + "/socket").c_str());
  const CliResult never = cli({"list"});
  EXPECT_EQ(never.exit_code, 3);
  EXPECT_THAT(never.err, HasSubstr("may still read its store back: then wait"));
  EXPECT_THAT(never.err, HasSubstr("`kill " + std::to_string(::getpid()) + "` ends the engine"));
  EXPECT_EQ(starts(), "") << "a second one would be refused";
  ::unlink((home() + "/engine.lock").c_str());
}

TEST_F(EngineVerbsTest, VerbsThatLookStartAnEngineAndSaySo) {
  const CliResult first = cli({"list"});
  EXPECT_THAT(first.err, HasSubstr("no engine ran; one was started"));
  for (const char* verb : {"list", "sites", "pilots"})
    EXPECT_THAT(cli({verb}).err, testing::Not(HasSubstr("was started"))) << verb;
  EXPECT_EQ(starts(), "idle -\n");
}

TEST_F(EngineVerbsTest, AReloadOfNoEngineIsRefused) {
  EXPECT_EQ(cli({"engine", "reload"}).exit_code, 3);
  EXPECT_EQ(starts(), "");
}

TEST_F(EngineVerbsTest, DropboxTellsTheEngine) {
  engine_answers({{"POST /v1/dropboxes", R"({"directory": "/box"})"},
                  {"GET /v1/dropboxes",
                   R"({"dropboxes": [{"directory": "/box"},
                                     {"directory": "/gone", "message": "there is none"}]})"},
                  {"POST /v1/dropboxes/remove", R"({"removed": "/box"})"},
                  {"POST /v1/engine/stop", "{}"}});
  EXPECT_EQ(cli({"dropbox", "/box", "--allow", "/a", "--templates", "/t", "--var", "k=v"}).out,
            "the engine watches /box\n");
  EXPECT_EQ(
      body_of("POST", "/v1/dropboxes"),
      json::parse(
          R"({"directory": "/box", "allow": ["/a"], "templates": ["/t"], "variables": {"k": "v"}})"));
  EXPECT_EQ(cli({"dropbox"}).out, "/box\n/gone  (not watched: there is none)\n");
  EXPECT_EQ(cli({"dropbox", "/box", "--remove"}).out, "the engine watches /box no more\n");
  EXPECT_EQ(body_of("POST", "/v1/dropboxes/remove"), (json::object{{"directory", "/box"}}));
  engine_ends();
}

TEST_F(EngineVerbsTest, DoctorSaysWhatIsBadAndWhatToDo) {
  ::chmod(home().c_str(), 0755);
  const CliResult result = cli({"doctor"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("do: chmod 700 " + home()));
  const CliResult wrong = cli({"doctor", "--json"}, engine_that("wrong configuration"));
  EXPECT_THAT(
      wrong.out,
      HasSubstr(
          R"({"check":"configuration","ok":false,"text":"its check ended with exit code 2"})"));
  ::chmod(home().c_str(), 0700);
}

TEST_F(EngineVerbsTest, CodeThatWasReplacedUnderARunningEngineIsNamed) {
  EXPECT_TRUE(check_loaded(::getpid()).is_good) << check_loaded(::getpid()).text;
  const std::filesystem::path folder = std::filesystem::path(home()) / "tools";
  std::filesystem::create_directories(folder);
  const std::filesystem::path plugin = folder / "mine.so";
  std::filesystem::copy_file("/proc/self/exe", plugin);
  const int file = ::open(plugin.c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  ::close(file);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_TRUE(check_loaded(::getpid()).is_good);
  std::filesystem::rename(this->file("new", "new"), plugin);
  const Check check = check_loaded(::getpid());
  EXPECT_FALSE(check.is_good);
  EXPECT_THAT(check.text, HasSubstr("before " + plugin.string() + " was replaced or removed"));
  ::munmap(mapped, 4096);
}

TEST_F(EngineVerbsTest, ARestartStartsOneWhereNoneRuns) {
  const CliResult result = cli({"engine", "restart"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("the engine runs: process "));
}

}  // namespace
}  // namespace hpcbatch::test
