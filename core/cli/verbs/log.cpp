// `log`: what tasks printed, so far or until one ends.
#include "cli/client/engine_client.hpp"
#include "cli/parse/spelled.hpp"
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/follow.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/texts.hpp"
#include "model/index_set.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

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

/// Of a submission with several each task's output when it has ended, until all have.
std::unique_ptr<OutputFollower> follower_of(EngineClient& client, const LogCommand& command,
                                            const Session& session, const std::string& id) {
  const bool is_task = id.find('.') != std::string::npos;
  const json::object whole = is_task ? json::object() : client.get("/v1/arrays/" + id);
  if (is_task || text_at(whole, "indices") == "0")
    return std::make_unique<StreamedTask>(client, session, id, command);
  auto many =
      std::make_unique<ManyFollower>(client, session, ManyFollower::Options{.log = command});
  many->begin(text_at(whole, "client"));
  many->follow_these(id);
  many->take_up_ended();
  return many;
}

int follow(EngineClient& client, const LogCommand& command, const Session& session,
           const std::string& id) {
  const auto follower = follower_of(client, command, session, id);
  const OutputFollower::Why why = follower->follow();
  if (why == OutputFollower::Why::Interrupted) throw InterruptedByUser{};
  if (why == OutputFollower::Why::Ended) return kExitDone;
  const std::string& trouble = follower->trouble();
  throw OutputClosed(trouble.empty() ? "cannot write the output: nobody reads it" : trouble,
                     trouble.empty());
}

void say_none_printed(const LogCommand& command, const std::string& id, const json::object& whole) {
  if (command.json) return;
  bool is_elsewhere = false;
  for (const char* stream : {"stdout", "stderr"}) {
    const std::string file = text_at(whole, stream);
    if (file.empty()) continue;
    is_elsewhere = true;
    say(std::string(stream) + " of the tasks of " + id + " goes to " + show_text(file, 1000));
  }
  if (is_elsewhere || ::isatty(STDERR_FILENO) == 0) return;
  const bool is_some = command.failed_only || !command.failure.empty();
  say("no task of " + id + (is_some ? " that failed so" : "") + " has printed anything");
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

constexpr int kLogPage = 1 << 20;
// A task that goes on printing always has more.  A page may be cut short by a slow link, but one
// as short as this is what was printed just now.
constexpr int kTail = 1 << 16;
constexpr std::uint64_t kFirstTail = 4096;

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

std::string target_of(const AskedOutput& asked, const char* stream) {
  std::string target = "/v1/tasks/" + asked.task + "/log?stream=" + stream;
  if (asked.command.attempt) target += "&attempt=" + std::to_string(*asked.command.attempt);
  return target + "&limit=" + std::to_string(kLogPage);
}

void say_what_is_missing(const AskedOutput& asked, const json::object& piece) {
  if (!flag_at(piece, "truncated") || asked.command.json) return;
  say("not all that task " + asked.task + " wrote was kept: " +
      (flag_at(piece, "lost") ? "it could not be written to the workspace of its site"
                              : "`hpcbatch show " + asked.task + "` says how much is left out"));
}

/// Of a stream that the engine has nothing of, because it goes elsewhere.
void say_where_it_is(const AskedOutput& asked, const json::object& piece, const char* stream) {
  const std::string file = text_at(piece, "file");
  if (file.empty() || asked.command.json) return;
  say(std::string(stream) + " of task " + asked.task +
      (file == "/dev/null" ? " is thrown away, as was asked for"
                           : " goes to " + show_text(file, 1000)));
}

void print_piece(const AskedOutput& asked, json::object piece, const char* stream, Lines& lines) {
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
void print_tail(const AskEngine& ask, const AskedOutput& asked, const char* stream, Lines& lines) {
  for (std::uint64_t bytes = kFirstTail;; bytes *= 8) {
    json::object piece = ask(target_of(asked, stream) + "&tail=" + std::to_string(bytes));
    std::string text = bytes_of(piece);
    const auto begin = begin_of_last(text, *asked.command.tail);
    const bool is_all = number_at(piece, "offset") == 0 || bytes >= kLogPage;
    if (!begin && !is_all) continue;
    text = text.substr(begin.value_or(0));
    if (text.empty()) say_where_it_is(asked, piece, stream);
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

void print_stream(const AskEngine& ask, const AskedOutput& asked, const char* stream) {
  const bool is_error = std::strcmp(stream, "stderr") == 0;
  // Of failures it is mostly what is looked for, by a pager or grep.
  const bool is_of_failures = asked.command.failed_only || !asked.command.failure.empty();
  Lines lines(asked.command.prefix ? asked.task + ": " : std::string(),
              is_error && asked.command.standard_output && !is_of_failures);
  if (asked.command.tail) {
    print_tail(ask, asked, stream, lines);
    return lines.finish();
  }
  std::string offset = "0";
  for (;;) {
    const json::object piece = ask(target_of(asked, stream) + "&offset=" + offset);
    const std::string next = text_at(piece, "next");
    const bool is_empty = next.empty() || next == offset;
    const bool is_last = is_empty || flag_at(piece, "end") ||
                         number_at(piece, "next") - number_at(piece, "offset") < kTail;
    if (!is_empty || (offset == "0" && asked.command.json))
      print_piece(asked, piece, stream, lines);
    if (is_empty && offset == "0") say_where_it_is(asked, piece, stream);
    if (is_last) {
      lines.finish();
      return say_what_is_missing(asked, piece);
    }
    offset = next;
  }
}

}  // namespace

int perform(const LogCommand& command, const Session& session) {
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

void print_task(const AskEngine& ask, const AskedOutput& asked) {
  if (asked.command.standard_output) print_stream(ask, asked, "stdout");
  if (asked.command.standard_error) print_stream(ask, asked, "stderr");
}

}  // namespace hpcbatch
