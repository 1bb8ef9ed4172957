#include "plugin_host/library.hpp"

#include "documents/text_check.hpp"

#include <fmt/format.h>
#include <boost/dll/shared_library.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {

namespace {

// Closing a library whose code an exception or a thread-local still needs crashes; so none is
// ever unmapped.
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
constexpr unsigned kTrialSeconds = 30;
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
/// own locks glibc makes anew there.
[[noreturn]] void load_and_exit(const char* file) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGBUS, SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGALRM}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::alarm(kTrialSeconds);
  // One that the loader refuses in words may be loaded here, where the words are heard.
  if (void* library = ::dlopen(file, kMode)) read_descriptor(library);
  ::_exit(0);
}

/// A file that is cut off or damaged ends the process that loads it: a child first.
std::optional<std::string> trial(const std::filesystem::path& file) {
  if (void* loaded = ::dlopen(file.c_str(), kMode | RTLD_NOLOAD)) {
    ::dlclose(loaded);
    return std::nullopt;
  }
  const pid_t child = ::fork();
  if (child == 0) load_and_exit(file.c_str());
  int status = 0;
  if (child < 0) return fmt::format("no process to try it in: {}", std::strerror(errno));
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;  // somebody else has taken its status
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGALRM) return fmt::format("loading it takes over {} s", kTrialSeconds);
  return fmt::format(
      "loading it ends a process {}: its file is cut off or damaged; put it there anew",
      signal != 0 ? fmt::format("by SIG{}", ::sigabbrev_np(signal))
                  : fmt::format("with exit code {}", WEXITSTATUS(status)));
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

}  // namespace hpcbatch
