// Training in a process of its own: it may take all memory, crash or never end, and nobody else does.
#pragma once

#include "hpcbatch/estimator.hpp"
#include "hpcbatch/result.hpp"
#include "plugin_host/plugin_host.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace hpcbatch::estimate {

// What an estimator learns from, as bytes on the way from one process of ours to another on the same
// machine.

struct Lesson {
  std::string config_yaml;  ///< the estimator's
  TrainingTable table;
};

std::string to_bytes(const Lesson& lesson);
/// Throws std::invalid_argument where the bytes are not whole.
Lesson lesson_of(std::string_view bytes);

struct TrainingProcess {
  std::string program;  ///< `hpcbatch-estimate`, or /proc/self/exe where this is it
  std::string estimator;
  std::chrono::seconds longest{900};
};

/// The model's bytes.  Blocks until that process has ended, and kills it where it takes too long: what
/// it was given may be given again.  It runs at the lowest priority and ends with this process.
Result<std::string> train_apart(const TrainingProcess& process, const Lesson& lesson);

/// What that process does: reads a lesson on standard input, writes the model to standard output, or
/// one sentence to standard error.  Returns its exit code.
int train_here(const PluginHost& plugins, const std::string& estimator);

}  // namespace hpcbatch::estimate
