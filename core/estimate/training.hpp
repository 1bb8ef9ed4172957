// Training in a process of its own: it may take all memory, crash or never end, and nobody else does.
#pragma once

#include "foresight/learned/wait_model.hpp"
#include "hpcbatch/estimator.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/result.hpp"
#include "plugin_host/plugin_host.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

// `hpcbatch waits train`: asks the engine for what a site's accounting keeps, learns from it, and
// leaves a model where the engine takes it from.

/// What is being done, how much of it, of how much.
using LearnProgress = std::function<void(const std::string&, std::size_t, std::size_t)>;

/// `asked`: {"site", "days", "estimator", "json"}.  Returns the exit code; throws CommandError,
/// InterruptedByUser, and std::exception where `asked` is no such thing.
int learn_waits(const PluginHost& plugins, const boost::json::value& asked,
                const LearnProgress& progress);

// From what a site's accounting keeps to a model of how long its batch jobs wait, or why there is
// none.

/// An estimator, as far as it is needed.
struct Teacher {
  std::string name, config_yaml;
  /// The model's bytes; may take minutes.
  std::function<Result<std::string>(const TrainingTable&)> train;
  std::function<Result<std::unique_ptr<EstimatorModel>>(const std::string&)> load;
};

/// Learned from the older four fifths, the model is judged on the newest; only one that is better
/// there than medians of the like is made, then from all.  Rejected with one sentence otherwise.
/// Jobs that came before `since` only wait or run beside the others.
Result<foresight::WaitModelFile> learn_site(const std::vector<PastJob>& jobs,
                                            foresight::Seconds since, foresight::Seconds now,
                                            const Teacher& teacher);

}  // namespace hpcbatch::estimate
