// `run`: one task whose output, input and end are those of this process.
#include "cli/client/engine_start.hpp"
#include "cli/client/named.hpp"
#include "cli/client/submit_safely.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "cli/verbs/input_forwarder.hpp"
#include "cli/verbs/run_many.hpp"
#include "cli/verbs/streamed_task.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/array.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include <signal.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

void say(const std::string& text) {
  std::fputs((lines_for(STDERR_FILENO, "hpcbatch: " + text, 2) + "\n").c_str(), stderr);
}

/// How a process of the task's end ends itself.
int exit_code_for(const json::object& task) {
  const std::string state = text_at(task, "state");
  const int signal = static_cast<int>(number_at(task, "signal"));
  const int code = static_cast<int>(number_at(task, "exit_code"));
  if (state == "done") return code;
  if (signal > 0) return 128 + signal;
  if (code != 0) return code;
  if (state == "cancelled") return 128 + SIGTERM;
  // The command itself went well, or it never ran.
  return task.contains("exit_code") ? kExitTaskFailed : kExitOwnFailure;
}

void report(const std::string& id, const json::object& task) {
  const std::string failure = text_at(task, "failure");
  const std::string message = text_at(task, "message");
  // A command that ended with an exit code of its own has said itself why.
  const bool has_ended =
      failure == "tool_failed" && (message.empty() || message.starts_with("exit "));
  if (text_at(task, "state") == "done" || has_ended) return;
  say("task " + id + " ended: " + failure + (message.empty() ? "" : ": " + message));
}

struct Submitted {
  std::string id;
  OwnInput::Kind input{OwnInput::Kind::None};
};

Submitted submit(EngineClient& client, const RunCommand& command, const Session& session) {
  const Surroundings around = look_around();
  tell_missing_folders(command.work, around.directory);
  json::object task = task_of(command.work, around.directory);
  OwnInput input;
  if (command.work.standard_input.empty()) input = look_at_input(STDIN_FILENO);
  // What is handed on as it comes must be whole: whoever reads it sees no mark in it.
  if (command.work.output_limit.empty()) task["output_limit"] = "none";
  if (input.kind == OwnInput::Kind::File) task["stdin"] = input.path;
  if (input.kind == OwnInput::Kind::Stream) task["stream_input"] = true;
  json::array tasks{std::move(task)};
  resolve_waits(client, tasks, [&] {
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  });
  const json::object request = submission_of(std::move(tasks), around, client_name(), random_key());
  try {
    return {submit_safely(client, session, request).front(), input.kind};
  } catch (const InterruptedByUser&) {
    // The task may have been accepted: its key tells which one it is, and it is cancelled.
    withdraw(session.places, request);
    throw;
  }
}

}  // namespace

int run_task(const RunCommand& command, const Session& session) {
  refuse_repeated(command.work, kExitOwnFailure);
  if (is_many(command.many)) return run_many(command, session);
  // Whoever reads our output may go away first; that is an answer of write() here and not our
  // death.
  ::signal(SIGPIPE, SIG_IGN);
  EngineClient client = session.client();
  const Submitted submitted = submit(client, command, session);
  StreamedTask task(client, session, submitted.id);
  std::optional<InputForwarder> input;
  if (submitted.input == OwnInput::Kind::Stream)
    input.emplace(session.places, submitted.id, STDIN_FILENO);

  const StreamedTask::End end = task.stream();
  switch (end.why) {
    case StreamedTask::Why::Ended:
      break;
    case StreamedTask::Why::OutputClosed:
      if (end.error == EPIPE) return kExitOutputClosed;
      throw CommandError(kExitOwnFailure, std::string("cannot write the output: ") +
                                              std::strerror(end.error) + "; task " + submitted.id +
                                              (end.is_cancelled ? " is ended" : " goes on"));
    case StreamedTask::Why::Interrupted:
      if (end.task) {
        say("cancelled by user");
      } else if (end.is_cancelled) {
        say("cancelled by user; task " + submitted.id + " is still ending");
      } else {
        say("the engine could not be told: task " + submitted.id + " goes on");
      }
      return 128 + end.signal;
  }
  report(submitted.id, *end.task);
  return exit_code_for(*end.task);
}

}  // namespace hpcbatch
