#include "cli_process.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::test {
namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  return ends;
}

/// In the child: what leads to the program. Only calls that are safe after fork.
[[noreturn]] void become(const std::array<int, 3>& streams, bool is_terminal, char* const* words,
                         char* const* environment) {
  if (is_terminal) {
    ::setsid();
    ::ioctl(streams[0], TIOCSCTTY, 0);
  }
  for (int number = 0; number < 3; ++number)
    ::dup2(streams[static_cast<std::size_t>(number)], number);
  // Who started the tests in the background left us an interrupt that means nothing.
  ::signal(SIGINT, SIG_DFL);
  ::execve(HPCBATCH_CLI_PROBE, words, environment);
  ::_exit(99);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// Whether one of its descriptors is a signalfd for that signal (proc(5), "sigmask").  What it
/// blocks alone tells too little: libraries block all signals for a moment when they fork or start
/// threads.
bool reads_from_descriptor(pid_t pid, int number) {
  std::error_code gone;
  const std::filesystem::directory_iterator descriptors("/proc/" + std::to_string(pid) + "/fdinfo",
                                                        gone);
  for (const auto& entry : descriptors) {
    std::ifstream information(entry.path());
    for (std::string line; std::getline(information, line);) {
      if (line.starts_with("sigmask:") &&
          (std::stoull(line.substr(8), nullptr, 16) >> (number - 1) & 1) != 0)
        return true;
    }
  }
  return false;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "hpcbatch-cli-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

CliProcess::CliProcess(const std::string& home, const std::vector<std::string>& words,
                       const CliOptions& options) {
  std::vector<std::string> all{"hpcbatch"};
  all.insert(all.end(), words.begin(), words.end());
  std::map<std::string, std::string> variables = options.environment;
  variables.insert(
      {{"PATH", "/usr/bin:/bin"}, {"HOME", home}, {"HPCBATCH_HOME", home}, {"USER", "alice"}});
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables)
    environment.push_back(std::string(name).append("=").append(value));
  const std::vector<char*> argv = pointers(all);
  const std::vector<char*> envp = pointers(environment);

  std::array<int, 3> streams{};
  if (options.is_terminal) {
    int terminal = -1;
    winsize size{};
    size.ws_row = options.terminal_rows;
    size.ws_col = options.terminal_rows == 0 ? 0 : 100;
    if (::openpty(&out_, &terminal, nullptr, nullptr, &size) != 0)
      throw std::runtime_error("cannot open a terminal");
    ::fcntl(out_, F_SETFD, FD_CLOEXEC);
    ::fcntl(terminal, F_SETFD, FD_CLOEXEC);
    streams = {terminal, terminal, terminal};
  } else {
    const auto out = make_pipe();
    const auto err = make_pipe();
    out_ = out[0];
    err_ = err[0];
    streams = {-1, out[1], err[1]};
    if (!options.input.empty() || options.keep_input_open) {
      const auto in = make_pipe();
      streams[0] = in[0];
      in_ = in[1];
    } else {
      const std::string file = options.input_file.empty() ? "/dev/null" : options.input_file;
      streams[0] = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    }
  }
  pid_ = ::fork();
  if (pid_ == 0) become(streams, options.is_terminal, argv.data(), envp.data());
  ::close(streams[0]);
  if (!options.is_terminal) {
    ::close(streams[1]);
    ::close(streams[2]);
  }
  if (options.close_output) {
    ::close(out_);
    out_ = -1;
  }
  if (!options.input.empty()) {
    // Small enough for a pipe's buffer.
    if (::write(in_, options.input.data(), options.input.size()) < 0)
      throw std::runtime_error("cannot feed the program");
    ::close(in_);
    in_ = -1;
  }
}

CliProcess::~CliProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int descriptor : {out_, err_, in_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

void CliProcess::signal(int number) const {
  ::kill(pid_, number);
}

void CliProcess::wait_until_it_reads(int number) const {
  for (int tries = 0; tries < 6000; ++tries) {
    if (reads_from_descriptor(pid_, number)) return;
    ::usleep(10'000);
  }
  throw std::runtime_error("signal " + std::to_string(number) + " is not read from a descriptor");
}

void CliProcess::type(const std::string& keys) const {
  if (::write(out_, keys.data(), keys.size()) < 0) throw std::runtime_error("cannot type");
}

bool CliProcess::read_some() {
  pollfd waits[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  if (::poll(waits, 2, -1) < 0) return errno == EINTR;
  char piece[4096];
  for (const auto& [wait, into, descriptor] :
       {std::tuple{waits[0], &result_.out, &out_}, std::tuple{waits[1], &result_.err, &err_}}) {
    if (wait.revents == 0) continue;
    const ssize_t size = ::read(*descriptor, piece, sizeof piece);
    if (size > 0) {
      into->append(piece, static_cast<std::size_t>(size));
    } else {
      ::close(*descriptor);
      *descriptor = -1;
    }
  }
  return true;
}

void CliProcess::wait_for_output(const std::string& text) {
  while (result_.out.find(text) == std::string::npos) {
    if (!read_some())
      throw std::runtime_error("it ended without printing '" + text + "' but '" + result_.out +
                               result_.err + "'");
  }
}

CliResult CliProcess::wait() {
  while (read_some()) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  result_.is_killed = !WIFEXITED(status);
  result_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

CliResult run_cli(const std::string& home, const std::vector<std::string>& words,
                  const CliOptions& options) {
  return CliProcess(home, words, options).wait();
}

}  // namespace hpcbatch::test
