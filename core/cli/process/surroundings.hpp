// The caller's directory and environment, as they are handed on to tasks.
#pragma once

#include "documents/state_paths.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// A task of ours in which this process runs, as its pilot named them.
struct OwnTask {
  std::string task;
  std::string pilot;
};

struct Surroundings {
  std::string directory;  ///< absolute
  EnvironmentMap environment;
  std::uint32_t umask{022};
  std::optional<OwnTask> within{};
};

/// This process's environment, all of it.
EnvironmentMap own_environment();

/// What a task is given of `environment`: not what the shell keeps for itself, nor what a task or
/// batch job in which the caller runs was given (TMPDIR, HPCBATCH_TASK_ID, SLURM_JOB_ID and the
/// like).
EnvironmentMap handed_on(const EnvironmentMap& environment);
/// What tasks get of whom nothing is known: HOME, PATH, USER, LANG and the like.
bool is_of_any_program(std::string_view name);

std::optional<OwnTask> own_task(const EnvironmentMap& environment);

std::uint32_t own_umask();

/// Throws CommandError where the current directory is gone.
Surroundings look_around();

/// `shell:NAME`: the client as which this user's commands submit, by his uid: a key that is given
/// again by cron, where USER is not set, is the same.
std::string client_name();

// Base64 back to bytes: how the engine sends output that need not be text.

/// No value where the text is not base64 with padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace hpcbatch
