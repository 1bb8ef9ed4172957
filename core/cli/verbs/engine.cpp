// `engine start`, `stop`, `reload`, `status`: what is said to the engine itself.
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/process/slow_note.hpp"
#include "cli/show/describe.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/state_paths.hpp"
#include "posix/fd.hpp"

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

int start_engine(const EngineStartCommand& command, const Session& session) {
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
  if (command.json) {
    print_json(engine);
  } else {
    print(std::string(is_new ? "the engine runs" : "the engine runs already") + ": process " +
          text_at(engine, "pid") + ", socket " + one_line(text_at(engine, "socket")) + "\n");
  }
  return kExitDone;
}

int stop_engine(const EngineStopCommand& command, const Session& session) {
  const bool is_now = command.mode == EngineStopCommand::Mode::Now;
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
  for (int more = 0; !end_engine(client, session, command.mode); ++more) {
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
int reload_engine(const EngineReloadCommand& command, const Session& session) {
  EngineClient client = session.client();
  const Answer connected = connect_to_running(client, session.places, session.interrupt);
  if (command.or_start && connected.outcome == Exchange::NoEngine &&
      !engine_elsewhere(session.places.home))
    return start_engine({.config = std::nullopt, .until_idle = false, .json = command.json},
                        session);
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
  if (command.json) {
    print_json(engine);
  } else {
    const std::string used = text_at(engine, "config");
    print("the engine runs with " +
          (used.empty() ? std::string("no configuration") : one_line(used)) + ": process " +
          text_at(engine, "pid") + "\n");
  }
  return kExitDone;
}

int show_engine(const EngineStatusCommand& command, const Session& session) {
  EngineClient client = session.client();
  connect_to_running(client, session.places, session.interrupt);
  json::object engine = client.get("/v1/engine");
  if (command.json) {
    print_json(engine);
    return kExitDone;
  }
  leave_out_zeros(engine, "rejected_peers");
  print(describe(engine, columns_of_output()));
  return kExitDone;
}

}  // namespace hpcbatch
