#include "pilot_fixture.hpp"

#include "wire/log_pack.hpp"
#include "wire/whole_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hpcbatch::pilot {
namespace {

constexpr auto kPatience = 30s;

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

PilotTest::PilotTest() {
  char place[] = "/tmp/hpcbatch-test-XXXXXX";
  directory_ = ::mkdtemp(place);
  ::mkdir(path("workspace").c_str(), 0700);
  ::mkdir(path("scratch").c_str(), 0700);
  file_ = {.allocation = "Hbtest",
           .site = "here",
           .key = wire::random_key(),
           .addresses = {{wire::Address::Kind::Unix, path("link"), 0}},
           .workspace = path("workspace"),
           .capacity = {{"cpus", 40000}, {"memory", std::int64_t{8} << 30 << 13}},
           .walltime = 0s,
           .margin = 0s,
           .idle = 60s,  // what a killed run of this test leaves ends by itself
           .scratch = path("scratch")};
}

PilotTest::~PilotTest() {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGTERM);
    socket_.reset();
    listener_.reset();
    exit_code();
  }
  if (HasFailure()) {
    std::fprintf(stderr, "--- the pilot said:\n%s---\n", read_whole(path("pilot.log")).c_str());
  }
  std::filesystem::remove_all(directory_);
}

void PilotTest::listen() {
  const std::string where = path("link");
  ::unlink(where.c_str());
  listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, where.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener_.get(), 10), 0);
}

void PilotTest::start_process(const std::map<std::string, std::string>& environment) {
  ASSERT_TRUE(wire::replace_file(path("pilot"), wire::to_text(file_), wire::Readers::OwnerOnly));
  std::map<std::string, std::string> variables = environment;
  variables.insert({{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                    {"HOME", "/nonexistent"},
                    {"SECRET", "of the pilot"}});
  for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) variables[name] = value;
  }
  std::vector<std::string> lines;
  lines.reserve(variables.size());
  for (const auto& [name, value] : variables) lines.emplace_back(name).append("=").append(value);
  std::vector<char*> pointers;
  pointers.reserve(lines.size() + 1);
  for (std::string& line : lines) pointers.push_back(line.data());
  pointers.push_back(nullptr);
  std::string program = HPCBATCH_PILOT;
  std::string file = path("pilot");
  char* argv[] = {program.data(), file.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, path("pilot.log").c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
  status_.reset();
  ASSERT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, pointers.data()), 0);
  ::posix_spawn_file_actions_destroy(&actions);
}

void PilotTest::start(const std::map<std::string, std::string>& environment) {
  listen();
  start_process(environment);
  welcome();
}

void PilotTest::welcome() {
  registered_ = false;
  until("a link", [this] {
    socket_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return static_cast<bool>(socket_);
  });
  closed_ = false;
  link_ = wire::Link::accepting([this](const wire::PilotName& name) {
    return std::optional(wire::pilot_key(file_.key, name.rank));
  });
  until("a registration", [this] { return registered_; });
  wire::ToPilot message;
  message.set_welcome(true);
  send(message);
}

void PilotTest::engine_dies() {
  socket_.reset();
  listener_.reset();
  link_.reset();
}

wire::Start PilotTest::task(unsigned n, const std::vector<std::string>& argv) {
  wire::Start start;
  start.mutable_attempt()->set_array(n);
  start.mutable_attempt()->set_number(1);
  start.mutable_attempt()->set_epoch(0x100000007);
  for (const std::string& argument : argv) start.add_argv(argument);
  wire::Amount* cpus = start.add_granted();
  cpus->set_name("cpus");
  cpus->set_value(10000);
  return start;
}

void PilotTest::send(const wire::ToPilot& message) {
  link_->send(message.SerializeAsString());
  pump(0);
}

void PilotTest::run(const wire::Start& start) {
  wire::ToPilot message;
  *message.add_start() = start;
  send(message);
}

void PilotTest::kill_task(unsigned n, bool silent) {
  wire::ToPilot message;
  wire::Kill* kill = message.add_kill();
  *kill->mutable_attempt() = attempt(n);
  kill->set_failure("cancelled");
  kill->set_silent(silent);
  send(message);
}

void PilotTest::acknowledge(unsigned n) {
  wire::ToPilot message;
  *message.add_acknowledged() = attempt(n);
  send(message);
}

void PilotTest::take(const wire::ToEngine& message) {
  if (message.has_registration()) {
    registration_ = message.registration();
    registered_ = true;
  }
  for (const auto& started : message.started())
    started_.insert(static_cast<unsigned>(started.array()));
  for (const auto& result : message.results()) {
    const auto n = static_cast<unsigned>(result.attempt().array());
    results_[n] = result;
    ++result_counts_[n];
  }
  for (const auto& returned : message.returned())
    returned_.push_back(static_cast<unsigned>(returned.array()));
  for (const auto& chunk : message.chunks()) {
    const auto n = static_cast<unsigned>(chunk.attempt().array());
    std::string& text = chunks_[n][chunk.stream()];
    if (chunk.end()) {
      ended_chunks_.insert(n);
    } else {
      EXPECT_FALSE(ended_chunks_.contains(n)) << "output after its end";
      text.resize(std::max<std::size_t>(text.size(), chunk.offset()), '?');
      text.replace(chunk.offset(), std::string::npos, chunk.data());
    }
  }
  for (const auto& wanted : message.input_wanted()) {
    const auto n = static_cast<unsigned>(wanted.attempt().array());
    ++input_wanted_[n];
    input_offset_[n] = wanted.offset();
  }
  if (message.has_workspace()) {
    trouble_ = message.workspace().trouble();
    waiting_for_workspace_.clear();
    for (const auto& ended : message.workspace().ended())
      waiting_for_workspace_.insert(static_cast<unsigned>(ended.array()));
  }
  if (message.leaving()) leaving_ = message.leaving_reason();
  if (message.heartbeat() != 0) {
    wire::ToPilot answer;
    answer.set_heartbeat(message.heartbeat());
    link_->send(answer.SerializeAsString());
  }
}

void PilotTest::pump(int timeout_ms) {
  if (!socket_) {
    // Until somebody connects, or with nobody to wait for.
    pollfd waiting{listener_.get(), POLLIN, 0};
    ::poll(&waiting, listener_ && !registered_ ? 1 : 0, timeout_ms);
    return;
  }
  std::string bytes = link_->take_output();
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) bytes.erase(0, static_cast<std::size_t>(count));
    if (count < 0 && errno != EAGAIN && errno != EINTR) break;
    if (count < 0) {
      pollfd waiting{socket_.get(), POLLOUT, 0};
      ::poll(&waiting, 1, 100);
    }
  }
  pollfd waiting{socket_.get(), POLLIN, 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) return;
  static std::vector<char> room(1 << 20);
  const ssize_t got = ::recv(socket_.get(), room.data(), room.size(), 0);
  if (got <= 0) {
    closed_ = got == 0 || errno != EAGAIN;
    if (closed_) socket_.reset();
    return;
  }
  const auto messages =
      link_->receive(std::string_view(room.data(), static_cast<std::size_t>(got)));
  ASSERT_TRUE(messages) << messages.error().text;
  for (const std::string& text : *messages) {
    wire::ToEngine message;
    ASSERT_TRUE(message.ParseFromString(text));
    take(message);
  }
}

void PilotTest::until(const char* what, const std::function<bool()>& happened) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!happened()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waited in vain for " << what;
    pump(20);
  }
}

wire::Result PilotTest::result_of(unsigned n) {
  until(("the result of " + std::to_string(n)).c_str(), [&] { return results_.contains(n); });
  return results_[n];
}

wire::Result PilotTest::outcome(const wire::Start& start) {
  run(start);
  return result_of(static_cast<unsigned>(start.attempt().array()));
}

std::string PilotTest::output(const wire::Result& result, unsigned stream) const {
  const wire::LogPlace& log = result.log();
  const std::string pack = read_whole(path("workspace/" + log.file()));
  const auto text = wire::read_log(
      [&pack](std::uint64_t offset, std::size_t length) -> Result<std::string> {
        return offset >= pack.size() ? std::string() : pack.substr(offset, length);
      },
      result.attempt(), stream, stream == 1 ? log.last_out() : log.last_err(), 0, SIZE_MAX);
  return text ? *text : text.error().text;
}

int PilotTest::exit_code() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  while (!status_ && std::chrono::steady_clock::now() < deadline) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = status;
    } else {
      pump(5);
    }
  }
  EXPECT_TRUE(status_) << "the pilot did not end";
  if (!status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
    status_ = status;
  }
  return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
}

bool PilotTest::lives(pid_t pid) {
  const std::string stat = read_whole("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat[name_end + 2] != 'Z';
}

std::vector<pid_t> PilotTest::processes_with(const std::string& text) {
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == ::getpid()) continue;
    if (read_whole(entry.path() / "cmdline").find(text) != std::string::npos && lives(pid))
      pids.push_back(pid);
  }
  return pids;
}

std::string PilotTest::contents(const std::string& name) const {
  return read_whole(path(name));
}

void PilotTest::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name)) << text;
}

bool PilotTest::exists(const std::string& name) const {
  return std::filesystem::exists(path(name));
}

}  // namespace hpcbatch::pilot
