// One task of a submit, checked key by key.
#pragma once

#include "api/read/json_values.hpp"
#include "api/read/read_needs.hpp"
#include "documents/task_keys.hpp"
#include "hardware/gpu_kind.hpp"
#include "links/recipe.hpp"
#include "model/rare.hpp"
#include "model/site.hpp"
#include "model/task.hpp"

#include <boost/json/value.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// One of several ways to run a task: what of its needs this one says.
struct AskedWay {
  Resources amounts;
  GpuTerms gpu_terms;
};

/// One task of a submit as it was asked for; nothing is looked up yet.
struct TaskRequest {
  NewArray array;
  std::vector<std::string> command;  ///< empty where a tool is named
  std::string tool;
  std::map<std::string, std::string> parameters;
  std::map<std::string, std::vector<std::string>> inputs;  ///< a path may hold `{}`
  std::map<std::string, std::string> outputs;
  std::optional<std::string> directory;
  std::optional<std::map<std::string, std::string>> environment;
  std::map<std::string, std::string> env;
  std::string standard_input, standard_output, standard_error, name, kind;
  ContainerRequest container;
  std::uint64_t output_limit{0};  ///< 0: said nothing
  std::optional<EstimateMode> estimate;
  GpuTerms gpu_terms;
  Rare<std::string> for_pilot;     ///< fields of wire::Start, of keys that the pilot alone acts on
  std::vector<AskedWay> one_of;    ///< the best first; none: there is no choice
  std::vector<std::string> items;  ///< packed where they have columns
  bool items_have_columns{false};
  bool from_zero{false};               ///< `array` is one more than what was asked for
  std::vector<std::uint64_t> follows;  ///< arrays whose items that ended well are left out
  std::vector<std::string> notify;     ///< as `parse_notify_target` takes it
  std::vector<std::string> shared;     ///< folders that must be seen where it runs
  RareOptional<TaskService> service;
  /// The folder where the outputs of a tool stay, for a client that publishes them itself: no key
  /// of a submit.
  std::string outputs_stay_in;
  bool all_cpus{false}, all_memory{false};  ///< of a node
  bool appends{false};                      ///< to the files of its streams
  // What was said at all: the rest comes from the tool.
  bool says_cpus{false}, says_memory{false}, says_disk{false}, says_time{false}, says_gpus{false};
};

/// `what` names the task for the reader of a refusal.  Throws BadRequest that names the key too.
TaskRequest read_task(const boost::json::value& value, const std::string& what);
/// Whether it takes that key: true of all of task_keys().
bool is_read(const TaskKey& key);

/// What of `needs` a retry says anew: `cpus`, `memory`, `disk`, `time`, as a submit does.
NeedsChange read_needs_change(const boost::json::value& value);

}  // namespace hpcbatch
