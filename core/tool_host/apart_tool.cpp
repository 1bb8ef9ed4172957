#include "tool_host/apart_tool.hpp"

#include "plugin_host/search_path.hpp"
#include "posix/programs.hpp"
#include "tool_host/messages.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace hpcbatch::tool_host {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLastSteps = 2s;
constexpr std::chrono::milliseconds kOpening = 25s;

/// The plugin's process ended, or gave no answer.
struct PluginTrouble : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Without a size where there is no such file.
FileStamp stamp_of(std::string path) {
  struct stat status {};
  FileStamp stamp;
  stamp.path = std::move(path);
  if (::stat(stamp.path.c_str(), &status) != 0) return stamp;
  stamp.device = status.st_dev;
  stamp.inode = status.st_ino;
  stamp.changed_ns = status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec;
  stamp.size = status.st_size;
  return stamp;
}

}  // namespace

/// The first of that name, as the process itself finds it.
FileStamp HostProcess::plugin_now(const std::string& plugin) const {
  FileStamp stamp;
  for (const auto& folder : plugin_search_path({}, options_.plugin_path, options_.program)) {
    stamp = stamp_of((folder / folder_of(HPCBATCH_KIND_TOOL) / (plugin + ".so")).string());
    if (stamp.inode != 0) break;
  }
  return stamp;
}

void HostProcess::start() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    throw std::runtime_error(
        fmt::format("cannot start a process for it: {}", std::strerror(errno)));
  Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  program_ = stamp_of(options_.program);
  // What a plugin prints is for the engine's log; what the engine blocks or ignores is no business
  // of the plugin's.
  const int error = spawn_program({"hpcbatch-tool-host", options_.plugin_path},
                                  {.program = options_.program,
                                   .output = STDERR_FILENO,
                                   .handed_over = theirs.get(),
                                   .own_group = true,
                                   .as_from_a_shell = true},
                                  child_);
  if (error != 0) {
    child_ = 0;
    throw std::runtime_error(
        fmt::format("cannot start {}, in which it runs: {}; install hpcbatch anew",
                    options_.program, std::strerror(error)));
  }
  socket_ = std::move(ours);
}

std::string HostProcess::end(std::chrono::milliseconds patience) {
  socket_.reset();
  opened_.clear();
  if (child_ == 0) return "";
  // glibc 2.36 declares pidfd_open without extern "C".
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
  pollfd wait{process.get(), POLLIN, 0};
  // One that has closed its socket is on its way to its end.
  const bool is_over = ::poll(&wait, 1, static_cast<int>(patience.count())) == 1;
  // With what the plugin has started.
  ::kill(-child_, SIGKILL);
  const int status = wait_for_end(child_);
  child_ = 0;
  if (!is_over) return "";
  if (WIFSIGNALED(status)) return fmt::format("by SIG{}", ::sigabbrev_np(WTERMSIG(status)));
  return fmt::format("with exit code {}", WEXITSTATUS(status));
}

bool HostProcess::has_ended() const {
  siginfo_t now{};
  return ::waitid(P_PID, static_cast<id_t>(child_), &now, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         now.si_pid == child_;
}

Answer HostProcess::ask(const Question& question) {
  const std::lock_guard lock(mutex_);
  // Whoever ended it meanwhile, it was not this plugin.
  if (child_ != 0 && has_ended()) (void)end(0ms);
  const FileStamp now = plugin_now(question.plugin);
  const auto opened = opened_.find(question.plugin);
  // What a process has loaded once it keeps, whatever becomes of the file.
  const bool is_another = opened != opened_.end() && opened->second != now;
  if (child_ != 0 && (is_another || program_ != stamp_of(options_.program))) (void)end(0ms);
  if (child_ == 0) start();
  if (!opened_.contains(question.plugin)) {
    // A large library on a cold file system.
    (void)answer_to(
        {.what = Question::What::Describe, .plugin = question.plugin, .text = question.text},
        options_.longest + kOpening);
    opened_.emplace(question.plugin, now);
  }
  return answer_to(question, options_.longest);
}

Answer HostProcess::answer_to(const Question& question, std::chrono::milliseconds longest) {
  const std::string asked = to_text(question);
  if (asked.size() > kLongestFrame)
    throw std::runtime_error(fmt::format("the request has {} MiB, and {} at most go to a plugin",
                                         asked.size() >> 20U, kLongestFrame >> 20U));
  const auto deadline = std::chrono::steady_clock::now() + longest;
  std::optional<std::string> text;
  if (send_frame(socket_.get(), asked, deadline)) text = receive_frame(socket_.get(), deadline);
  if (text) return answer_of(*text);
  const bool is_late = std::chrono::steady_clock::now() >= deadline;
  const std::string how = end(is_late ? 0ms : kLastSteps);
  if (is_late)
    throw PluginTrouble(fmt::format(
        "its plugin {} gave no answer within {:.0f} s and was ended; it hangs, or looks "
        "at files that do",
        question.plugin, std::chrono::duration<double>(longest).count()));
  throw PluginTrouble(
      fmt::format("its plugin {} ended its process {}; nothing else was harmed: mend the plugin",
                  question.plugin, how.empty() ? "without an answer" : how));
}

template <class Wanted>
Wanted ApartTool::ask(Question::What what, const ToolRequest& request,
                      const InputFile& file) const {
  Answer answer = host_->ask(
      {.what = what, .plugin = plugin_, .text = text_, .request = request, .file = file});
  if (const auto* refusal = std::get_if<Objection>(&answer))
    throw std::runtime_error(refusal->text);
  if (auto* wanted = std::get_if<Wanted>(&answer)) return std::move(*wanted);
  throw std::runtime_error("its plugin " + plugin_ + " gave an answer to another question");
}

ToolDescription ApartTool::describe() const {
  return ask<ToolDescription>(Question::What::Describe, {});
}
void ApartTool::validate(const ToolRequest& request) const {
  (void)ask<std::monostate>(Question::What::Validate, request);
}
ToolTask ApartTool::render(const ToolRequest& request) const {
  return ask<ToolTask>(Question::What::Render, request);
}
std::vector<FactDescription> ApartTool::facts() const {
  return ask<KnownFacts>(Question::What::Facts, {});
}
std::map<std::string, double> ApartTool::facts_of(const InputFile& file) const {
  try {
    return ask<FactValues>(Question::What::FactsOf, {}, file);
  } catch (const PluginTrouble& trouble) {
    // What is wrong is more likely the file than the plugin.
    throw std::runtime_error(fmt::format("{}; it was looking at {}", trouble.what(), file.path));
  }
}

}  // namespace hpcbatch::tool_host
