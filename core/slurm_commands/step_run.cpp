// A step while it runs: its ranks, signals, times, and how they ended.
#include "model/index_set.hpp"
#include "model/quantities.hpp"
#include "slurm_commands/step.hpp"
#include "slurm_commands/step_streams.hpp"
#include "slurm_commands/times.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::slurm_commands {
namespace {

using Seconds = std::chrono::seconds;
using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Between TERM and KILL.
constexpr Seconds kKillWait{5};
/// Ends of ranks that come within it are told together.
constexpr Milliseconds kTogether{30};
/// For what is on its way from processes that a rank has left behind.
constexpr Milliseconds kLastWords{200};

struct End {
  bool is_signal{false};
  int number{0};  ///< the exit code, or the signal

  bool is_good() const { return !is_signal && number == 0; }
  friend auto operator<=>(const End&, const End&) = default;
};

[[noreturn]] void fail_in_rank(const std::string& node, const std::string& what, int error) {
  std::fprintf(stderr, "slurmstepd-%s: error: %s: %s\n", node.c_str(), what.c_str(),
               std::strerror(error));
  std::fflush(nullptr);
  ::_exit(error);
}

/// Its program, by the rank's own PATH; returns errno.
int execute(std::vector<std::string>& words, EnvironmentMap& environment) {
  std::vector<std::string> lines;
  lines.reserve(environment.size());
  for (const auto& [name, value] : environment) lines.emplace_back(name).append("=").append(value);
  std::vector<char*> arguments, variables;
  for (std::string& word : words) arguments.push_back(word.data());
  for (std::string& line : lines) variables.push_back(line.data());
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  if (words.front().find('/') != std::string::npos) {
    ::execve(words.front().c_str(), arguments.data(), variables.data());
    return errno;
  }
  int error = ENOENT;
  for (const std::string& folder : split_at(environment["PATH"], ':')) {
    ::execve((folder + "/" + words.front()).c_str(), arguments.data(), variables.data());
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
  }
  return error;
}

void bind_to(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(cpu, &mask);
  ::sched_setaffinity(0, sizeof mask, &mask);
}

/// In the new process.  `input` is -1 where the rank has a file of its own, or nothing.
[[noreturn]] void become_rank(Rank rank, const std::string& node, int input) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  bind_to(rank.cpus);
  if (input < 0) {
    const char* file = rank.input.empty() ? "/dev/null" : rank.input.c_str();
    input = ::open(file, O_RDONLY | O_CLOEXEC);
    if (input < 0) fail_in_rank(node, "Could not open stdin file", errno);
  }
  ::dup2(input, STDIN_FILENO);
  // Its error may be what srun prints on, and so be lost with the first of the two.
  const int error = ::fcntl(rank.error, F_DUPFD_CLOEXEC, 3);
  ::dup2(rank.output, STDOUT_FILENO);
  ::dup2(error, STDERR_FILENO);
  if (!rank.directory.empty() && ::chdir(rank.directory.c_str()) != 0)
    fail_in_rank(node, "couldn't chdir to `" + rank.directory + "'", errno);
  rank.environment["SLURM_TASK_PID"] = std::to_string(::getpid());
  const int why = execute(rank.words, rank.environment);
  fail_in_rank(node, "execve(): " + rank.words.front(), why);
}

/// Signals that srun passes on, or takes as a wish.
class StepSignals {
 public:
  StepSignals() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int number :
         {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT}) {
      struct sigaction now {};
      const bool is_ignored = ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
      // Under nohup that one is not for us; what a shell does to its background is no wish.
      if (is_ignored && number == SIGHUP) continue;
      if (is_ignored) ::signal(number, SIG_DFL);
      sigaddset(&wanted, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
    descriptor_ = Fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  int descriptor() const { return descriptor_.get(); }
  /// 0: there is none left.
  int take() const {
    signalfd_siginfo what{};
    if (::read(descriptor_.get(), &what, sizeof what) != sizeof what) return 0;
    return static_cast<int>(what.ssi_signo);
  }

 private:
  Fd descriptor_;
};

class StepRun {
 public:
  explicit StepRun(const RunningStep& step)
      : step_(step), lines_(static_cast<unsigned>(step.ranks.size())) {}

  int run() {
    ::signal(SIGPIPE, SIG_IGN);
    start_all();
    if (step_.limit) plan(kLimit, *step_.limit);
    if (step_.signal != 0) plan(kSignal, step_.signal_after);
    while (!running_.empty()) {
      wait_once();
      do_what_is_due();
    }
    // As the end of a step ends what its ranks have started.
    for (const pid_t group : groups_) ::kill(-group, SIGKILL);
    for (const pid_t process : groups_) ::waitpid(process, nullptr, 0);
    const auto until = Clock::now() + kLastWords;
    while (lines_.any() && Clock::now() < until) wait_once();
    tell_ends();
    if (is_forced_ && !is_aborted_)
      std::fprintf(stderr, "srun: Force Terminated StepId=%s\n", step_.id.c_str());
    return highest_;
  }

 private:
  enum Due { kLimit, kSignal, kWait, kKill, kTell, kDues };

  void plan(Due what, Milliseconds after) { due_[what] = Clock::now() + after; }
  bool is_due(Due what) {
    if (!due_[what] || *due_[what] > Clock::now()) return false;
    due_[what].reset();
    return true;
  }

  void start_all() {
    const auto shares = [](const Rank& rank) { return rank.reads && rank.input.empty(); };
    const bool many = std::count_if(step_.ranks.begin(), step_.ranks.end(), shares) > 1;
    for (unsigned number = 0; number < step_.ranks.size(); ++number) {
      Rank rank = step_.ranks[number];
      Fd output, error, input;
      if (step_.label) rank.output = (output = lines_.add(number, rank.output)).get();
      if (step_.label) rank.error = (error = lines_.add(number, rank.error)).get();
      int reads = shares(rank) ? STDIN_FILENO : -1;
      if (reads >= 0 && many) reads = (input = input_.add()).get();
      std::fflush(nullptr);
      const pid_t process = ::fork();
      if (process < 0) {
        kill_all(SIGKILL);
        throw CommandFailed("srun: error: cannot start another process");
      }
      if (process == 0) become_rank(std::move(rank), step_.node, reads);
      ::setpgid(process, process);
      running_[process] = number;
      groups_.push_back(process);
    }
  }

  void wait_once() {
    std::vector<pollfd> waits{{signals_.descriptor(), POLLIN, 0}};
    lines_.add_to(waits);
    const std::size_t input = waits.size();
    input_.add_to(waits);
    if (::poll(waits.data(), waits.size(), time_left()) < 0) return;
    input_.pass_on(&waits[input]);
    lines_.pass_on(&waits[1]);
    while (const int number = signals_.take()) heed(number);
  }

  int time_left() const {
    std::optional<Clock::time_point> first;
    for (const auto& one : due_) {
      if (one) first = std::min(first.value_or(*one), *one);
    }
    if (running_.empty()) return static_cast<int>(kTogether.count());
    if (!first) return -1;
    const auto left = std::chrono::ceil<Milliseconds>(*first - Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
  }

  void heed(int number) {
    if (number == SIGCHLD) return reap();
    if (number == SIGINT) return interrupted();
    if (number == SIGTERM || number == SIGHUP || number == SIGQUIT) {
      if (is_ending_) return force_by_signal();
      is_ending_ = true;
      return kill_all(number);
    }
    kill_all(number);
  }

  /// As srun(1), SIGNALS AND ESCAPE SEQUENCES, has it: the first tells, the second is passed on, the
  /// third ends.
  void interrupted() {
    const auto now = Clock::now();
    interrupts_ = now - interrupted_ < Seconds{1} ? interrupts_ + 1 : 1;
    interrupted_ = now;
    if (interrupts_ == 1) {
      std::fprintf(stderr, "srun: interrupt (one more within 1 sec to abort)\n");
      tell_running();
    } else if (interrupts_ == 2) {
      std::fprintf(stderr, "srun: sending Ctrl-C to StepId=%s\n", step_.id.c_str());
      kill_all(SIGINT);
    } else {
      force_by_signal();
    }
  }

  void tell_running() const {
    IndexSet ranks;
    for (const auto& [process, rank] : running_) ranks.add(rank);
    std::fprintf(stderr, "srun: StepId=%s %s: running\n", step_.id.c_str(), tasks(ranks).c_str());
  }

  static std::string tasks(const IndexSet& ranks) {
    return (ranks.size() == 1 ? "task " : "tasks ") + to_string(ranks);
  }

  void tell_terminating() const {
    std::fprintf(stderr, "srun: launch/slurm: _step_signal: Terminating StepId=%s\n",
                 step_.id.c_str());
  }

  void force_by_signal() {
    std::fprintf(stderr, "srun: forcing job termination\n");
    force();
  }

  void force() {
    is_ending_ = true;
    std::fprintf(stderr,
                 "srun: Job step aborted: Waiting up to %d seconds for job step to finish.\n",
                 static_cast<int>(kKillWait.count()));
    tell_cancelled("");
    kill_all(SIGKILL);
  }

  void tell_cancelled(const char* why) const {
    std::fprintf(stderr, "slurmstepd-%s: error: *** STEP %s ON %s CANCELLED AT %s%s ***\n",
                 step_.node.c_str(), step_.id.c_str(), step_.node.c_str(),
                 moment(now_in_seconds(), "").c_str(), why);
  }

  void kill_all(int signal) const {
    for (const auto& [process, rank] : running_) ::kill(-process, signal);
  }

  void end_others(const char* why) {
    if (is_ending_ || running_.empty()) return;
    is_ending_ = true;
    tell_cancelled(why);
    kill_all(SIGTERM);
    kill_all(SIGCONT);
    plan(kKill, kKillWait);
  }

  void reap() {
    for (auto at = running_.begin(); at != running_.end();) {
      siginfo_t what{};
      // It stays as it is, so that nothing else gets its number before its group has been ended.
      const int none =
          ::waitid(P_PID, static_cast<id_t>(at->first), &what, WEXITED | WNOHANG | WNOWAIT);
      if (none != 0 || what.si_pid == 0) {
        ++at;
        continue;
      }
      const End end{what.si_code != CLD_EXITED, what.si_status};
      ended_[end].add(at->second);
      at = running_.erase(at);
      highest_ = std::max(highest_, end.is_signal ? 128 + end.number : end.number);
      if (step_.wait && !due_[kWait] && !has_waited_) plan(kWait, *step_.wait);
      if (end.is_good()) continue;
      if (!due_[kTell]) plan(kTell, kTogether);
      is_bad_ = true;
    }
    if (!step_.kills_on_bad_exit || !is_bad_ || is_ending_ || running_.empty()) return;
    tell_ends();
    tell_terminating();
    end_others("");
  }

  void tell_ends() {
    due_[kTell].reset();
    for (const auto& [end, ranks] : ended_) {
      if (end.is_good()) continue;
      const std::string who = step_.node + ": " + tasks(ranks);
      const std::string how = end.is_signal ? std::string(::strsignal(end.number))
                                            : "Exited with exit code " + std::to_string(end.number);
      std::fprintf(stderr, "srun: error: %s: %s\n", who.c_str(), how.c_str());
      is_forced_ =
          is_forced_ || (end.is_signal && (end.number == SIGKILL || end.number == SIGTERM));
    }
    ended_.clear();
  }

  void do_what_is_due() {
    if (is_due(kTell)) tell_ends();
    if (is_due(kSignal)) kill_all(step_.signal);
    if (is_due(kLimit)) end_others(" DUE TO TIME LIMIT");
    if (is_due(kKill)) kill_all(SIGKILL);
    if (!is_due(kWait)) return;
    has_waited_ = true;
    if (running_.empty()) return;
    std::fprintf(stderr, "srun: First task exited %llds ago\n",
                 static_cast<long long>(step_.wait->count()));
    tell_running();
    tell_terminating();
    force();
  }

  const RunningStep& step_;
  StepSignals signals_;
  LabelledLines lines_;
  SharedInput input_;
  std::map<pid_t, unsigned> running_;
  std::vector<pid_t> groups_;
  std::map<End, IndexSet> ended_;  ///< not yet told
  std::optional<Clock::time_point> due_[kDues];
  Clock::time_point interrupted_{};
  int interrupts_{0}, highest_{0};
  bool is_ending_{false}, is_forced_{false}, is_aborted_{false}, has_waited_{false}, is_bad_{false};
};

}  // namespace

int run_step(const RunningStep& step) {
  return StepRun(step).run();
}

std::optional<double> megabytes(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view word(end, text.data() + text.size());
  if (word.empty()) return number;
  const auto unit = bytes_in(word);
  if (!unit) return std::nullopt;
  return number * *unit / (1 << 20U);
}

void check_binding(const std::string& text) {
  static constexpr std::string_view kKnown[] = {
      "none",  "no",        "n",          "quiet",     "q",       "verbose", "v",
      "rank",  "rank_ldom", "map_cpu:",   "mask_cpu:", "sockets", "cores",   "threads",
      "ldoms", "map_ldom:", "mask_ldom:", "boards",    "off",     "help"};
  for (const std::string& word : split_at(text, ',')) {
    // Numbers of map_cpu go on behind commas.
    const bool is_known =
        number_in<unsigned>(word) || word.starts_with("0x") ||
        std::any_of(std::begin(kKnown), std::end(kKnown), [&](std::string_view known) {
          return known.ends_with(':') ? word.starts_with(known) : word == known;
        });
    if (!is_known)
      throw CommandFailed("srun: error: unrecognized --cpu-bind argument \"" + word +
                          "\"\nsrun: fatal: Failed to parse --cpu-bind= values.");
  }
}

unsigned gpus_in(const std::string& text) {
  unsigned sum = 0;
  for (const std::string& one : split_at(text, ',')) {
    if (one == "none") continue;
    sum += number_in<unsigned>(one.substr(one.rfind(':') + 1)).value_or(1);
  }
  return sum;
}

}  // namespace hpcbatch::slurm_commands
