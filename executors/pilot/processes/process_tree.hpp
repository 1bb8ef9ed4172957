// Which processes descend from which, as /proc tells it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

struct ProcessFacts {
  pid_t parent{};
  pid_t group{};
  bool is_zombie{};
  std::uint64_t started{};   // in ticks since the boot: with the number it names a process for good
  std::uint64_t resident{};  // bytes; what it shares with others is counted for each
  std::chrono::microseconds cpu{};  // of it, and of those below it that have ended
};

std::optional<ProcessFacts> facts_of(pid_t pid);

/// Its threads' numbers, its own among them.
std::vector<pid_t> threads_of(pid_t pid);

/// Living and dead children of all threads of a process.
std::vector<pid_t> children_of(pid_t pid);

/// The given processes and everything below them, parents first.
std::vector<pid_t> with_descendants(const std::vector<pid_t>& roots);

/// Its short name, which it may have set itself; empty where there is no such process.
std::string name_of(pid_t pid);

/// What a variable was when the process started; empty where it had none or may not be looked at.
std::string variable_of(pid_t pid, const std::string& name);

/// Resident bytes with each shared page counted in parts, which is exact and dear; 0 where the
/// kernel does not tell.
std::uint64_t proportional_memory(pid_t pid);

}  // namespace hpcbatch::pilot
