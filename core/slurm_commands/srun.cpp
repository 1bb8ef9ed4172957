// srun within a task: programs of it side by side on its node, on the cpus that it has.
#include "posix/files.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::slurm_commands {
namespace {

constexpr int kCannotRun = 127;
constexpr unsigned kMostTasks = 4096;

std::string variable(const EnvironmentMap& environment, const std::string& name,
                     const std::string& otherwise = "") {
  const auto at = environment.find(name);
  return at == environment.end() ? otherwise : at->second;
}

unsigned number_said(const Parsed& parsed, const char* option, const std::string& otherwise) {
  const std::string text = parsed.value(option).value_or(otherwise);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0 ||
      number > kMostTasks)
    throw CommandFailed("srun: error: Invalid numeric value \"" + text + "\" for --" + option +
                        ".");
  return number;
}

/// What a step is started with.
struct Step {
  Parsed parsed;
  EnvironmentMap environment;
  unsigned tasks{1}, cpus{0};  ///< cpus of each task; 0: all of them may use all
  bool label{false};
};

/// `out.%j_%t` (srun(1), "filename pattern").
std::string file_of_rank(const std::string& pattern, const Step& step, unsigned rank) {
  const std::string job = variable(step.environment, "SLURM_JOB_ID",
                                   variable(step.environment, "HPCBATCH_BATCH_NUMBER", "0"));
  const std::map<char, std::string> values{
      {'j', job},
      {'J', job + ".0"},
      {'s', "0"},
      {'t', std::to_string(rank)},
      {'n', "0"},
      {'N', variable(step.environment, "SLURMD_NODENAME", "localhost")},
      {'A', variable(step.environment, "SLURM_ARRAY_JOB_ID", job)},
      {'a', variable(step.environment, "SLURM_ARRAY_TASK_ID", "4294967294")},
      {'u', variable(step.environment, "USER")},
      {'x', variable(step.environment, "SLURM_JOB_NAME")},
      {'%', "%"}};
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      text += pattern[at];
      continue;
    }
    std::size_t width = 0;
    while (++at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9')
      width = std::min<std::size_t>(width * 10 + static_cast<std::size_t>(pattern[at] - '0'), 10);
    const auto value = at < pattern.size() ? values.find(pattern[at]) : values.end();
    if (value == values.end()) continue;
    const std::string& known = value->second;
    text += (known.size() < width ? std::string(width - known.size(), '0') : "") + known;
  }
  return text;
}

std::vector<int> own_cpus() {
  cpu_set_t mask;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

/// Those of its rank, where a step has all of the task's: of several steps at once nobody knows which
/// cpus the others have.
void bind(const Step& step, unsigned rank) {
  const std::vector<int> cpus = own_cpus();
  if (step.cpus == 0 || cpus.size() != static_cast<std::size_t>(step.cpus) * step.tasks) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (unsigned i = 0; i < step.cpus; ++i) CPU_SET(cpus[rank * step.cpus + i], &mask);
  ::sched_setaffinity(0, sizeof mask, &mask);
}

[[noreturn]] void fail_in_child(const std::string& what) {
  std::fprintf(stderr, "srun: error: %s: %s\n", what.c_str(), std::strerror(errno));
  std::fflush(nullptr);
  ::_exit(kCannotRun);
}

/// The file that a rank reads or writes; nothing: what srun has.
std::optional<std::string> file_said(const Step& step, const char* option, unsigned rank) {
  const auto pattern = step.parsed.value(option);
  if (!pattern || *pattern == "all" || *pattern == "none") return std::nullopt;
  return file_of_rank(*pattern, step, rank);
}

/// Once, before any rank writes: several may have the same file.
void empty_files(const Step& step) {
  if (step.parsed.value("open-mode").value_or("").starts_with('a')) return;
  std::set<std::string> files;
  for (unsigned rank = 0; rank < step.tasks; ++rank) {
    for (const char* option : {"output", "error"}) {
      const auto file = file_said(step, option, rank);
      // What is not there, or no file, is the rank's to complain of.
      if (file && files.insert(*file).second && ::truncate(file->c_str(), 0) != 0) continue;
    }
  }
}

void redirect(const Step& step, const char* option, unsigned rank, int descriptor) {
  const auto file = file_said(step, option, rank);
  if (!file) return;
  // Ranks that write to one file add to it.
  const int flags = descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND;
  const int opened = ::open(file->c_str(), flags | O_CLOEXEC, 0666);
  if (opened < 0) fail_in_child("Could not open " + *file);
  ::dup2(opened, descriptor);
}

/// This process becomes the program of that rank.
[[noreturn]] void become_program(const Step& step, unsigned rank) {
  bind(step, rank);
  redirect(step, "input", rank, STDIN_FILENO);
  redirect(step, "output", rank, STDOUT_FILENO);
  if (step.parsed.has("error"))
    redirect(step, "error", rank, STDERR_FILENO);
  else if (step.parsed.has("output"))
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
  if (const auto folder = step.parsed.value("chdir"); folder && ::chdir(folder->c_str()) != 0)
    fail_in_child("Could not change to " + *folder);
  const std::string number = std::to_string(rank), tasks = std::to_string(step.tasks);
  for (const char* name : {"SLURM_PROCID", "SLURM_LOCALID"}) ::setenv(name, number.c_str(), 1);
  for (const char* name : {"SLURM_NODEID", "SLURM_STEP_ID", "SLURM_STEPID"}) ::setenv(name, "0", 1);
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"})
    ::setenv(name, tasks.c_str(), 1);
  for (const std::string& one : step.parsed.list("export")) {
    if (const std::size_t equals = one.find('='); equals != std::string::npos)
      ::setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);
  }
  std::vector<std::string> words = step.parsed.words;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(arguments[0], arguments.data());
  fail_in_child("execve(): " + words.front());
}

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// What one program prints, as far as its line has not ended.
struct Stream {
  unsigned rank{0};
  Fd from;
  int to{STDOUT_FILENO};
  std::string begun;

  void pass_on(std::string_view text, bool is_end) {
    begun += text;
    for (;;) {
      std::size_t end = begun.find('\n');
      if (end == std::string::npos && !(is_end && !begun.empty())) return;
      end = std::min(end, begun.size() - 1);
      const std::string line = std::to_string(rank) + ": " + begun.substr(0, end + 1);
      begun.erase(0, end + 1);
      if (::write(to, line.data(), line.size()) < 0) return;
    }
  }
};

void pass_on_all(std::vector<Stream>& streams) {
  while (!streams.empty()) {
    std::vector<pollfd> waits;
    waits.reserve(streams.size());
    for (const Stream& stream : streams) waits.push_back({stream.from.get(), POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    for (std::size_t i = streams.size(); i-- > 0;) {
      if (waits[i].revents == 0) continue;
      char piece[8192];
      const ssize_t size = ::read(waits[i].fd, piece, sizeof piece);
      if (size < 0 && errno == EINTR) continue;
      streams[i].pass_on({piece, static_cast<std::size_t>(std::max<ssize_t>(size, 0))}, size <= 0);
      if (size <= 0) streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

void add_pipe(std::vector<Stream>& streams, unsigned rank, int to, Fd& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw CommandFailed("srun: error: no more pipes");
  streams.push_back({rank, Fd(ends[0]), to, ""});
  write_end = Fd(ends[1]);
}

/// The highest exit code; with --kill-on-bad-exit the first bad one ends the others.
int wait_for_all(std::vector<pid_t> running, bool kills) {
  int highest = 0;
  while (!running.empty()) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) break;
    std::erase(running, ended);
    highest = std::max(highest, code_of(status));
    if (!kills || code_of(status) == 0) continue;
    for (const pid_t one : running) ::kill(one, SIGTERM);
  }
  return highest;
}

int run_side_by_side(const Step& step) {
  std::vector<pid_t> running;
  std::vector<Stream> streams;
  for (unsigned rank = 0; rank < step.tasks; ++rank) {
    Fd out, error;
    if (step.label) add_pipe(streams, rank, STDOUT_FILENO, out);
    if (step.label) add_pipe(streams, rank, STDERR_FILENO, error);
    const pid_t process = ::fork();
    if (process < 0) throw CommandFailed("srun: error: cannot start another process");
    if (process == 0) {
      if (step.label) ::dup2(out.get(), STDOUT_FILENO);
      if (step.label) ::dup2(error.get(), STDERR_FILENO);
      become_program(step, rank);
    }
    running.push_back(process);
  }
  pass_on_all(streams);
  return wait_for_all(running, step.parsed.has("kill-on-bad-exit"));
}

}  // namespace

int srun(const Call& call, const Session& session) {
  Step step{parse_options(srun_options(), call.words), call.environment};
  const bool is_task = call.environment.contains("HPCBATCH_TASK_ID");
  if (!is_task && call.environment.contains("SLURM_JOB_ID") && !real_command(call).empty())
    become_real(call, call.words);
  if (!is_task)
    throw CommandFailed(
        "srun: error: hpcbatch has srun for steps within a task alone; submit the command with "
        "sbatch --wrap, run it with hpcbatch run -- COMMAND, or say HPCBATCH_SLURM_REAL=1 srun");
  if (step.parsed.words.empty()) throw CommandFailed("srun: fatal: No command given to execute.");
  if (const auto nodes = step.parsed.value("nodes"); nodes && *nodes != "1" && *nodes != "1-1")
    throw CommandFailed("srun: error: a task of hpcbatch has one node; --nodes=" + *nodes +
                        " needs the cluster's own srun: HPCBATCH_SLURM_REAL=1 srun ...");
  step.tasks = number_said(step.parsed, "ntasks", variable(call.environment, "SLURM_NTASKS", "1"));
  const auto binds = step.parsed.value("cpu-bind");
  if (step.parsed.has("cpus-per-task") && (!binds || *binds != "none"))
    step.cpus = number_said(step.parsed, "cpus-per-task", "1");
  step.label = step.parsed.has("label");
  const auto mpi = step.parsed.value("mpi");
  if (mpi && *mpi != "none" && step.tasks > 1)
    throw CommandFailed("srun: error: --mpi=" + *mpi +
                        ": hpcbatch starts no processes of one MPI program; use mpirun");
  session.interrupt.let_through();
  empty_files(step);
  if (step.tasks == 1 && !step.label) become_program(step, 0);
  return run_side_by_side(step);
}

}  // namespace hpcbatch::slurm_commands
