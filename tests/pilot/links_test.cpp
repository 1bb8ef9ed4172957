// The pilot and its engine: leases and recalls, an engine that goes and comes back, and how a pilot
// leaves.
#include "pilot_fixture.hpp"
#include "wire/outbox.hpp"
#include "wire/whole_file.hpp"

#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace hpcbatch::pilot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LinksTest : public PilotTest {
 protected:
  /// As /proc has it: 'S' while it waits for something to happen.
  static char process_state(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t name_end = stat.rfind(')');
    return name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
  }
  static wire::Start waits(unsigned n) {
    wire::Start start = shell(n, "read line; echo done");
    start.set_input_streamed(true);
    return start;
  }
  void let_go(unsigned n) {
    wire::ToPilot message;
    wire::Input* input = message.add_input();
    *input->mutable_attempt() = attempt(n);
    input->set_data("go\n");
    send(message);
  }
  void say(void (wire::ToPilot::*what)(bool)) {
    wire::ToPilot message;
    (message.*what)(true);
    send(message);
  }
  std::string outbox() const { return path("workspace/" + wire::outbox_name({"Hbtest", 0})); }
  static std::string run_program(const std::vector<std::string>& argv, int& code) {
    std::string command;
    for (const std::string& word : argv) command += "'" + word + "' ";
    FILE* pipe = ::popen((command + "2>&1").c_str(), "r");
    std::string text;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    code = WEXITSTATUS(::pclose(pipe));
    return text;
  }
};

TEST_F(LinksTest, TellsItsVersionAndRefusesABadFile) {
  int code = -1;
  EXPECT_EQ(run_program({HPCBATCH_PILOT, "--version"}, code),
            "hpcbatch-pilot " HPCBATCH_VERSION "\n");
  EXPECT_EQ(code, 0);
  EXPECT_THAT(run_program({HPCBATCH_PILOT}, code), HasSubstr("usage: hpcbatch-pilot FILE"));
  EXPECT_EQ(code, 2);
  EXPECT_THAT(run_program({HPCBATCH_PILOT, path("none")}, code),
              HasSubstr("none: No such file or directory"));
  EXPECT_EQ(code, 2);
  write("bad", "hello\n");
  ASSERT_EQ(::chmod(path("bad").c_str(), 0600), 0);
  EXPECT_THAT(run_program({HPCBATCH_PILOT, path("bad")}, code),
              HasSubstr("bad, line 1: expected 'hpcbatch-pilot 1'"));
  EXPECT_EQ(code, 2);
  ASSERT_EQ(::chmod(path("bad").c_str(), 0644), 0);
  EXPECT_THAT(run_program({HPCBATCH_PILOT, path("bad")}, code),
              HasSubstr("can be opened by others"));
}

TEST_F(LinksTest, FillsItsRoomAndGivesBackWhatIsRecalled) {
  file_.capacity = {{"cpus", 20000}};
  start();
  for (unsigned n = 1; n <= 5; ++n) run(waits(n));
  until("two to run", [&] { return input_wanted_.size() == 2; });
  wire::ToPilot message;
  message.set_recall(2);
  send(message);
  until("two to come back", [&] { return returned_.size() == 2; });
  EXPECT_THAT(returned_, ElementsAre(5, 4));
  for (unsigned n : {1U, 2U, 3U}) {
    until("it to run", [&] { return input_wanted_.contains(n); });
    let_go(n);
    EXPECT_EQ(result_of(n).failure(), "ok");
  }
  EXPECT_EQ(input_wanted_.size(), 3U);
}

TEST_F(LinksTest, TellsWhatRuns) {
  start();
  run(waits(1));
  until("it to be told", [&] { return started_.contains(1); });
  let_go(1);
  result_of(1);
}

TEST_F(LinksTest, ConnectsOverTcpAndTakesTheFirstAddressThatAnswers) {
  listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener_.get(), 10), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  file_.addresses = {{wire::Address::Kind::Unix, path("nobody"), 0},
                     {wire::Address::Kind::Tcp, "not.a.number", port},
                     {wire::Address::Kind::Tcp, "127.0.0.1", port}};
  start_process();
  welcome();
  EXPECT_EQ(registration_.link(), "tcp 127.0.0.1 " + std::to_string(port));
  EXPECT_EQ(outcome(shell(1, "echo $HPCBATCH_PILOT")).failure(), "ok");
}

TEST_F(LinksTest, APathLongerThanASocketsNameWorks) {
  const std::string deep = path("d") + "/" + std::string(100, 'e');
  std::filesystem::create_directories(deep);
  listen();
  std::filesystem::rename(path("link"), deep + "/link");
  file_.addresses = {{wire::Address::Kind::Unix, deep + "/link", 0}};
  start_process();
  welcome();
  EXPECT_EQ(outcome(shell(1, "true")).failure(), "ok");
}

TEST_F(LinksTest, AnotherKeyIsNotSpokenTo) {
  listen();
  start_process();
  const wire::Key right = file_.key;
  file_.key = wire::random_key();
  until("a link", [this] {
    socket_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return static_cast<bool>(socket_);
  });
  wire::Link door =
      wire::Link::accepting([this](const wire::PilotName&) { return std::optional(file_.key); });
  bool refused = false;
  while (!refused) {
    char bytes[4096];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    ASSERT_GT(got, 0);
    refused = !door.receive(std::string_view(bytes, static_cast<std::size_t>(got)));
    const std::string answer = door.take_output();
    ::send(socket_.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  }
  file_.key = right;
  welcome();
  EXPECT_EQ(outcome(shell(1, "true")).failure(), "ok");
}

TEST_F(LinksTest, WorksOnWithoutItsEngineAndDeliversWhenItIsBack) {
  file_.capacity = {{"cpus", 10000}};
  start();
  run(waits(1));
  until("it to run", [&] { return input_wanted_.contains(1); });
  for (unsigned n : {2U, 3U})
    run(shell(n, "echo x >> " + path("ran") + "; echo task $HPCBATCH_TASK_ID"));
  let_go(1);
  result_of(1);
  engine_dies();
  until("the others to have run", [&] { return contents("ran") == "x\nx\n"; });
  results_.clear();
  started_.clear();
  listen();
  welcome();
  EXPECT_EQ(registration_.held_size(), 3);
  for (unsigned n : {1U, 2U, 3U}) EXPECT_EQ(result_of(n).failure(), "ok");
  EXPECT_EQ(output(results_[3]), "task 3\n");
  for (unsigned n : {1U, 2U, 3U}) acknowledge(n);
  results_.clear();
  EXPECT_EQ(outcome(shell(1, "echo again >> " + path("ran"))).failure(), "ok");
  EXPECT_EQ(contents("ran"), "x\nx\nagain\n")
      << "what was acknowledged is forgotten and may be leased again";
  engine_dies();
  results_.clear();
  listen();
  welcome();
  result_of(1);
  EXPECT_EQ(results_.size(), 1U);
}

TEST_F(LinksTest, TheEngineMayMove) {
  start();
  engine_dies();
  file_.addresses = {{wire::Address::Kind::Unix, path("elsewhere"), 0}};
  listen();
  std::filesystem::rename(path("link"), path("elsewhere"));
  ASSERT_TRUE(wire::replace_file(path("pilot"), wire::to_text(file_), wire::Readers::OwnerOnly));
  welcome();
  EXPECT_EQ(registration_.link(), "unix " + path("elsewhere"));
}

TEST_F(LinksTest, WithItsFileGoneItFinishesAndLeavesItsResults) {
  file_.capacity = {{"cpus", 10000}};
  start();
  run(shell(1, "while [ ! -e " + path("go") + " ]; do sleep 0.01; done; echo done"));
  run(shell(2, "true"));
  until("it to run", [&] { return started_.contains(1); });
  ::unlink(path("pilot").c_str());
  engine_dies();
  until("the pilot to notice",
        [&] { return contents("pilot.log").find("leaving: given up") != std::string::npos; });
  write("go", "");
  EXPECT_EQ(exit_code(), 0);
  const auto box = wire::read_outbox(outbox());
  ASSERT_TRUE(box) << box.error().text;
  EXPECT_EQ(box->pilot, (wire::PilotName{"Hbtest", 0}));
  EXPECT_EQ(box->incarnation, registration_.incarnation());
  ASSERT_EQ(box->results.size(), 1U);
  wire::Result result;
  ASSERT_TRUE(result.ParseFromString(box->results[0]));
  EXPECT_EQ(result.failure(), "ok");
  EXPECT_EQ(output(result), "done\n");
}

TEST_F(LinksTest, AFileThatIsHiddenForAMomentIsNotBelievedGone) {
  start();
  engine_dies();
  std::filesystem::rename(path("pilot"), path("hidden"));
  const Fd looks(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(looks.get(), path("").c_str(), IN_OPEN | IN_ONLYDIR), 0);
  int seen = 0;
  until("the pilot to look three times", [&] {
    alignas(inotify_event) std::array<char, 4096> events;
    for (ssize_t size; (size = ::read(looks.get(), events.data(), events.size())) > 0;) {
      for (ssize_t at = 0; at < size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
        if ((event->mask & IN_ISDIR) != 0) ++seen;
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    return seen >= 3;
  });
  std::filesystem::rename(path("hidden"), path("pilot"));
  listen();
  welcome();
  EXPECT_EQ(outcome(shell(1, "true")).failure(), "ok");
}

TEST_F(LinksTest, ASecondPilotDeliversWhatTheFirstLeft) {
  wire::Result left;
  *left.mutable_attempt() = attempt(77);
  left.set_failure("ok");
  ::mkdir(path("workspace/outbox").c_str(), 0700);
  ASSERT_TRUE(wire::write_outbox(outbox(), {{"Hbtest", 0}, 5, {left.SerializeAsString()}}));
  start();
  EXPECT_EQ(result_of(77).failure(), "ok");
  acknowledge(77);
  until("the outbox to be removed", [&] { return ::access(outbox().c_str(), F_OK) != 0; });
}

TEST_F(LinksTest, ASecondPilotThatCannotSeeWhatTheFirstLeftDoesNotWriteOverIt) {
  ::mkdir(path("workspace/outbox").c_str(), 0700);
  ASSERT_EQ(::symlink(outbox().c_str(), outbox().c_str()), 0);
  start();
  EXPECT_EQ(leaving_, "failed checks");
  EXPECT_EQ(exit_code(), 4);
  EXPECT_THAT(contents("pilot.log"), testing::HasSubstr("outbox: cannot look at"));
  struct stat facts {};
  EXPECT_EQ(::lstat(outbox().c_str(), &facts), 0);
}

TEST_F(LinksTest, TermEndsTheTasksAndReports) {
  file_.capacity = {{"cpus", 10000}};
  start();
  run(shell(1, "trap 'echo told; exit 9' TERM; echo ready >&2; while :; do sleep 0.01; done"));
  run(shell(2, "true"));
  wire::ToPilot message;
  *message.add_follow()->mutable_attempt() = attempt(1);
  send(message);
  until("it to be ready", [&] { return chunks_[1][2] == "ready\n"; });
  ::kill(pid_, SIGTERM);
  const auto result = result_of(1);
  EXPECT_EQ(result.failure(), "pilot_killed");
  EXPECT_EQ(result.exit_code(), 9);
  EXPECT_EQ(output(result), "told\n");
  EXPECT_THAT(returned_, ElementsAre(2));
  EXPECT_EQ(leaving_, "terminated");
  acknowledge(1);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(outbox()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("scratch")), {}), 0)
      << "scratch is left behind";
}

TEST_F(LinksTest, ATaskThatTheBatchSystemSignalsBeforeThePilotIsNotToBlame) {
  start();
  run(shell(1, "kill -TERM $$"));
  EXPECT_EQ(result_of(1).failure(), "tool_signal") << "nobody ended the pilot";
  auto told = shell(2, "echo $$ >&2; exec sleep 1000");
  told.set_follow(true);
  run(told);
  until("its number", [&] { return !chunks_[2][2].empty(); });
  const pid_t pid = std::stoi(chunks_[2][2]);
  ::kill(pid, SIGTERM);
  until("it to be gone", [&] { return !lives(pid); });
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(result_of(2).failure(), "pilot_killed");
}

TEST_F(LinksTest, TermWithoutAnEngineLeavesTheOutbox) {
  start();
  run(waits(1));
  until("it to run", [&] { return input_wanted_.contains(1); });
  engine_dies();
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(exit_code(), 0);
  const auto box = wire::read_outbox(outbox());
  ASSERT_TRUE(box) << box.error().text;
  ASSERT_EQ(box->results.size(), 1U);
  wire::Result result;
  ASSERT_TRUE(result.ParseFromString(box->results[0]));
  EXPECT_EQ(result.failure(), "pilot_killed");
}

TEST_F(LinksTest, AtItsWalltimeItEndsWhatRunsAndLeaves) {
  file_.walltime = 2s;
  file_.margin = 1s;
  start();
  EXPECT_LE(registration_.time_left_ms(), 1000);
  EXPECT_GE(registration_.time_left_ms(), 0);
  auto too_long = shell(2, "true");
  too_long.set_time_limit_ms(5000);
  run(too_long);
  run(shell(1, "exec sleep 1000"));
  until("what cannot end in time to come back", [&] { return !returned_.empty(); });
  EXPECT_THAT(returned_, ElementsAre(2));
  EXPECT_EQ(result_of(1).failure(), "pilot_walltime");
  EXPECT_EQ(leaving_, "walltime");
  acknowledge(1);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(LinksTest, ASuspendedPilotGivesItsTasksTheirTimeBack) {
  start();
  auto limited = shell(1, "sleep 600");
  limited.set_time_limit_ms(4000);
  run(limited);
  until("its start", [&] { return started_.contains(1); });
  until("it to sleep", [&] { return process_state(pilot_process()) == 'S'; });
  ::kill(pilot_process(), SIGSTOP);
  // Its limit and what counts as late, and some more.
  std::this_thread::sleep_for(10s);
  ::kill(pilot_process(), SIGCONT);
  EXPECT_EQ(outcome(task(2, {"true"})).failure(), "ok");
  EXPECT_FALSE(results_.contains(1));
  EXPECT_EQ(result_of(1).failure(), "time_task");
}

TEST_F(LinksTest, WithNothingToDoItLeaves) {
  file_.idle = 200ms;
  start();
  EXPECT_EQ(outcome(shell(1, "true")).failure(), "ok");
  acknowledge(1);
  until("it to leave", [&] { return leaving_ == "idle"; });
  say(&wire::ToPilot::set_end);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(LinksTest, WithoutAnyEngineItLeavesToo) {
  file_.idle = 200ms;
  start_process();
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(LinksTest, FencedOffItKillsAndSaysNothing) {
  start();
  run(waits(1));
  until("it to run", [&] { return input_wanted_.contains(1); });
  say(&wire::ToPilot::set_fenced);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_FALSE(results_.contains(1));
  EXPECT_FALSE(std::filesystem::exists(outbox()));
}

TEST_F(LinksTest, FailedSelfChecksAreToldAndNothingIsStarted) {
  file_.capacity = {{"cpus", 10000}, {"gpus/a100", 20000}};
  file_.scratch = path("no-scratch");
  start({{"CUDA_VISIBLE_DEVICES", "0"}});
  ASSERT_EQ(registration_.refusals_size(), 2);
  EXPECT_THAT(registration_.refusals(0),
              HasSubstr("scratch: cannot make a directory in " + path("no-scratch")));
  EXPECT_EQ(registration_.refusals(1), "gpu: 2 were asked for, 1 are in CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(leaving_, "failed checks");
  run(shell(1, "touch " + path("ran")));
  until("the lease to come back", [&] { return !returned_.empty(); });
  say(&wire::ToPilot::set_end);
  EXPECT_EQ(exit_code(), 4);
  EXPECT_FALSE(exists("ran"));
}

TEST_F(LinksTest, TheKeyIsNowhereToBeSeen) {
  start();
  const auto result =
      outcome(shell(1, "env; cat /proc/$PPID/environ /proc/$PPID/cmdline; ulimit -n"));
  const std::string key = wire::to_hex(file_.key);
  EXPECT_THAT(output(result), testing::Not(HasSubstr(key)));
  EXPECT_THAT(contents("pilot.log"), testing::Not(HasSubstr(key)));
}

TEST_F(LinksTest, IdleItCostsNothing) {
  start();
  EXPECT_EQ(outcome(shell(1, "true")).failure(), "ok");
  acknowledge(1);
  std::uint64_t resident = 0;
  const auto add_of = [&resident](pid_t pid, const std::vector<std::string>& names) {
    std::ifstream memory("/proc/" + std::to_string(pid) + "/smaps_rollup");
    for (std::string line; std::getline(memory, line);) {
      for (const std::string& name : names) {
        if (line.starts_with(name))
          resident += std::strtoull(line.c_str() + name.size(), nullptr, 10) * 1024;
      }
    }
  };
  add_of(pilot_process(), {"Rss:"});
  // The two share most of the program: what is there once counts once.
  add_of(pid_, {"Private_Clean:", "Private_Dirty:"});
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(resident, std::uint64_t{5} << 20) << "the pilot and its keeper together";
#endif
  const auto switches = [this] {
    std::ifstream status("/proc/" + std::to_string(pilot_process()) + "/status");
    std::uint64_t count = 0;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("voluntary_ctxt_switches:"))
        count = std::strtoull(line.c_str() + 24, nullptr, 10);
    }
    return count;
  };
  // Whatever it still does for the task that ended comes first: it is idle when it sleeps on.
  const auto quiet_since = [&] {
    const std::uint64_t before = switches();
    const auto from = std::chrono::steady_clock::now();
    until("a second", [&] { return std::chrono::steady_clock::now() - from > 1s; });
    return switches() - before;
  };
  quiet_since();
  EXPECT_LE(quiet_since(), 2U) << "it wakes up though there is nothing to do";
}

}  // namespace
}  // namespace hpcbatch::pilot
