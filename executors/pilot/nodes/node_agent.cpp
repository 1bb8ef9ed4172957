#include "pilot/nodes/node_agent.hpp"

#include "pilot/base/log_line.hpp"
#include "pilot/base/socket_address.hpp"
#include "pilot/nodes/node_channel.hpp"
#include "pilot/nodes/task_nodes.hpp"
#include "posix/programs.hpp"
#include "wire/node_addresses.hpp"
#include "wire/whole_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCannot = 125;
// What holds a stream open behind its parent is waited for so long after the last of it.
constexpr auto kLingers = std::chrono::seconds(1);
constexpr auto kGrace = std::chrono::seconds(5);
// What the kernel has killed for its memory the pilot ends as that within two seconds and a look: it
// is to be first to say so.
constexpr auto kUntilJudged = std::chrono::seconds(3);
constexpr auto kForHello = std::chrono::seconds(20);

// Of this node and not of that from which a command comes.
constexpr std::array<std::string_view, 10> kOwn = {"TMPDIR",
                                                   "HPCBATCH_PILOT",
                                                   "HPCBATCH_GPUS",
                                                   "HPCBATCH_METRICS",
                                                   "HPCBATCH_NODE_INDEX",
                                                   "SLURM_NODEID",
                                                   "CUDA_VISIBLE_DEVICES",
                                                   "ROCR_VISIBLE_DEVICES",
                                                   "GPU_DEVICE_ORDINAL",
                                                   "ZE_AFFINITY_MASK"};

std::vector<std::string> environment_here(const wire::NodeRequest& request) {
  std::vector<std::string> lines;
  for (const std::string& line : request.environment()) {
    const std::string_view name = std::string_view(line).substr(0, line.find('='));
    if (std::find(kOwn.begin(), kOwn.end(), name) == kOwn.end()) lines.push_back(line);
  }
  for (const std::string_view name : kOwn) {
    const char* value = std::getenv(std::string(name).c_str());
    if (value != nullptr) lines.push_back(std::string(name).append("=").append(value));
  }
  return lines;
}

struct Pipe {
  Fd read, write;
};

std::optional<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void no_wait(const Fd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

std::vector<char*> ended_by_null(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// In the child: never returns.
[[noreturn]] void become(const wire::NodeRequest& request, int input, int output, int error) {
  std::vector<std::string> lines = environment_here(request);
  std::vector<char*> environment = ended_by_null(lines);
  std::vector<std::string> words(request.argv().begin(), request.argv().end());
  std::vector<char*> argv = ended_by_null(words);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGCHLD}) std::signal(number, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(error, STDERR_FILENO);
  ::umask(static_cast<mode_t>(request.umask()));
  const auto fail = [](const std::string& what) {
    const std::string text = "node-run: cannot " + what + ": " + std::strerror(errno) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  };
  if (!request.directory().empty() && ::chdir(request.directory().c_str()) != 0) {
    fail("go to " + request.directory() + " on this node");
    ::_exit(kCannot);
  }
  ::execvpe(argv.front(), argv.data(), environment.data());
  const int code = code_of_no_start(errno);
  fail("run " + words.front() + " on this node");
  ::_exit(code);
}

/// Serves one connection: one command.
class Served {
 public:
  explicit Served(NodeChannel channel) : channel_(std::move(channel)) {}

  int run();

 private:
  struct Output {
    Fd fd;
    std::uint32_t stream;
  };

  void take(const wire::NodePiece& piece);
  bool turn(const std::vector<pollfd>& all);
  void end_what_runs();
  void start(const wire::NodeRequest& request);
  void refuse(const std::string& why);
  void read(Output& output);
  void write_input();
  void collect();
  void kill_all(int number) const {
    if (pid_ > 0) ::kill(-pid_, number);
  }
  bool is_done() const;
  int wait_ms() const;
  std::vector<pollfd> waited_for() const;

  NodeChannel channel_;
  Fd signals_;
  Fd input_;
  std::string input_left_;
  bool input_ends_{false};
  std::vector<Output> outputs_;
  pid_t pid_{0};
  std::optional<int> code_;
  Clock::time_point last_heard_{Clock::now()};
  Clock::time_point judged_at_{};
  bool told_{false};
};

void Served::refuse(const std::string& why) {
  wire::NodePiece piece;
  piece.set_trouble(why);
  piece.set_exit_code(kCannot);
  channel_.send(piece);
  told_ = true;
}

void Served::start(const wire::NodeRequest& request) {
  if (request.argv_size() == 0 || pid_ != 0) return refuse("it was asked to run nothing");
  auto in = make_pipe();
  auto out = make_pipe();
  auto err = make_pipe();
  Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!in || !out || !err || !nothing)
    return refuse(std::string("it has no descriptors left: ") + std::strerror(errno));
  pid_ = ::fork();
  if (pid_ < 0) {
    pid_ = 0;
    return refuse(std::string("it cannot start a process: ") + std::strerror(errno));
  }
  if (pid_ == 0) {
    become(request, request.no_input() ? nothing.get() : in->read.get(), out->write.get(),
           err->write.get());
  }
  ::setpgid(pid_, pid_);
  if (!request.no_input()) {
    input_ = std::move(in->write);
    no_wait(input_);
  }
  no_wait(out->read);
  no_wait(err->read);
  outputs_.push_back({std::move(out->read), 1});
  outputs_.push_back({std::move(err->read), 2});
}

void Served::take(const wire::NodePiece& piece) {
  if (told_) return;
  if (piece.has_request()) start(piece.request());
  if (piece.signal() != 0) kill_all(static_cast<int>(piece.signal()));
  if (piece.stream() == 0) {
    input_left_ += piece.data();
    input_ends_ = input_ends_ || piece.end();
  }
}

void Served::read(Output& output) {
  std::string bytes(NodeChannel::kMostData, '\0');
  const ssize_t got = ::read(output.fd.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  last_heard_ = Clock::now();
  wire::NodePiece piece;
  piece.set_stream(output.stream);
  if (got > 0) {
    bytes.resize(static_cast<std::size_t>(got));
    piece.set_data(std::move(bytes));
  } else {
    piece.set_end(true);
    output.fd = Fd();
  }
  channel_.send(piece);
}

void Served::write_input() {
  if (!input_) return input_left_.clear();
  while (!input_left_.empty()) {
    const ssize_t put = ::write(input_.get(), input_left_.data(), input_left_.size());
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (put < 0) {
      // Nobody reads it any more.
      input_ = Fd();
      return input_left_.clear();
    }
    input_left_.erase(0, static_cast<std::size_t>(put));
  }
  if (input_ends_) input_ = Fd();
}

void Served::collect() {
  int status = 0;
  while (true) {
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    if (pid != pid_) continue;
    code_ = shell_code_of(status);
    last_heard_ = Clock::now();
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) judged_at_ = last_heard_ + kUntilJudged;
  }
}

bool Served::is_done() const {
  if (!code_ || Clock::now() < judged_at_) return false;
  const bool all_read = std::none_of(outputs_.begin(), outputs_.end(),
                                     [](const Output& output) { return bool(output.fd); });
  return all_read || Clock::now() - last_heard_ >= kLingers;
}

int Served::wait_ms() const {
  constexpr int kLook = 200;
  return code_ && !told_ ? kLook : 60'000;
}

std::vector<pollfd> Served::waited_for() const {
  std::vector<pollfd> all{
      {channel_.fd(), static_cast<short>(POLLIN | (channel_.wants_to_write() ? POLLOUT : 0)), 0},
      {signals_.get(), POLLIN, 0},
      {input_ && !input_left_.empty() ? input_.get() : -1, POLLOUT, 0}};
  for (const Output& output : outputs_)
    all.push_back({channel_.is_full() ? -1 : output.fd.get(), POLLIN, 0});
  return all;
}

/// What has come, on each descriptor; false: whoever asked for it is gone.
bool Served::turn(const std::vector<pollfd>& all) {
  bool is_there = true;
  if (all[0].revents != 0) {
    const auto pieces = channel_.receive();
    is_there = pieces.has_value();
    for (const wire::NodePiece& piece : pieces.value_or(std::vector<wire::NodePiece>{}))
      take(piece);
  }
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info)
    is_there = is_there && info.ssi_signo != SIGTERM;
  collect();
  write_input();
  for (std::size_t at = 3; at < all.size(); ++at) {
    if (all[at].revents != 0 && outputs_[at - 3].fd) read(outputs_[at - 3]);
  }
  return is_there;
}

void Served::end_what_runs() {
  kill_all(SIGTERM);
  const auto until = Clock::now() + kGrace;
  while (!code_ && Clock::now() < until) {
    pollfd signals{signals_.get(), POLLIN, 0};
    ::poll(&signals, 1, 100);
    collect();
  }
  kill_all(SIGKILL);
}

int Served::run() {
  // SIGTERM comes also when the agent is gone, and with it the pilot.
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  sigaddset(&watched, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  signals_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  const auto began = Clock::now();
  bool is_there = true;
  // What has been told is read to the end: to close before input that has come was read would reset
  // the connection, and the caller might not see what it was told.
  while (is_there) {
    std::vector<pollfd> all = waited_for();
    if (::poll(all.data(), all.size(), pid_ == 0 ? 1000 : wait_ms()) < 0 && errno != EINTR) break;
    if (pid_ == 0 && !told_ && Clock::now() - began > kForHello) break;
    is_there = turn(all);
    if (is_done() && !told_) {
      wire::NodePiece piece;
      piece.set_stream(1);
      piece.set_exit_code(*code_);
      channel_.send(piece);
      told_ = true;
      outputs_.clear();
      input_ = Fd();
    }
    is_there = channel_.flush() && is_there;
  }
  if (!told_ && pid_ > 0) end_what_runs();
  return 0;
}

struct Listeners {
  std::vector<Fd> sockets;
  MemberPlace place;
};

hpcbatch::Result<Listeners> listen_here() {
  Listeners all;
  all.place.key = wire::random_key();
  std::vector<std::string> addresses = wire::addresses_for_others(wire::own_addresses());
  // A machine without a network is its only node.
  addresses.emplace_back("127.0.0.1");
  std::string why;
  for (const std::string& address : addresses) {
    auto listener = listen_on(address, 0);
    if (!listener) {
      why = listener.error().text;
      continue;
    }
    all.place.addresses.push_back(
        wire::Address{wire::Address::Kind::Tcp, address, listener->second});
    all.sockets.push_back(std::move(listener->first));
  }
  if (all.sockets.empty()) return Error{Error::Kind::Rejected, why};
  return all;
}

void serve(Listeners& listeners, const wire::PilotName& self) {
  std::vector<pollfd> waits;
  for (const Fd& socket : listeners.sockets) waits.push_back({socket.get(), POLLIN, 0});
  for (;;) {
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    for (const pollfd& one : waits) {
      if (one.revents == 0) continue;
      Fd connection(::accept4(one.fd, nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection || ::fork() != 0) continue;
      // It ends with the agent, and what it runs ends with it.
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      std::signal(SIGCHLD, SIG_DFL);
      listeners.sockets.clear();
      const auto find_key = [&](const wire::PilotName& name) {
        return name == self ? std::optional(listeners.place.key) : std::nullopt;
      };
      ::_exit(Served(NodeChannel(std::move(connection), wire::Link::accepting(find_key))).run());
    }
  }
}

}  // namespace

int run_node_agent(const std::string& folder, const std::string& allocation, std::uint32_t rank,
                   std::uint32_t index) {
  std::signal(SIGPIPE, SIG_IGN);
  // Those who serve are collected by nobody.
  std::signal(SIGCHLD, SIG_IGN);
  ::setenv(kNodeIndex, std::to_string(index).c_str(), 1);
  ::setenv("SLURM_NODEID", std::to_string(index).c_str(), 1);
  if (const std::string why = make_nodes_folder(folder); !why.empty()) {
    log_line(why);
    return kCannot;
  }
  auto listeners = listen_here();
  if (!listeners) {
    log_line(listeners.error().text);
    return kCannot;
  }
  const auto written = wire::replace_file(member_file(folder, rank), to_text(listeners->place),
                                          wire::Readers::OwnerOnly, false);
  if (!written) {
    log_line(written.error().text);
    return kCannot;
  }
  serve(*listeners, {allocation, rank});
  return 0;
}

}  // namespace hpcbatch::pilot
