// What a drop box asks of the engine.
#pragma once

#include "model/ids.hpp"
#include "model/task.hpp"
#include "tools/prepare.hpp"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch {

/// The task that a job file became.
struct DropboxTask {
  std::string key;     ///< the same after a restart; together with `client` the key of the submit
  std::string client;  ///< `dropbox:DIRECTORY`
  std::string name;    ///< to show
  std::string directory;  ///< the job's own folder: the task's working directory
  /// For a job of a template the command; for one of a tool the call, to be prepared so that the
  /// outputs are written to `output_directory`.
  std::variant<std::vector<std::string>, ToolCall> work;
  std::string output_directory;
};

/// How the task of a key ended.
struct DropboxTaskEnd {
  std::string key;
  /// No value: the engine refused it (it never was a task); `message` says why.
  std::optional<Failure> failure;
  int exit_code{-1};  ///< -1: it never ran
  std::string message;
  std::string standard_output;  ///< any bytes; at least the head and the tail of long ones
  std::string standard_error;
  std::optional<Time> start;
  std::optional<Time> end;
  struct Output {
    std::string file;  ///< its name in `output_directory`
    bool optional{false};
  };
  std::map<std::string, Output> outputs;  ///< of a tool, by their names
};

/// Implemented over the engine.  Both calls come on the drop box's own threads and must not wait for
/// the engine; the answers go to `Dropbox::task_ended`, on any thread.
class SubmitPort {
 public:
  SubmitPort() = default;
  SubmitPort(const SubmitPort&) = delete;
  SubmitPort& operator=(const SubmitPort&) = delete;
  virtual ~SubmitPort() = default;

  /// Queues the task.  Where its key is known already, nothing is queued and nothing compared: the
  /// task of that key is followed.  Answered by one `task_ended` for the key, at once where the
  /// task has ended before.
  virtual void submit(DropboxTask task) = 0;
  /// Cancels the task of a key; its end is still told (once).
  virtual void cancel(const std::string& key) = 0;
};

}  // namespace hpcbatch
