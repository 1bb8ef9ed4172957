// One task of a submit, checked key by key.
#pragma once

#include "api/read/json_values.hpp"
#include "documents/task_keys.hpp"
#include "hardware/gpu_kind.hpp"
#include "links/recipe.hpp"
#include "model/needs.hpp"
#include "model/rare.hpp"
#include "model/resources.hpp"
#include "model/site.hpp"
#include "model/task.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

// What a task needs beside amounts: GPUs, an image to run in, a service that it shares with
// others.

// The image that a task runs in, and how.

struct ContainerRequest {
  std::string image;
  ContainerTerms terms;
};

/// A text, the image alone, or an object.  Throws BadRequest.
ContainerRequest read_container(const boost::json::value& value, const std::string& what);

// What a task asks of GPUs: a number, words as the command line has them, kinds, or terms.

/// Throws BadRequest that names what `where` does.
void read_gpus_into(Resources& amounts, GpuTerms& terms, const boost::json::value& value,
                    const std::string& where);

/// What each of them must have.  They throw the same.
std::uint64_t gpu_memory_of(const boost::json::value& value, const std::string& where);
unsigned gpu_capability_of(const boost::json::value& value, const std::string& where);

// What a client says of a service that its tasks share.

/// `what` names the key for the reader of a refusal.  Throws BadRequest.
TaskService read_service(const boost::json::value& value, const std::string& what);

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
  std::uint32_t ntasks{0},
      ntasks_per_node{0};                   ///< processes on all nodes, and on each; 0: not said
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

// The items of an array: texts, rows of columns, or objects with fields.

/// Names for columns that have none of their own.  Throws BadRequest.
std::vector<std::string> read_columns(const boost::json::value& value, const std::string& where);
/// `whole_texts`: what stands for each as a whole, or none.  Throws BadRequest.
void read_items_into(TaskRequest& task, const boost::json::value& value,
                     const std::vector<std::string>& columns,
                     const std::vector<std::string>& whole_texts, const std::string& where);

/// One of the task's items, from 1.
Item item_at(const TaskRequest& task, std::size_t index);
/// One that has the columns that all have; without items it has none.
Item example_item(const TaskRequest& task);
/// Throws BadRequest where an item would be put into the text that a shell runs: a file that is
/// called `$(rm x)` would be.  The item says which columns there are; `what` names the task.
void check_no_shell_reads_items(const std::vector<std::string>& command, const Item& item,
                                const std::string& what);

// What a task waits for, and when it may run.

// Each throws BadRequest, which begins with `what` or `where`.

/// Of a list of ids, of Start with a time behind each: `12+10m`.
void add_dependencies(const boost::json::value& value, const std::string& what,
                      Dependency::Kind kind, NewArray& array);
/// Seconds since 1970.
Time moment_of(const boost::json::value& value, const std::string& where);
/// In hundredths.
std::uint32_t factor_of(const boost::json::value& value, const std::string& where);
/// The name that a singleton waits by.
const std::string& singleton_of(const std::string& name, const std::string& what);
/// What does not go together.
void check_course(const NewArray& array, const std::string& what);
/// What is started on how many nodes; each process has a cpu where nothing else is said.  Throws
/// BadRequest.
void check_nodes(TaskRequest& task, const std::string& what);

// What of a task the pilot alone acts on.

/// Adds the value to the bytes of a `Start` under the key's field there.  Throws BadRequest, which
/// begins with `where`.
void put_for_pilot(const TaskKey& key, const boost::json::value& value, const std::string& where,
                   std::string& message);

// The paths and names in a submission: files that tasks name, what only one task may write, what
// stands in braces.

// The files that a task names: where they may be, and for a command under which names they lie in
// its own directory.

/// Throws BadRequest, which begins with `what`.
void check_named_files(const TaskRequest& task, const std::string& what);

// Which paths of a submission are one task's own: nothing is written by several tasks.

struct SubmitRequest;

/// Whether its tasks have indices.
bool is_array(const TaskRequest& task);
/// Throws BadRequest, which begins with `what`, where several of its tasks would write one file.
void check_own_paths(const TaskRequest& task, const std::string& what);
/// The same for what is handed in together.
void check_written_once(const SubmitRequest& request);
/// That an array whose tasks are numbered is submitted alone: its ids are a run.
void check_numbered(const SubmitRequest& request);

// Whether what stands in braces in a task's texts is something that the task has.

/// Throws BadRequest where a column is asked for that an item does not have, or where something looks
/// like a place and would stay as it is; `what` names the task.  Of a task alone only the files of its
/// streams have places.  The program of an interpreter that is no shell (`awk '{print}'`) has braces
/// of its own.
void check_places(const TaskRequest& task, const std::string& what);

/// Of a task alone, into whose names nothing is put but into those of its streams' files: the names as
/// they stand, each doubled brace one.
void fill_nothing(TaskRequest& task);

}  // namespace hpcbatch
