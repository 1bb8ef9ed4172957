// `log`: what tasks printed, so far or until one ends.
#include "cli/base64.hpp"
#include "cli/exit.hpp"
#include "cli/named.hpp"
#include "cli/session.hpp"
#include "cli/values.hpp"
#include "model/index_set.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::hours kForEver{24 * 365};
constexpr int kLogPage = 1 << 20;
// A task that goes on printing always has more.  A page may be cut short by a slow link, but one
// as short as this is what was printed just now.
constexpr int kTail = 1 << 16;
constexpr std::uint64_t kFirstTail = 4096;
constexpr std::size_t kTasksOnAPage = 100'000;

void write_out(bool is_error, std::string_view bytes) {
  const int error = write_all(is_error ? STDERR_FILENO : STDOUT_FILENO, bytes);
  if (error != 0)
    throw CommandError(kExitUsage, std::string("cannot write the output: ") + std::strerror(error));
}

std::string bytes_of(const json::object& piece) {
  if (!piece.contains("base64")) return text_at(piece, "text");
  const auto bytes = decode_base64(text_at(piece, "base64"));
  if (!bytes) throw CommandError(kExitNoEngine, "the engine sent output that is not base64");
  return *bytes;
}

/// Writes what comes piece by piece, each line behind its task's id where that is wanted.
class Lines {
 public:
  Lines(std::string prefix, bool is_error) : prefix_(std::move(prefix)), is_error_(is_error) {}
  void add(std::string_view bytes) {
    if (prefix_.empty()) return write_out(is_error_, bytes);
    std::string out;
    while (!bytes.empty()) {
      if (begins_) out += prefix_;
      const std::size_t end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
      out += bytes.substr(0, end);
      begins_ = bytes[end - 1] == '\n';
      bytes.remove_prefix(end);
    }
    write_out(is_error_, out);
  }
  /// The next task's output begins on a line of its own.
  void finish() {
    if (!prefix_.empty() && !begins_) write_out(is_error_, "\n");
  }

 private:
  std::string prefix_;
  bool is_error_;
  bool begins_{true};
};

struct Asked {
  const LogCommand& command;
  std::string task;
  bool is_one_of_many{false};
};

std::string target_of(const Asked& asked, const char* stream) {
  std::string target = "/v1/tasks/" + asked.task + "/log?stream=" + stream;
  if (asked.command.attempt) target += "&attempt=" + std::to_string(*asked.command.attempt);
  return target + "&limit=" + std::to_string(kLogPage);
}

void say_what_is_missing(const Asked& asked, const json::object& piece) {
  if (!flag_at(piece, "truncated") || asked.command.json) return;
  const std::string why = flag_at(piece, "lost")
                              ? "it could not be written to the workspace of its site"
                              : "`hpcbatch show " + asked.task + "` says how much is left out";
  std::fprintf(stderr, "hpcbatch: not all that task %s wrote was kept: %s\n", asked.task.c_str(),
               why.c_str());
}

void print_piece(const Asked& asked, json::object piece, const char* stream, Lines& lines) {
  if (!asked.command.json) return lines.add(bytes_of(piece));
  piece["stream"] = stream;
  if (asked.is_one_of_many) piece["id"] = asked.task;
  print_json(piece);
}

/// Of a longer output where its last lines begin; nothing where it has fewer.
std::optional<std::size_t> begin_of_last(const std::string& text, std::uint32_t lines) {
  std::size_t at = text.size();
  if (at > 0 && text.back() == '\n') --at;
  for (; lines > 0; --lines) {
    const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    if (before == std::string::npos) return std::nullopt;
    at = before;
  }
  return at + 1;
}

/// More is read from the end until there are lines enough.
void print_tail(EngineClient& client, const Asked& asked, const char* stream, Lines& lines) {
  for (std::uint64_t bytes = kFirstTail;; bytes *= 8) {
    json::object piece = client.get(target_of(asked, stream) + "&tail=" + std::to_string(bytes));
    std::string text = bytes_of(piece);
    const auto begin = begin_of_last(text, *asked.command.tail);
    const bool is_all = number_at(piece, "offset") == 0 || bytes >= kLogPage;
    if (!begin && !is_all) continue;
    text = text.substr(begin.value_or(0));
    if (!asked.command.json) {
      lines.add(text);
    } else {
      const double cut = number_at(piece, "next") - static_cast<double>(text.size());
      if (piece.contains("text")) piece["text"] = text;
      piece["offset"] =
          static_cast<std::uint64_t>(piece.contains("text") ? cut : number_at(piece, "offset"));
      print_piece(asked, std::move(piece), stream, lines);
    }
    return;
  }
}

void print_stream(EngineClient& client, const Asked& asked, const char* stream) {
  const bool is_error = std::strcmp(stream, "stderr") == 0;
  Lines lines(asked.command.prefix ? asked.task + ": " : std::string(), is_error);
  if (asked.command.tail) {
    print_tail(client, asked, stream, lines);
    return lines.finish();
  }
  std::string offset = "0";
  for (;;) {
    const json::object piece = client.get(target_of(asked, stream) + "&offset=" + offset);
    const std::string next = text_at(piece, "next");
    const bool is_empty = next.empty() || next == offset;
    const bool is_last = is_empty || flag_at(piece, "end") ||
                         number_at(piece, "next") - number_at(piece, "offset") < kTail;
    if (!is_empty || (offset == "0" && asked.command.json))
      print_piece(asked, piece, stream, lines);
    if (is_last) {
      lines.finish();
      return say_what_is_missing(asked, piece);
    }
    offset = next;
  }
}

void print_task(EngineClient& client, const Asked& asked) {
  if (asked.command.standard_output) print_stream(client, asked, "stdout");
  if (asked.command.standard_error) print_stream(client, asked, "stderr");
}

void add_indices(const json::object& task, IndexSet& all) {
  const std::string id = text_at(task, "id");
  const std::size_t dot = id.find('.');
  if (dot == std::string::npos) return;
  if (const auto indices = parse_index_set(id.substr(dot + 1))) all.add(*indices);
}

void add_in_state(EngineClient& client, const std::string& submission, const char* state,
                  IndexSet& all) {
  std::string before;
  for (;;) {
    const json::object answer =
        client.get("/v1/tasks?limit=" + std::to_string(kTasksOnAPage) + "&array=" + submission +
                   "&state=" + state + (before.empty() ? "" : "&before=" + before));
    const json::array* tasks = array_at(answer, "tasks");
    if (tasks == nullptr) return;
    for (const json::value& task : *tasks) {
      if (task.is_object()) add_indices(task.get_object(), all);
    }
    if (tasks->size() < kTasksOnAPage || !tasks->back().is_object()) return;
    before = text_at(tasks->back().get_object(), "id");
  }
}

/// Those of a submission that have begun to run, or failed.
IndexSet begun(EngineClient& client, const LogCommand& command) {
  IndexSet all;
  add_in_state(client, command.id, "failed", all);
  if (command.failed_only) return all;
  for (const char* state : {"done", "cancelled", "running", "finishing", "unknown"})
    add_in_state(client, command.id, state, all);
  return all;
}

/// Nothing: it is one task.
std::optional<IndexSet> many_of(EngineClient& client, const LogCommand& command) {
  const std::size_t dot = command.id.find('.');
  if (dot != std::string::npos) {
    const auto indices = parse_index_set(command.id.substr(dot + 1));
    return indices && indices->size() > 1 ? indices : std::nullopt;
  }
  const json::object whole = client.get("/v1/arrays/" + command.id);
  if (text_at(whole, "indices") == "0") return std::nullopt;
  return begun(client, command);
}

int follow(EngineClient& client, const LogCommand& command) {
  const auto lines = client.http().follow("/v1/tasks/" + command.id + "/log?follow=1");
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
      write_out(is_error, bytes_of(piece));
    }
    if (piece.contains("end")) return kExitDone;
  }
}

}  // namespace

int show_log(const LogCommand& asked, const Session& session) {
  EngineClient client = session.client();
  LogCommand command = asked;
  command.id = resolve_id(client, asked.id);
  if (command.follow) return follow(client, command);
  const auto many = many_of(client, command);
  if (!many) {
    print_task(client, {command, command.id, false});
    return kExitDone;
  }
  const std::string submission = command.id.substr(0, command.id.find('.'));
  // Ranges come from the highest down.
  const auto& ranges = many->ranges();
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    for (std::uint64_t i = range->first; i <= range->last; ++i)
      print_task(client, {command, submission + "." + std::to_string(i), true});
  }
  return kExitDone;
}

}  // namespace hpcbatch
