#include "pilot/nodes/node_run.hpp"

#include "pilot/base/socket_address.hpp"
#include "pilot/nodes/node_channel.hpp"
#include "pilot/nodes/task_nodes.hpp"
#include "posix/programs.hpp"
#include "wire/whole_file.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace hpcbatch::pilot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUsage = 2;
constexpr int kLost = 125;
// A member may still wait for the end of what ran there before.
constexpr auto kUntilThere = std::chrono::seconds(120);
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr int kConnectMs = 5'000;
constexpr useconds_t kUntilToldUs = 1'500'000;
constexpr std::array kForwarded = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// A program of MPI that finds no launcher would run as one process, as often as there are ranks.  By
// this it ends, with its text: MPICH's and those after it connect to where the variable says.
constexpr const char* kNoMpi = "node-run-starts-no-MPI-say-mpirun:1";

constexpr const char* kHelp =
    "usage: hpcbatch node-run [-n PROCESSES] [-N NODES] [-w NODE,...] [-K] [--] COMMAND...\n"
    "Starts COMMAND on the nodes of the task in which it is called: on each of them once, or as\n"
    "many as the task's --ntasks; $HPCBATCH_RANK (from 0) and $HPCBATCH_NODE_INDEX tell them "
    "apart.\n"
    "  -n PROCESSES  so many of all nodes together\n"
    "  -N NODES      only on the first so many\n"
    "  -w NODE,...   only on these\n"
    "  -K            end the others when one fails\n"
    "It exits as the process with the highest exit code.\n";

void complain(const std::string& text) {
  const std::string line = "hpcbatch node-run: " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

/// One process to be started.
struct Rank {
  std::size_t node{0};  ///< its place in the task's list
  std::uint32_t number{0};
  std::uint32_t of_node{0};
  bool has_input{false};
};

class Caller {
 public:
  Caller(std::string folder, TaskNodes nodes, std::size_t own)
      : folder_(std::move(folder)), nodes_(std::move(nodes)), own_(own) {}

  const std::vector<TaskNode>& nodes() const { return nodes_.nodes; }
  bool has(const std::string& name) const {
    return std::any_of(nodes().begin(), nodes().end(),
                       [&](const TaskNode& node) { return node.name == name; });
  }
  /// In a process of its own: the exit code.
  int run(const Rank& rank, const std::vector<std::string>& argv) const;

 private:
  int run_here(const Rank& rank, const std::vector<std::string>& argv) const;
  int run_there(const Rank& rank, const std::vector<std::string>& argv) const;
  std::optional<MemberPlace> place_of(std::uint32_t rank) const;

  std::string folder_;
  TaskNodes nodes_;
  std::size_t own_;
};

std::optional<MemberPlace> Caller::place_of(std::uint32_t rank) const {
  const std::string file = member_file(folder_, rank);
  const auto until = Clock::now() + kUntilThere;
  while (true) {
    const auto text = wire::read_file(file, wire::Readers::OwnerOnly);
    if (text) return parse_member_place(*text);
    if (Clock::now() >= until) return std::nullopt;
    // On a network file system a look at the folder shows what a look for the name may not.
    if (DIR* dir = ::opendir(folder_.c_str())) ::closedir(dir);
    ::usleep(static_cast<useconds_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(kLook).count()));
  }
}

Fd connected(const wire::Address& address) {
  const auto place = numeric_address(address.place, address.port);
  if (!place) return {};
  Fd fd(::socket(place->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  if (::connect(fd.get(), place->get(), place->length) != 0) {
    if (errno != EINPROGRESS) return {};
    pollfd wait{fd.get(), POLLOUT, 0};
    if (::poll(&wait, 1, kConnectMs) != 1) return {};
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) return {};
  }
  return fd;
}

/// Between our standard streams and a process on another node.
class Relay {
 public:
  Relay(NodeChannel& channel, bool has_input, const std::string& node)
      : channel_(channel), has_input_(has_input), node_(node) {}

  /// Until that process has ended: its exit code.
  int run();

 private:
  void pass_signals(const Fd& signals);
  void pass_input();
  /// The exit code, where that has come; false: the other end is gone.
  bool take(std::optional<int>& code);

  NodeChannel& channel_;
  bool has_input_;
  const std::string& node_;
};

void Relay::pass_signals(const Fd& signals) {
  signalfd_siginfo info{};
  while (::read(signals.get(), &info, sizeof info) == sizeof info) {
    wire::NodePiece piece;
    piece.set_signal(info.ssi_signo);
    channel_.send(piece);
  }
}

void Relay::pass_input() {
  std::string bytes(NodeChannel::kMostData, '\0');
  const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  wire::NodePiece piece;
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  piece.set_data(std::move(bytes));
  piece.set_end(got <= 0);
  has_input_ = got > 0;
  channel_.send(piece);
}

bool Relay::take(std::optional<int>& code) {
  const auto pieces = channel_.receive();
  if (!pieces) return false;
  for (const wire::NodePiece& piece : *pieces) {
    if (!piece.data().empty())
      (void)write_all(piece.stream() == 2 ? STDERR_FILENO : STDOUT_FILENO, piece.data());
    if (!piece.trouble().empty()) complain("node " + node_ + ": " + piece.trouble());
    if (piece.has_exit_code()) code = piece.exit_code();
  }
  return true;
}

int Relay::run() {
  sigset_t all;
  sigemptyset(&all);
  for (const int number : kForwarded) sigaddset(&all, number);
  const Fd signals(::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
  std::optional<int> code;
  while (channel_.flush()) {
    std::array<pollfd, 3> waits{
        pollfd{channel_.fd(),
               static_cast<short>(POLLIN | (channel_.wants_to_write() ? POLLOUT : 0)), 0},
        pollfd{signals.get(), POLLIN, 0},
        pollfd{has_input_ && !channel_.is_full() ? STDIN_FILENO : -1, POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
    pass_signals(signals);
    if (waits[2].revents != 0) pass_input();
    if (waits[0].revents != 0 && !take(code)) break;
    if (code) return *code;
  }
  complain("the connection to node " + node_ + " of the task was lost");
  // Why, the engine may know first: then it ends the task with that.
  ::usleep(kUntilToldUs);
  return kLost;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(const Rank& rank, std::size_t nodes) {
  const std::string number = std::to_string(rank.number);
  ::setenv("HPCBATCH_RANK", number.c_str(), 1);
  ::setenv("SLURM_PROCID", number.c_str(), 1);
  ::setenv("SLURM_LOCALID", std::to_string(rank.of_node).c_str(), 1);
  ::setenv(kNodeIndex, std::to_string(rank.node).c_str(), 1);
  ::setenv("SLURM_NODEID", std::to_string(rank.node).c_str(), 1);
  ::setenv("SLURM_STEP_NUM_NODES", std::to_string(nodes).c_str(), 1);
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) lines.emplace_back(*line);
  return lines;
}

int Caller::run_there(const Rank& rank, const std::vector<std::string>& argv) const {
  const TaskNode& node = nodes_.nodes[rank.node];
  if (rank.node == 0) {
    complain("only the first node of the task, " + node.name + ", can start processes there");
    return kLost;
  }
  const auto place = place_of(node.rank);
  if (!place) {
    complain("node " + node.name + " of the task does not answer: its pilot has said nothing in " +
             folder_);
    return kLost;
  }
  Fd socket;
  for (const wire::Address& address : place->addresses) {
    socket = connected(address);
    if (socket) break;
  }
  if (!socket) {
    complain("cannot connect to node " + node.name + " of the task: " + std::strerror(errno));
    return kLost;
  }
  NodeChannel channel(std::move(socket),
                      wire::Link::connecting({nodes_.allocation, node.rank}, place->key));
  wire::NodePiece piece;
  wire::NodeRequest& request = *piece.mutable_request();
  for (const std::string& word : argv) request.add_argv(word);
  for (const std::string& line : environment_of(rank, nodes_.nodes.size()))
    request.add_environment(line);
  std::array<char, 4096> here{};
  if (::getcwd(here.data(), here.size()) != nullptr) request.set_directory(here.data());
  const mode_t mask = ::umask(0);
  ::umask(mask);
  request.set_umask(mask);
  request.set_no_input(!rank.has_input);
  channel.send(piece);
  return Relay(channel, rank.has_input, node.name).run();
}

int Caller::run_here(const Rank& rank, const std::vector<std::string>& argv) const {
  environment_of(rank, nodes_.nodes.size());
  if (!rank.has_input) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<std::string> words = argv;
  std::vector<char*> pointers = pointers_to(words);
  ::execvp(pointers.front(), pointers.data());
  const int code = code_of_no_start(errno);
  complain("cannot run " + argv.front() + ": " + std::strerror(errno));
  return code;
}

int Caller::run(const Rank& rank, const std::vector<std::string>& argv) const {
  return rank.node == own_ ? run_here(rank, argv) : run_there(rank, argv);
}

/// Each in a process of its own, until all have ended.
int run_all(const Caller& caller, const std::vector<Rank>& ranks,
            const std::vector<std::string>& argv, bool ends_others) {
  sigset_t all;
  sigemptyset(&all);
  for (const int number : kForwarded) sigaddset(&all, number);
  sigaddset(&all, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  const Fd signals(::signalfd(-1, &all, SFD_CLOEXEC));
  std::vector<pid_t> alive;
  const auto tell = [&](int number) {
    for (const pid_t pid : alive) ::kill(pid, number);
  };
  for (const Rank& rank : ranks) {
    const pid_t pid = ::fork();
    if (pid < 0) {
      complain(std::string("cannot start a process: ") + std::strerror(errno));
      tell(SIGTERM);
      return kLost;
    }
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      ::_exit(caller.run(rank, argv));
    }
    alive.push_back(pid);
  }
  int highest = 0;
  while (!alive.empty()) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      std::erase(alive, pid);
      const int code = shell_code_of(status);
      highest = std::max(highest, code);
      // Without one of their nodes the others may wait for ever.
      if (code == kLost || (code != 0 && ends_others)) tell(SIGTERM);
      continue;
    }
    signalfd_siginfo info{};
    if (::read(signals.get(), &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD)
      tell(static_cast<int>(info.ssi_signo));
  }
  return highest;
}

std::optional<Caller> caller_here() {
  const char* folder = std::getenv(kNodesFolder);
  if (folder == nullptr && std::getenv("HPCBATCH_TASK_ID") != nullptr) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    return Caller("", {"", {{0, 1, host.data()}}}, 0);
  }
  if (folder == nullptr) {
    complain("there is no task here: start one with 'hpcbatch run --nodes 2'");
    return std::nullopt;
  }
  auto nodes = read_nodes(folder);
  if (!nodes) {
    complain("cannot read which nodes the task has: " + nodes.error().text);
    return std::nullopt;
  }
  const char* index = std::getenv(kNodeIndex);
  const std::size_t own = index == nullptr ? 0 : std::strtoul(index, nullptr, 10);
  return Caller(folder, std::move(*nodes), own);
}

struct Asked {
  std::uint32_t ranks{0};  ///< 0: not said
  std::uint32_t nodes{0};
  std::vector<std::string> names;
  bool ends_others{false};
  std::vector<std::string> argv;
};

std::optional<std::uint32_t> count_of(const std::string& text) {
  const auto count = number_in<std::uint32_t>(text);
  return count && *count > 0 ? count : std::nullopt;
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (end != 0) names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

/// Nothing: it was wrong, and that was said.
std::optional<Asked> read_asked(const std::vector<std::string>& arguments) {
  Asked asked;
  std::size_t at = 0;
  for (; at < arguments.size() && arguments[at].starts_with('-'); ++at) {
    const std::string& word = arguments[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word == "-K") {
      asked.ends_others = true;
      continue;
    }
    const std::string name = word.substr(0, 2);
    if (name != "-n" && name != "-N" && name != "-w") {
      complain("there is no option " + word + "; 'hpcbatch node-run --help' has all");
      return std::nullopt;
    }
    const std::string value =
        word.size() > 2 ? word.substr(2) : (at + 1 < arguments.size() ? arguments[++at] : "");
    if (name == "-w") {
      asked.names = names_in(value);
      if (!asked.names.empty()) continue;
      complain("-w names no node");
      return std::nullopt;
    }
    const auto count = count_of(value);
    if (!count) {
      std::string why = name;
      why.append(" is '").append(value).append("'; it must be a whole number from 1");
      complain(why);
      return std::nullopt;
    }
    (name == "-n" ? asked.ranks : asked.nodes) = *count;
  }
  asked.argv.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
  if (asked.argv.empty()) {
    complain("it was given no command; 'hpcbatch node-run --help' says how");
    return std::nullopt;
  }
  return asked;
}

/// The places in the list of those that are meant.
std::optional<std::vector<std::size_t>> nodes_meant(const Caller& caller, const Asked& asked) {
  for (const std::string& name : asked.names) {
    if (caller.has(name)) continue;
    complain("'" + name + "' is no node of the task");
    return std::nullopt;
  }
  std::vector<std::size_t> meant;
  for (std::size_t at = 0; at < caller.nodes().size(); ++at) {
    const std::string& name = caller.nodes()[at].name;
    const bool is_named =
        std::find(asked.names.begin(), asked.names.end(), name) != asked.names.end();
    if (asked.names.empty() || is_named) meant.push_back(at);
  }
  if (asked.nodes > meant.size() || meant.empty()) {
    complain("the task has " + std::to_string(caller.nodes().size()) +
             " nodes, and not those that were asked for");
    return std::nullopt;
  }
  if (asked.nodes != 0) meant.resize(asked.nodes);
  return meant;
}

/// As many as each node has slots, in their order, and round again where there are more.
std::vector<Rank> spread(const Caller& caller, const std::vector<std::size_t>& nodes,
                         std::uint32_t count) {
  std::vector<std::uint32_t> of_node(nodes.size(), 0);
  for (std::uint32_t left = count; left != 0;) {
    for (std::size_t at = 0; at < nodes.size() && left != 0; ++at) {
      const std::uint32_t some = std::min(left, std::max(1U, caller.nodes()[nodes[at]].slots));
      of_node[at] += some;
      left -= some;
    }
  }
  std::vector<Rank> ranks;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    for (std::uint32_t i = 0; i < of_node[at]; ++i)
      ranks.push_back({nodes[at], static_cast<std::uint32_t>(ranks.size()), i, ranks.empty()});
  }
  return ranks;
}

}  // namespace

int run_on_nodes(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  const auto asked = read_asked(arguments);
  if (!asked) return kUsage;
  const auto caller = caller_here();
  if (!caller) return kUsage;
  const auto meant = nodes_meant(*caller, *asked);
  if (!meant) return kUsage;
  std::vector<Rank> ranks;
  const char* said = std::getenv("HPCBATCH_NTASKS");
  std::uint32_t count = asked->ranks;
  if (count == 0 && asked->nodes == 0 && asked->names.empty() && said != nullptr)
    count = count_of(said).value_or(0);
  if (count != 0) {
    ranks = spread(*caller, *meant, count);
  } else {
    for (const std::size_t node : *meant)
      ranks.push_back({node, static_cast<std::uint32_t>(ranks.size()), 0, ranks.empty()});
  }
  ::setenv("SLURM_STEP_NUM_TASKS", std::to_string(ranks.size()).c_str(), 1);
  ::setenv("HPCBATCH_RANKS", std::to_string(ranks.size()).c_str(), 1);
  if (ranks.size() > 1) ::setenv("PMI_PORT", kNoMpi, 1);
  return run_all(*caller, ranks, asked->argv, asked->ends_others);
}

int run_as_rsh(const std::vector<std::string>& arguments) {
  std::size_t at = 0;
  for (; at < arguments.size() && arguments[at].starts_with('-'); ++at) {
    // Of a remote shell's options only this one takes a word.
    if (arguments[at] == "-l") ++at;
  }
  const auto caller = caller_here();
  if (!caller) return kUsage;
  if (at + 1 >= arguments.size()) {
    complain("as a remote shell it takes a node and a command");
    return kUsage;
  }
  const std::string& said = arguments[at];
  const std::string host =
      said.substr(said.find('@') == std::string::npos ? 0 : said.find('@') + 1);
  const auto node = std::find_if(caller->nodes().begin(), caller->nodes().end(),
                                 [&](const TaskNode& one) { return one.name == host; });
  if (node == caller->nodes().end()) {
    complain("'" + host + "' is no node of the task");
    return kUsage;
  }
  std::string line;
  for (std::size_t word = at + 1; word < arguments.size(); ++word)
    line.append(line.empty() ? "" : " ").append(arguments[word]);
  const Rank rank{static_cast<std::size_t>(node - caller->nodes().begin()), 0, 0, true};
  return run_all(*caller, {rank}, {"/bin/sh", "-c", line}, false);
}

}  // namespace hpcbatch::pilot
