#include "plugin_host/search_path.hpp"

#include "accounts/accounts.hpp"
#include "documents/state_paths.hpp"
#include "documents/texts.hpp"
#include "hpcbatch/plugin.hpp"
#include "posix/files.hpp"

#include <fmt/format.h>
#include <boost/dll/shared_library.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {

std::string_view folder_of(hpcbatch_plugin_kind kind) {
  switch (kind) {
    case HPCBATCH_KIND_SCHEDULER:
      return "schedulers";
    case HPCBATCH_KIND_TRANSPORT:
      return "transports";
    case HPCBATCH_KIND_TOOL:
      return "tools";
    case HPCBATCH_KIND_ESTIMATOR:
      return "estimators";
  }
  return "unknown";
}

std::string kind_name(unsigned kind) {
  switch (kind) {
    case HPCBATCH_KIND_SCHEDULER:
      return "scheduler";
    case HPCBATCH_KIND_TRANSPORT:
      return "transport";
    case HPCBATCH_KIND_TOOL:
      return "tool";
    case HPCBATCH_KIND_ESTIMATOR:
      return "estimator";
    default:
      return fmt::format("kind {}", kind);
  }
}

std::vector<std::filesystem::path> plugin_search_path(const std::vector<std::string>& configured,
                                                      std::string_view environment,
                                                      const std::filesystem::path& program) {
  std::vector<std::filesystem::path> path(configured.begin(), configured.end());
  while (!environment.empty()) {
    const auto colon = std::min(environment.find(':'), environment.size());
    if (colon > 0) path.emplace_back(environment.substr(0, colon));
    environment.remove_prefix(std::min(colon + 1, environment.size()));
  }
  for (const std::string_view own : kOwnPlugins)
    path.push_back(program.parent_path().parent_path() / own);
  return path;
}

std::vector<PluginFile> find_plugins(const std::vector<std::filesystem::path>& search,
                                     hpcbatch_plugin_kind kind) {
  std::map<std::string, PluginFile> found;
  for (const auto& directory : search) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory / folder_of(kind), error)) {
      if (entry.path().extension() != ".so") continue;
      auto [it, first] = found.try_emplace(entry.path().stem().string());
      if (first) {
        it->second = {.name = it->first, .path = entry.path(), .hidden = {}};
      } else {
        it->second.hidden.push_back(entry.path());
      }
    }
  }
  std::vector<PluginFile> plugins;
  plugins.reserve(found.size());
  for (auto& [name, file] : found) plugins.push_back(std::move(file));
  return plugins;
}

namespace {

// Closing a library whose code an exception or a thread-local still needs crashes; so none is
// ever unmapped.
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
constexpr unsigned kTrialSeconds = 30;
constexpr int kRefusedInWords = 86;
constexpr std::size_t kLongestText = 4096;

/// What the engine will read of it, if it says that it is one of ours.
void read_descriptor(void* library) {
  const auto* d =
      static_cast<const hpcbatch_plugin_descriptor*>(::dlsym(library, "hpcbatch_plugin"));
  if (d == nullptr || d->magic != HPCBATCH_ABI_MAGIC || d->size != sizeof *d) return;
  // Volatile, or nobody would read: the result is not used.
  for (const volatile char* text : {d->name, d->version, d->fingerprint}) {
    while (text != nullptr && *text != '\0') ++text;
  }
}

/// Only while the child of a fork lives: nothing may be allocated or locked before `dlopen`, whose
/// own locks glibc makes anew there.  What the loader refuses is told in its words to `words`.
[[noreturn]] void load_and_exit(const char* file, int words) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGBUS, SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGALRM}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::alarm(kTrialSeconds);
  if (void* library = ::dlopen(file, kMode)) {
    read_descriptor(library);
  } else if (const char* why = ::dlerror()) {
    // The pipe takes that much at once; of what is lost the exit code is told.
    const ssize_t written = ::write(words, why, std::min(std::strlen(why), kLongestText));
    ::_exit(written > 0 ? kRefusedInWords : 1);
  }
  ::_exit(0);
}

std::string why_ended(int status) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGALRM) return fmt::format("loading it takes over {} s", kTrialSeconds);
  return fmt::format(
      "loading it ends a process {}: its file is cut off or damaged; put it there anew",
      signal != 0 ? fmt::format("by SIG{}", ::sigabbrev_np(signal))
                  : fmt::format("with exit code {}", WEXITSTATUS(status)));
}

/// A file that is cut off or damaged ends the process that loads it, or the one that loads the next
/// after it was refused (glibc 2.36: "Inconsistency detected by ld.so"): so a child first, and what
/// that refuses is not loaded here at all.
std::optional<std::string> trial(const std::filesystem::path& file) {
  if (void* loaded = ::dlopen(file.c_str(), kMode | RTLD_NOLOAD)) {
    ::dlclose(loaded);
    return std::nullopt;
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return fmt::format("no pipe to hear of a trial: {}", std::strerror(errno));
  const Fd heard(ends[0]);
  Fd words(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) load_and_exit(file.c_str(), words.get());
  words.reset();
  int status = 0;
  if (child < 0) return fmt::format("no process to try it in: {}", std::strerror(errno));
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;  // somebody else has taken its status
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kRefusedInWords)
    return status == 0 ? std::nullopt : std::optional(why_ended(status));
  std::string why(kLongestText, '\0');
  const ssize_t n = ::read(heard.get(), why.data(), why.size());
  if (n <= 0) return why_ended(status);  // a code of its own, by chance
  why.resize(static_cast<std::size_t>(n));
  return show_text(why, kLongestText);
}

}  // namespace

Result<const hpcbatch_plugin_descriptor*> open_library(const std::filesystem::path& file) {
  if (const auto why = trial(file)) {
    return Error{Error::Kind::Rejected,
                 fmt::format("cannot load plugin {}: {}", file.string(), *why)};
  }
  const auto mode = static_cast<boost::dll::load_mode::type>(kMode);
  try {
    boost::dll::shared_library library;
    // The overload that throws: the other one loses the text of the loader.
    library.load(file, mode);
    if (!library.has("hpcbatch_plugin")) {
      return Error{
          Error::Kind::Rejected,
          fmt::format("{} is no plugin of hpcbatch: it exports no hpcbatch_plugin; build it with "
                      "hpcbatch_add_plugin",
                      file.string())};
    }
    return &library.get<const hpcbatch_plugin_descriptor>("hpcbatch_plugin");
  } catch (const std::exception& e) {
    return Error{Error::Kind::Rejected, fmt::format("cannot load plugin {}: {}", file.string(),
                                                    show_text(e.what(), kLongestText))};
  }
}

namespace {

bool is_writable(const std::filesystem::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/// What else is likely wrong in the same way: a careless umask leaves all plugins so, and they are to
/// be mended at once.
std::string also_writable(const std::filesystem::path& root) {
  std::string text;
  const auto look = [&text](const std::filesystem::path& path) {
    if (is_writable(path)) text += " " + path.string();
  };
  for (const auto kind : {HPCBATCH_KIND_SCHEDULER, HPCBATCH_KIND_TRANSPORT, HPCBATCH_KIND_TOOL,
                          HPCBATCH_KIND_ESTIMATOR}) {
    const std::filesystem::path folder = root / folder_of(kind);
    look(folder);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".so") look(entry.path());
    }
  }
  return text.empty() ? text : "; for all plugins there: chmod go-w" + text;
}

}  // namespace

std::optional<std::string> untrusted_plugin(const std::filesystem::path& file) {
  if (!file.is_absolute()) {
    return fmt::format("plugin {} is refused: its path is not absolute; give the whole path",
                       file.string());
  }
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) {
    return fmt::format("plugin {} cannot be read: {}", file.string(), std::strerror(errno));
  }
  // What is loaded runs in our own process: a group's members are not trusted with that, either.
  const auto found = distrust(file.string(), Wanted::File);
  if (!found) return std::nullopt;
  return fmt::format("plugin {} is refused: {}{}", file.string(), found->text,
                     also_writable(file.parent_path().parent_path()));
}

}  // namespace hpcbatch
