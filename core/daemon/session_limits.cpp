#include "daemon/session_limits.hpp"

#include "posix/process_start.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// Nothing where it is not ours.
std::optional<ProcessFacts> own_process(pid_t pid) {
  struct stat info {};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &info) != 0 || info.st_uid != ::geteuid())
    return std::nullopt;
  return facts_of_process(pid);
}

/// The oldest of our ancestors that is the user's and in the session of our parent; 0: none is.
pid_t first_of_session() {
  pid_t first = 0;
  pid_t pid = ::getppid();
  const auto starter = own_process(pid);
  for (auto process = starter; process && process->session == starter->session;
       process = own_process(pid)) {
    first = pid;
    pid = process->parent;
  }
  return first;
}

void take_niceness(pid_t from) {
  errno = 0;
  const int theirs = ::getpriority(PRIO_PROCESS, static_cast<id_t>(from));
  if (errno == 0) (void)::setpriority(PRIO_PROCESS, 0, theirs);
}

void take_cpus(pid_t from) {
  cpu_set_t theirs;
  if (::sched_getaffinity(from, sizeof theirs, &theirs) == 0)
    (void)::sched_setaffinity(0, sizeof theirs, &theirs);
}

/// Who is not root cannot raise a hard limit again.
void take_limit(pid_t from, __rlimit_resource which) {
  rlimit own{};
  rlimit theirs{};
  if (::getrlimit(which, &own) != 0 || ::prlimit(from, which, nullptr, &theirs) != 0) return;
  if (::setrlimit(which, &theirs) == 0) return;
  own.rlim_cur = std::min(theirs.rlim_cur, own.rlim_max);
  (void)::setrlimit(which, &own);
}

}  // namespace

void take_limits_of_session() {
  const pid_t first = first_of_session();
  if (first == 0) return;
  take_niceness(first);
  take_cpus(first);
  for (int which = 0; which < RLIM_NLIMITS; ++which)
    take_limit(first, static_cast<__rlimit_resource>(which));
}

}  // namespace hpcbatch
