#include "pilot/answering/worker_process.hpp"

#include "pilot/policy/verdict.hpp"
#include "pilot/processes/prepare.hpp"
#include "pilot/processes/process_tree.hpp"
#include "pilot/processes/spawn.hpp"
#include "pilot/processes/surroundings.hpp"

#include <boost/json.hpp>

#include <cerrno>
#include <csignal>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

namespace json = boost::json;

constexpr int kLargestExit = 255;

NotUnderstood not_understood(const std::string& why) {
  return {why};
}

bool holds(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::string text_at(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

WorkerWord word_of_request(const json::object& object) {
  std::string id = text_at(object, "id");
  for (const auto& [key, is_error] : {std::pair{"stdout", false}, {"stderr", true}}) {
    if (object.contains(key)) return WorkerOutput{std::move(id), is_error, text_at(object, key)};
  }
  const json::value* code = object.if_contains("exit");
  if (code == nullptr || !code->is_int64() || code->get_int64() < 0 ||
      code->get_int64() > kLargestExit)
    return not_understood("'exit' must be a number from 0 to 255");
  return WorkerAnswer{std::move(id), static_cast<int>(code->get_int64())};
}

constexpr std::size_t kLongestLine = std::size_t{16} << 20;
constexpr int kLooksForItsEnd = 200;
constexpr std::size_t kPieceOfWords = std::size_t{64} << 10;

}  // namespace

std::string batch_line(const std::vector<RequestWords>& requests) {
  json::array list;
  for (const RequestWords& request : requests) {
    json::object environment;
    for (const auto& [name, value] : request.environment) environment[name] = value;
    list.push_back(json::object{{"id", request.id},
                                {"argv", json::value_from(request.argv)},
                                {"directory", request.directory},
                                {"env", std::move(environment)}});
  }
  return json::serialize(json::object{{"requests", std::move(list)}}) + "\n";
}

std::string cancel_line(const std::string& id) {
  return json::serialize(json::object{{"cancel", id}}) + "\n";
}

WorkerWord read_word(std::string_view line) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  json::error_code error;
  const json::value value = json::parse({line.data(), line.size()}, error, {}, options);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return not_understood("it is no JSON object");
  if (holds(*object, "ready")) return WorkerIsReady{};
  if (holds(*object, "renew")) return WorkerRenews{};
  if (object->contains("starting")) return WorkerStarts{};
  if (!text_at(*object, "id").empty()) return word_of_request(*object);
  return not_understood("it has neither 'ready', 'renew', 'starting' nor an 'id'");
}

WorkerProcess::WorkerProcess(Loop& loop, const std::vector<std::string>& command,
                             const std::map<std::string, std::string>& variables,
                             Callbacks callbacks)
    : loop_(loop), callbacks_(std::move(callbacks)) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::system_error(errno, std::generic_category(), "no socket for a worker");
  socket_ = Fd(ends[0]);
  const Fd theirs(ends[1]);
  ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);

  auto own = std::make_shared<BaseEnvironment>();
  for (char* const* line = environ; *line != nullptr; ++line) own->emplace_back(*line);
  TaskEnvironment environment(std::move(own), variables);
  const std::vector<std::string> paths = candidates(command.front(), environment.find("PATH"));
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  SpawnPlan plan;
  for (const std::string& path : paths) plan.programs.push_back(path.c_str());
  plan.argv = argv.data();
  plan.environment = environment.pointers();
  plan.directory = "/";
  plan.standard_input = theirs.get();
  plan.standard_output = STDOUT_FILENO;
  plan.standard_error = STDERR_FILENO;
  const Spawned spawned = spawn(plan);
  if (spawned.pid < 0)
    throw std::system_error(spawned.error, std::generic_category(),
                            "cannot run " + command.front());
  pid_ = spawned.pid;
  loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t events) { ready(events); });
}

WorkerProcess::~WorkerProcess() {
  end();
}

void WorkerProcess::ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) write();
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read();
}

void WorkerProcess::listen() {
  if (is_closed_) return;
  loop_.change(socket_.get(), (is_paused_ ? 0U : static_cast<std::uint32_t>(EPOLLIN)) |
                                  (outgoing_.empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT)));
}

void WorkerProcess::pause(bool is_paused) {
  if (is_paused == is_paused_) return;
  is_paused_ = is_paused;
  listen();
}

bool WorkerProcess::has_ended() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

bool WorkerProcess::read() {
  std::string piece(kPieceOfWords, '\0');
  const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  const std::size_t before = incoming_.size();
  if (count > 0) incoming_.append(piece, 0, static_cast<std::size_t>(count));
  if (count <= 0 ||
      (incoming_.size() > kLongestLine && incoming_.find('\n') == std::string::npos)) {
    is_closed_ = true;
    loop_.forget(socket_.get());
    // It may end this worker.
    const auto closed = callbacks_.closed;
    closed();
    return true;
  }
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = incoming_.find('\n', before); end != std::string::npos;
       end = incoming_.find('\n', begin)) {
    lines.push_back(incoming_.substr(begin, end - begin));
    begin = end + 1;
  }
  incoming_.erase(0, begin);
  // What is called may end this worker.
  const auto tell = callbacks_.line;
  for (const std::string& line : lines) tell(line);
  return true;
}

void WorkerProcess::send(const std::string& line) {
  if (is_closed_) return;
  outgoing_ += line;
  write();
}

void WorkerProcess::write() {
  while (!outgoing_.empty()) {
    const ssize_t count = ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) outgoing_.clear();  // its end is about to be read
    if (count <= 0) break;
    outgoing_.erase(0, static_cast<std::size_t>(count));
  }
  listen();
}

void WorkerProcess::bind_to(const std::vector<unsigned>& cpus) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned cpu : cpus) CPU_SET(cpu, &set);
  for (const pid_t process : with_descendants({pid_})) {
    for (const pid_t thread : threads_of(process)) ::sched_setaffinity(thread, sizeof set, &set);
  }
}

WorkerUse WorkerProcess::use() const {
  WorkerUse use;
  for (const pid_t process : with_descendants({pid_})) {
    if (const auto facts = facts_of(process)) {
      use.memory += facts->resident;
      use.cpu += facts->cpu;
    }
  }
  return use;
}

std::string WorkerProcess::end() {
  if (pid_ <= 0) return {};
  const bool was_closed = std::exchange(is_closed_, true);
  if (!was_closed) loop_.forget(socket_.get());
  // One that has said its last word is about to end by itself, and how tells more.
  int status = 0;
  pid_t ended = 0;
  for (int look = 0; was_closed && ended == 0 && look < kLooksForItsEnd; ++look) {
    ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Its number may be another's as soon as it was waited for.
  if (ended == 0) {
    for (const pid_t process : with_descendants({pid_})) ::kill(process, SIGKILL);
  }
  ::kill(-pid_, SIGKILL);
  while (ended <= 0 && (ended = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return how_it_ended(status);
}

}  // namespace hpcbatch::pilot
