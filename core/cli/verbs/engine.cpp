// `engine`, `backup`, `keep`, `dropbox`: what is said to the engine itself.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/state_paths.hpp"
#include "documents/texts.hpp"
#include "posix/files.hpp"

#include <fmt/format.h>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hpcbatch {

// `engine start`, `stop`, `reload`, `status`: what is said to the engine itself.

namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds kShowEvery{1000};
constexpr int kTriesWithEnding = 3;

const char* word_of(EngineStopCommand::Mode mode) {
  using Mode = EngineStopCommand::Mode;
  switch (mode) {
    case Mode::Leave:
      return "leave";
    case Mode::Drain:
      return "drain";
    case Mode::Now:
      return "now";
  }
  return "";
}

/// Returns when the process has ended.
void wait_for_end(const Fd& process, const Session& session, StatusLine& status,
                  const std::string& what) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    pollfd waits[] = {{process.get(), POLLIN, 0}, {session.interrupt.descriptor(), POLLIN, 0}};
    const int count = ::poll(waits, 2, static_cast<int>(kShowEvery.count()));
    if (count > 0 && waits[0].revents != 0) return;
    if (count > 0) throw InterruptedByUser{};
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin)
            .count();
    status.show(what + ", " + std::to_string(seconds) + "s");
  }
}

/// Of counts that are nearly always all zero.
void leave_out_zeros(json::object& object, std::string_view key) {
  json::value* counts = object.if_contains(key);
  if (counts == nullptr || !counts->is_object()) return;
  json::object some;
  for (const auto& [name, count] : counts->get_object()) {
    if (count.is_number() && count.to_number<double>() != 0) some[name] = count;
  }
  if (some.empty())
    object.erase(key);
  else
    *counts = std::move(some);
}

/// Somebody else may have told it to leave, after it was told to wait for what runs.
bool has_left_work(const std::string& home) {
  std::ifstream file(ended_file(home));
  std::string word;
  return std::getline(file, word) && word == kEndedLeaving;
}

/// Returns when it has ended.  False: not as it was asked to, because it was ending already and
/// left what runs.
bool end_engine(EngineClient& client, const Session& session, EngineStopCommand::Mode mode) {
  const pid_t engine = client.http().peer();
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, engine, 0)));
  const Answer answer = client.http().request("POST", "/v1/engine/stop",
                                              json::serialize(json::value{{"mode", word_of(mode)}}),
                                              EngineClient::kAnswerTime);
  const bool is_done = answer.outcome == Exchange::Lost
                           ? mode == EngineStopCommand::Mode::Leave
                           : !flag_at(client.object_of(answer), "too_late");
  client.http().disconnect();
  if (!process) return is_done;  // it has ended already
  const bool drains = mode == EngineStopCommand::Mode::Drain;
  StatusLine status;
  std::optional<SlowNote> note;
  if (!status.is_visible())
    note.emplace("the end of the engine (process " + std::to_string(engine) + ")" +
                 (drains ? ", which waits for what runs" : ""));
  wait_for_end(process, session, status,
               drains ? "the engine waits for what runs" : "the engine ends");
  return is_done && (mode == EngineStopCommand::Mode::Leave || !has_left_work(session.places.home));
}

/// What an engine left behind as it was stopped may run on at its pilots: a new one ends it.
/// False: there was never any.
bool start_to_end_what_is_left(EngineClient& client, const Session& session) {
  if (::access((session.places.home + "/store.db").c_str(), F_OK) != 0) return false;
  connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  return true;
}

}  // namespace

int perform(const EngineStartCommand& command, const Session& session) {
  EngineClient client = session.client();
  const auto connect = [&] {
    return connect_or_start(client, session.places, session.interrupt,
                            command.until_idle ? Lifetime::UntilIdle : Lifetime::UntilStopped,
                            command.config);
  };
  const auto ask = [&] {
    return client.http().request("GET", "/v1/engine", {}, EngineClient::kAnswerTime);
  };
  bool is_new = connect();
  Answer answer = ask();
  // An engine that is just ending, or was killed, can still take a connection.
  for (int more = 0; more < kTriesWithEnding && answer.outcome == Exchange::Lost; ++more) {
    client.http().disconnect();
    is_new = connect();
    answer = ask();
  }
  const json::object engine = object_of(answer);
  if (!is_new) {
    const std::string used = text_at(engine, "config");
    if (command.config && *command.config != used) {
      throw CommandError(kExitUsage,
                         "an engine runs already, with " +
                             (used.empty() ? "no configuration" : "the configuration " + used) +
                             "; end it first with `hpcbatch engine stop`");
    }
    // It may be one that a task has started, which ends when it has nothing to do.
    if (!command.until_idle) client.post("/v1/engine/stay", {});
  }
  return show_answer(command.json, engine,
                     std::string(is_new ? "the engine runs" : "the engine runs already") +
                         ": process " + text_at(engine, "pid") + ", socket " +
                         one_line(text_at(engine, "socket")) + "\n");
}

int perform(const EngineStopCommand& command, const Session& session) {
  const bool is_now = command.mode() == EngineStopCommand::Mode::Now;
  EngineClient client = session.client();
  const Answer connected = connect_to_running(client, session.places, session.interrupt);
  if (connected.outcome == Exchange::NoEngine) {
    if (const auto text = engine_not_heard(session.places))
      throw CommandError(kExitNoEngine, *text);
    if (!is_now || !start_to_end_what_is_left(client, session)) {
      print("no engine runs\n");
      return kExitDone;
    }
  } else if (connected.outcome != Exchange::Answered) {
    object_of(connected);
  }
  for (int more = 0; !end_engine(client, session, command.mode()); ++more) {
    if (!is_now || more == kTriesWithEnding) {
      throw CommandError(kExitNoEngine,
                         std::string("the engine was ending already, and what it ran runs on: ") +
                             (is_now ? "try again" : "'hpcbatch engine stop --now' ends that"));
    }
    start_to_end_what_is_left(client, session);
  }
  return kExitDone;
}

/// A new engine finds all that the old one had, and clients that wait outlast the change.
int perform(const EngineReloadCommand& command, const Session& session) {
  EngineClient client = session.client();
  const Answer connected = connect_to_running(client, session.places, session.interrupt);
  if (command.or_start && connected.outcome == Exchange::NoEngine &&
      !engine_elsewhere(session.places.home))
    return perform(EngineStartCommand{.config = {}, .json = command.json}, session);
  const json::object before = client.get("/v1/engine");
  const std::string file = text_at(before, "config");
  const std::optional<std::string> config =
      file.empty() ? std::nullopt : std::optional<std::string>(file);
  check_configuration(config);
  const Lifetime lifetime =
      flag_at(before, "ends_when_idle") ? Lifetime::UntilIdle : Lifetime::UntilStopped;
  end_engine(client, session, EngineStopCommand::Mode::Leave);
  connect_or_start(client, session.places, session.interrupt, lifetime, config);
  const json::object engine = client.get("/v1/engine");
  const std::string used = text_at(engine, "config");
  return show_answer(command.json, engine,
                     "the engine runs with " +
                         (used.empty() ? "no configuration" : one_line(used)) + ": process " +
                         text_at(engine, "pid") + "\n");
}

int perform(const EngineStatusCommand& command, const Session& session) {
  EngineClient client = session.client();
  connect_to_running(client, session.places, session.interrupt);
  json::object engine = client.get("/v1/engine");
  if (!command.json) leave_out_zeros(engine, "rejected_peers");
  return show_answer(command.json, engine, describe(engine, columns_of_output()));
}

// `backup`: a copy of the store, made by the engine that uses it.

namespace {

// A large store on a slow disk takes its time, and the engine works on meanwhile.
constexpr std::chrono::hours kLongestCopy{24};

}  // namespace

int perform(const BackupCommand& command, const Session& session) {
  EngineClient client = session.client();
  const boost::json::object answer =
      client.post("/v1/engine/backup", {{"file", command.file}}, kLongestCopy);
  return show_answer(command.json, answer,
                     "the store was copied to " + one_line(command.file) + "\n");
}

// `keep`: pilots that are there until a time, whatever there is for them to do.

namespace {

/// With a line for each shape of which no more pilots are asked for at present.
std::string keeps_text(const json::object& answer, std::optional<std::size_t> room) {
  const Objects keeps = objects_at(answer, "keeps");
  if (keeps.empty()) return "no pilots are kept; 'hpcbatch keep SHAPE --until 18:00'\n";
  using Side = Table::Side;
  std::string text = list_table({{"site", "SITE"},
                                 {"shape", "SHAPE"},
                                 {"allocations", "KEPT", Side::Right},
                                 {"running", "RUNNING", Side::Right},
                                 {"queued", "QUEUED", Side::Right},
                                 {"until", "UNTIL"},
                                 {"missing", "MISSING", Side::Right, duration_at},
                                 {"beyond", "BEYOND", Side::Right, duration_at}},
                                keeps)
                         .text(room);
  for (const json::object& keep : keeps) {
    if (!keep.contains("paused_until")) continue;
    text += fmt::format(
        "{0}/{1} asks for no pilots until {2}: {3}; 'hpcbatch sites resume {0}' ends "
        "the pause\n",
        text_at(keep, "site"), text_at(keep, "shape"), soon_at(keep, "paused_until"),
        one_line(text_at(keep, "message")));
  }
  return text;
}

}  // namespace

int perform(const KeepCommand& command, const Session& session) {
  EngineClient client = session.client();
  json::object answer;
  if (command.shape.empty()) {
    find_engine(client, session.places, session.interrupt);
    answer = client.get("/v1/keeps");
  } else {
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
    json::object body{{"shape", command.shape},
                      {"allocations", command.end ? 0 : command.allocations}};
    if (!command.site.empty()) body["site"] = command.site;
    if (!command.end) body["until"] = command.until;
    answer = client.post("/v1/keeps", body);
  }
  return show_answer(command.json, answer, keeps_text(answer, columns_of_output()));
}

// `dropbox`: the folders that the engine watches.

namespace {

std::string line_of_dropbox(const json::object& box) {
  const std::string message = text_at(box, "message");
  return one_line(text_at(box, "directory")) +
         (message.empty() ? "" : "  (not watched: " + one_line(message) + ")") + "\n";
}

}  // namespace

int perform(const DropboxCommand& command, const Session& session) {
  EngineClient client = session.client();
  if (command.directory.empty()) {
    const json::object answer = client.get("/v1/dropboxes");
    for (const json::object& box : objects_at(answer, "dropboxes"))
      show_answer(command.json, box, line_of_dropbox(box));
    return kExitDone;
  }
  json::object request{{"directory", command.directory}};
  const std::string watches = "the engine watches " + one_line(command.directory);
  if (command.remove)
    return show_answer(command.json, client.post("/v1/dropboxes/remove", request),
                       watches + " no more\n");
  request["allow"] = json::array(command.allow.begin(), command.allow.end());
  request["templates"] = json::array(command.templates.begin(), command.templates.end());
  json::object& variables = request["variables"].emplace_object();
  for (const auto& [name, value] : command.variables) variables[name] = value;

  connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  return show_answer(command.json, client.post("/v1/dropboxes", request), watches + "\n");
}

}  // namespace hpcbatch
