// What a task's end means: facts in, one of the closed list of failures out.
#pragma once

#include "failure/failure.hpp"
#include "pilot/policy/attempt.hpp"
#include "pilot/policy/container.hpp"
#include "wire/wire.pb.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hpcbatch::pilot {

struct EndFacts {
  int status{0};                       // as wait reports it
  std::optional<Failure> stopped_for;  // why we ended it; none: it ended by itself
  std::string stop_message;
  std::uint64_t memory_kills{0};  // processes of it that the kernel killed for their memory
  std::uint64_t memory_limit{0};  // bytes; 0: none
  std::uint64_t peak_memory{0};
  std::optional<ContainerEnd> container;  // none: it ran in none
  std::string program{};                  // as its argv names it
  bool disk_is_full{false};               // of its working directory, when it ended
};

struct Verdict {
  Failure failure{Failure::EngineError};
  int exit_code{0};
  int signal{0};
  std::string message;
  std::string missing_file{};  // of an input
};

Verdict verdict_of(const EndFacts& facts);

/// Of a task whose program could not be started.
Verdict verdict_of(const Spawned& spawned, const std::string& program, const std::string& directory,
                   const std::string& search);

/// Some of what it printed is not to be had.
void set_log_lost(wire::Result& result);

/// A task that succeeded has not where its output is lost; any other's failure stays what it is.
void set_output_lost(wire::Result& result);

/// 1.5 GiB
std::string in_words(std::uint64_t bytes);
/// "it was ended by SIGKILL", "it ended with exit code 3"; of a status as wait(2) gives it.
std::string how_it_ended(int status);

}  // namespace hpcbatch::pilot
