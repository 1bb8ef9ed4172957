// `log`: what tasks printed, so far or until one ends.
#include "cli/client/engine_start.hpp"
#include "cli/client/named.hpp"
#include "cli/parse/spelled.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/many_follower.hpp"
#include "cli/verbs/task_output.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/text_check.hpp"
#include "model/index_set.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <cstdio>
#include <optional>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::hours kForEver{24 * 365};

/// Those of a submission whose output is asked for, less those that have ended without any: what
/// each has printed is asked for one by one.
IndexSet with_output(EngineClient& client, const LogCommand& command, const std::string& id) {
  const auto ask = [&client](const std::string& target) { return client.get(target); };
  if (command.attempt) {
    IndexSet begun;
    for (const char* state : {"running", "finishing", "unknown", "done", "failed", "cancelled"})
      begun.add(indices_where(ask, id, std::string("state=") + state));
    return begun;
  }
  std::string question = "printed=1";
  if (command.failed_only) question += "&state=failed";
  if (!command.failure.empty()) question += "&failure=" + command.failure;
  return indices_where(ask, id, question);
}

/// Nothing: it is one task, however it stands.
std::optional<IndexSet> many_of(EngineClient& client, const LogCommand& command,
                                const std::string& id) {
  const std::size_t dot = id.find('.');
  const std::string submission = id.substr(0, dot);
  if (dot == std::string::npos && text_at(client.get("/v1/arrays/" + id), "indices") == "0")
    return std::nullopt;
  const auto named = dot == std::string::npos ? std::nullopt : parse_index_set(id.substr(dot + 1));
  const bool is_one = named && named->size() == 1;
  if (is_one && !command.failed_only && command.failure.empty()) return std::nullopt;
  const IndexSet all = with_output(client, command, submission);
  if (!named) return all;
  // Of an unknown one the engine says so.
  IndexSet unknown = *named;
  unknown.remove(parse_index_set(text_at(client.get("/v1/arrays/" + submission), "indices"))
                     .value_or(IndexSet{}));
  if (!unknown.empty())
    throw CommandError(kExitUsage, "there is no task " + submission + "." + to_string(unknown));
  return all.intersection(*named);
}

int follow_one(EngineClient& client, const LogCommand& command, const std::string& id) {
  const auto lines = client.http().follow("/v1/tasks/" + id + "/log?follow=1");
  for (;;) {
    const LineStream::Next next = lines->next(kForEver);
    if (next.kind == LineStream::Next::Kind::Idle) continue;
    if (next.kind == LineStream::Next::Kind::End) {
      throw CommandError(kExitNoEngine,
                         "the engine ended the stream before the task ended; this happens when its "
                         "output is read much slower than it comes");
    }
    if (next.kind == LineStream::Next::Kind::Failed) {
      object_of(next.failure);
      return kExitDone;
    }
    boost::system::error_code error;
    const json::value value = json::parse(next.line, error);
    if (error || !value.is_object())
      throw CommandError(kExitNoEngine, "the engine sent a line of output that is not JSON");
    const json::object& piece = value.get_object();
    const bool is_error = text_at(piece, "stream") == "stderr";
    const bool is_wanted =
        !piece.contains("stream") || (is_error ? command.standard_error : command.standard_output);
    if (command.json && is_wanted) {
      print(next.line + "\n");
      std::fflush(stdout);
    } else if (!command.json && is_wanted && piece.contains("stream")) {
      write_out(is_error && command.standard_output, bytes_of(piece));
    }
    if (piece.contains("end")) return kExitDone;
  }
}

/// Of a submission each task's output when it has ended, until all have.
int follow_many(EngineClient& client, const LogCommand& command, const Session& session,
                const json::object& whole) {
  ManyFollower follower(client, session, {.log = command});
  follower.begin(text_at(whole, "client"));
  follower.follow_these(text_at(whole, "id"));
  follower.take_up_ended();
  switch (follower.follow()) {
    case ManyFollower::Why::Ended:
      return kExitDone;
    case ManyFollower::Why::Interrupted:
      throw InterruptedByUser{};
    case ManyFollower::Why::OutputClosed:
      break;
  }
  throw OutputClosed(
      follower.trouble().empty() ? "cannot write the output: nobody reads it" : follower.trouble(),
      follower.trouble().empty());
}

int follow(EngineClient& client, const LogCommand& command, const Session& session,
           const std::string& id) {
  if (id.find('.') != std::string::npos) return follow_one(client, command, id);
  const json::object whole = client.get("/v1/arrays/" + id);
  if (text_at(whole, "indices") == "0") return follow_one(client, command, id);
  return follow_many(client, command, session, whole);
}

void say_none_printed(const LogCommand& command, const std::string& id, const json::object& whole) {
  if (command.json) return;
  bool is_elsewhere = false;
  for (const char* stream : {"stdout", "stderr"}) {
    const std::string file = text_at(whole, stream);
    if (file.empty()) continue;
    is_elsewhere = true;
    std::fprintf(stderr, "hpcbatch: %s of the tasks of %s goes to %s\n", stream, id.c_str(),
                 show_text(file, 1000).c_str());
  }
  if (is_elsewhere || ::isatty(STDERR_FILENO) == 0) return;
  const bool is_some = command.failed_only || !command.failure.empty();
  std::fprintf(stderr, "hpcbatch: no task of %s %shas printed anything\n", id.c_str(),
               is_some ? "that failed so " : "");
}

void print_log(EngineClient& client, const LogCommand& command, const std::string& id,
               bool is_one_of_many) {
  const auto many = many_of(client, command, id);
  const auto ask = [&client](const std::string& target) { return client.get(target); };
  if (!many) return print_task(ask, {command, id, is_one_of_many});
  const std::string submission = id.substr(0, id.find('.'));
  if (many->empty()) return say_none_printed(command, id, client.get("/v1/arrays/" + submission));
  // Ranges come from the highest down.
  const auto& ranges = many->ranges();
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    for (std::uint64_t i = range->first; i <= range->last; ++i)
      print_task(ask, {command, submission + "." + std::to_string(i), true});
  }
}

}  // namespace

int show_log(const LogCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  const std::vector<std::string> ids = resolve_ids(client, command.ids, command.name);
  if (command.follow && ids.size() > 1) {
    throw CommandError(kExitUsage, "log --follow follows one submission, and these are " +
                                       std::to_string(ids.size()) + "; `hpcbatch wait " +
                                       shortest_words(ids) + "` waits for all");
  }
  if (command.follow) return follow(client, command, session, ids.front());
  for (const std::string& id : ids) print_log(client, command, id, ids.size() > 1);
  return kExitDone;
}

}  // namespace hpcbatch
