// From what the engine sent to what can be started: places looked up, inputs checked, directory and
// files made.
#pragma once

#include "failure/failure.hpp"
#include "pilot/policy/verdict.hpp"
#include "posix/files.hpp"
#include "wire/wire.pb.h"

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

/// Why a task is not started, as its result says it.
struct Refusal {
  Failure failure{Failure::EngineError};
  std::string message;
  int exit_code{0};
  std::string missing_file{};  // of an input
};

inline Verdict verdict_of(const Refusal& refusal) {
  return {refusal.failure, refusal.exit_code, 0, refusal.message, refusal.missing_file};
}

/// The attempt's own directory, relative to the pilot's.
std::string attempt_directory(const wire::Attempt& attempt);
/// It has one: it has outputs, names it, or has no other.
bool has_directory(const wire::Start& start);

/// Replaces the token wherever it stands.
void put_directory(wire::Start& start, const std::string& directory);

/// Makes the links that the attempt's directory is to hold, and the folders in which its outputs
/// are left for the engine.
std::optional<Refusal> make_links(const wire::Start& start, const std::string& directory);

/// Regular files that can be opened; a FIFO or a device is not waited for.
std::optional<Refusal> check_inputs(const wire::Start& start);

struct Files {
  Fd input;
  Fd output;  // empty: captured
  Fd error;
};
/// The files named for the standard streams.  `directory` is where relative paths begin.
std::variant<Files, Refusal> open_files(const wire::Start& start, const std::string& directory);

/// The paths under which a program may be found, in order.
std::vector<std::string> candidates(const std::string& program, const char* search);

// The process above the pilot: if the pilot is killed so that it cannot clean up, this one ends all
// that the pilot's tasks have left, so that nothing runs on without a pilot.

/// Runs `pilot` in a child that gets `pilot_signal` when this process dies, hands SIGTERM and
/// SIGINT on to it, and returns what to exit with once the child and all its descendants are gone.
/// In the child it does not return.
int keep(const std::function<int()>& pilot, int pilot_signal);

}  // namespace hpcbatch::pilot
