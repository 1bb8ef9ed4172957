#include "cli/client/engine_client.hpp"

#include "cli/parse/command.hpp"
#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// Reading a large store back takes an engine seconds.
constexpr std::chrono::seconds kStartTime{60};
/// An engine that holds the lock listens soon after, or is about to end.
constexpr std::chrono::seconds kOtherTime{10};
/// One that lives and does not listen begins or ends just now, or makes its socket again.
constexpr std::chrono::seconds kReachTime{20};
/// Shorter than that, nobody need hear of it.
constexpr std::chrono::seconds kQuiet{1};
constexpr std::chrono::milliseconds kLookForEngineEvery{20};

[[noreturn]] void cannot_start(const std::string& why) {
  throw CommandError(kExitNoEngine, "cannot start the engine: " + why);
}

/// The engine will check and refuse loose permissions; here only what its log needs.
Fd open_log(const std::string& home) {
  for (std::size_t slash = home.find('/', 1);; slash = home.find('/', slash + 1)) {
    const std::string folder = home.substr(0, slash);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      const std::string reason = std::strerror(errno);
      cannot_start(std::string("making the directory ").append(folder).append(": ").append(reason));
    }
    if (slash == std::string::npos) break;
  }
  const std::string path = home + "/engine.log";
  Fd log(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) {
    const std::string reason = std::strerror(errno);
    cannot_start("opening its log " + path + ": " + reason);
  }
  return log;
}

/// Beside one that is only a part of it.
std::string engine_program() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const bool is_a_part = own.filename() == "hpcbatch-slurm" || own.filename() == "hpcbatch-pbs";
  if (error || !is_a_part) return "/proc/self/exe";
  return (own.parent_path() / "hpcbatch").string();
}

pid_t spawn_this_program(const std::vector<std::string>& words, SpawnOptions options) {
  options.program = engine_program();
  pid_t process = 0;
  const int error = spawn_program(words, options, process);
  if (error != 0) cannot_start("running " + options.program + ": " + std::strerror(error));
  return process;
}

struct Started {
  pid_t process{0};
  Fd ready;
};

struct Way {
  Lifetime lifetime{};
  std::optional<std::string> config;
  bool is_by_the_way{false};  ///< whoever starts it had something else in mind
};

Started spawn_engine(const Places& places, const Way& way) {
  const Fd log = open_log(places.home);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    cannot_start(std::string("making a pipe: ") + std::strerror(errno));
  Fd read_end(ends[0]);
  // Out of the way of the number that the child is given.
  const Fd write_end(::fcntl(ends[1], F_DUPFD_CLOEXEC, kHandedOver + 1));
  ::close(ends[1]);

  std::vector<std::string> words{"hpcbatch", "engine", "run", "--ready-fd",
                                 std::to_string(kHandedOver)};
  if (way.lifetime == Lifetime::UntilIdle) words.emplace_back("--started-by-client");
  if (way.is_by_the_way) words.emplace_back("--limits-of-session");
  if (way.config) words.insert(words.end(), {"--config", *way.config});
  return {spawn_this_program(words, {.output = log.get(),
                                     .error = log.get(),
                                     .handed_over = write_end.get(),
                                     .own_session = true,
                                     .as_from_a_shell = true}),
          std::move(read_end)};
}

/// What the engine says until it closes the pipe or is ready.
std::string read_ready(const Started& started, const Interrupt& interrupt) {
  const auto deadline = std::chrono::steady_clock::now() + kStartTime;
  const SlowNote note("the new engine (process " + std::to_string(started.process) +
                      "), which is not ready: it reads its store back, or a file system hangs");
  std::string said;
  for (;;) {
    pollfd waits[] = {{started.ready.get(), POLLIN, 0}, {interrupt.descriptor(), POLLIN, 0}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const int count = left.count() <= 0 ? 0 : ::poll(waits, 2, static_cast<int>(left.count()));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0)
      cannot_start("it is not ready after a minute; see engine.log in its state directory");
    if (waits[1].revents != 0) throw InterruptedByUser{};
    char piece[512];
    const ssize_t size = ::read(started.ready.get(), piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return said;
    said.append(piece, static_cast<std::size_t>(size));
    if (said.front() == kEngineReady && said.size() == 1) return said;
  }
}

bool is_connected(const Answer& answer) {
  if (answer.outcome == Exchange::Answered) return true;
  if (answer.outcome != Exchange::NoEngine) object_of(answer);  // throws its sentence
  return false;
}

/// Whether an engine that somebody else started can be reached before long.
bool connect_to_other(EngineClient& client, const Interrupt& interrupt) {
  const auto deadline = std::chrono::steady_clock::now() + kOtherTime;
  while (std::chrono::steady_clock::now() < deadline) {
    if (is_connected(client.http().connect())) return true;
    interrupt.pause(kLookForEngineEvery);
  }
  return false;
}

/// Where nothing else is asked: its work waits for the sites of its configuration.
Way as_the_last_one(const Places& places, Way asked) {
  const auto dead = engine_that_died(places.home);
  if (!dead || asked.lifetime != Lifetime::UntilIdle) return asked;
  if (!asked.config && !dead->config.empty()) asked.config = dead->config;
  if (!dead->ends_when_idle) asked.lifetime = Lifetime::UntilStopped;
  return asked;
}

}  // namespace

Answer connect_to_running(EngineClient& client, const Places& places, const Interrupt& interrupt) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  bool is_told = false;
  for (;;) {
    Answer answer = client.http().connect();
    if (answer.outcome != Exchange::NoEngine || Clock::now() - begin >= kReachTime) return answer;
    const auto text = engine_out_of_reach(places);
    if (!text) return answer;
    if (Clock::now() - begin >= kQuiet && !std::exchange(is_told, true))
      say("waits for the engine: " + one_line(*text));
    interrupt.pause(kLookForEngineEvery);
  }
}

bool connect_or_start(EngineClient& client, const Places& places, const Interrupt& interrupt,
                      Lifetime lifetime, const std::optional<std::string>& config) {
  if (is_connected(connect_to_running(client, places, interrupt))) return false;
  if (const auto text = engine_out_of_reach(places)) throw CommandError(kExitNoEngine, *text);
  const Way way = as_the_last_one(places, {lifetime, config, lifetime == Lifetime::UntilIdle});
  // The second try is for an engine that held the lock while it was ending.
  std::string said;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Started started = spawn_engine(places, way);
    said = read_ready(started, interrupt);
    if (said == std::string(1, kEngineReady)) {
      if (!is_connected(client.http().connect()))
        cannot_start("it said that it is ready but nobody listens at " + places.socket);
      return true;
    }
    const int exit_code = shell_code_of(wait_for_end(started.process));
    if (exit_code == kEngineAlreadyRuns) {
      if (connect_to_other(client, interrupt)) return false;
      continue;
    }
    while (!said.empty() && said.back() == '\n') said.pop_back();
    if (said.empty()) {
      said = "cannot start the engine: it ended with exit code " + std::to_string(exit_code) +
             "; see " + places.home + "/engine.log";
    }
    throw CommandError(exit_code == kExitUsage ? kExitUsage : kExitNoEngine, said);
  }
  cannot_start((said.empty() ? "another one runs in " + places.home : said) +
               ", but it does not answer at " + places.socket);
}

void check_configuration(const std::optional<std::string>& config) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    cannot_start(std::string("making a pipe: ") + std::strerror(errno));
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  std::vector<std::string> words{"hpcbatch", "engine", "run", "--check-config"};
  if (config) words.insert(words.end(), {"--config", *config});
  const pid_t process =
      spawn_this_program(words, {.output = write_end.get(), .error = write_end.get()});
  write_end.reset();
  std::string said;
  (void)read_all(read_end.get(), said);
  if (const int code = shell_code_of(wait_for_end(process)); code != 0) {
    while (!said.empty() && said.back() == '\n') said.pop_back();
    if (said.starts_with("hpcbatch: ")) said.erase(0, 10);
    throw CommandError(
        kExitUsage, said.empty()
                        ? "the configuration cannot be checked: exit code " + std::to_string(code)
                        : said);
  }
}

void find_engine(EngineClient& client, const Places& places, const Interrupt& interrupt) {
  const auto find = [&client, &places, &interrupt] {
    if (is_connected(client.http().connect())) return;
    if (const auto elsewhere = engine_elsewhere(places.home))
      throw CommandError(kExitNoEngine, *elsewhere);
    const bool is_first = ::access((places.home + "/store.db").c_str(), F_OK) != 0;
    if (!connect_or_start(client, places, interrupt, Lifetime::UntilIdle)) return;
    say(is_first ? "no engine ran; one was started"
                 : "no engine ran; one was started, and what was queued goes on");
  };
  find();
  // What ends one engine may end the next.
  client.when_lost([find, &client, &places, &interrupt, was_started = false]() mutable {
    if (was_started) return false;
    const auto deadline = std::chrono::steady_clock::now() + EngineRevival::kOthers;
    do {
      interrupt.pause(kLookForEngineEvery);
      if (is_connected(client.http().connect())) return true;
      if (!engine_that_died(places.home)) return false;
    } while (std::chrono::steady_clock::now() < deadline);
    was_started = true;
    find();
    return true;
  });
}

}  // namespace hpcbatch
