// `wait`: until tasks have ended, with progress on a terminal.
#include "cli/client/engine_client.hpp"

#include "cli/parse/spelled.hpp"
#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

/// How long the engine is asked to think about one question: hardly at first, so that what is not
/// over at once is told of at once, and short where somebody watches.
constexpr std::chrono::milliseconds kAtFirst{100};
constexpr std::chrono::seconds kWatched{1};
constexpr std::chrono::seconds kUnwatched{30};
constexpr std::chrono::seconds kAnswerMargin{30};

std::chrono::milliseconds left_of(const WaitCommand& command, Clock::time_point begin) {
  const std::chrono::duration<double> all(*command.timeout);
  return std::chrono::ceil<std::chrono::milliseconds>(begin + all - Clock::now());
}

bool has_timed_out(const WaitCommand& command, Clock::time_point begin) {
  return command.timeout && left_of(command, begin).count() <= 0;
}

std::string question_of(const WaitCommand& command, const std::vector<std::string>& ids,
                        std::chrono::milliseconds time) {
  json::object question{{"ids", json::array(ids.begin(), ids.end())}};
  if (time.count() % 1000 == 0)
    question["timeout"] = time.count() / 1000;
  else
    question["timeout"] = std::chrono::duration<double>(time).count();
  if (command.any) question["any"] = true;
  return json::serialize(question);
}

/// Which have ended, where one or more have.
bool tell_ended(const json::object& counts, bool is_json) {
  const std::vector<std::string> ended = texts_at(counts, "ended");
  std::string lines;
  for (const std::string& id : ended) lines += id + "\n";
  if (!ended.empty()) show_answer(is_json, counts, lines);
  return !ended.empty();
}

int timed_out(StatusLine& status, const WaitCommand& command, const json::object& counts) {
  status.clear();
  if (command.json) {
    print_json(counts);
  } else {
    const std::string rest = whole(number_at(counts, "running") + number_at(counts, "held") +
                                   number_at(counts, "waiting"));
    say(rest + " of " + text_at(counts, "total") + " had not ended in time; the work goes on");
  }
  return kExitTimedOut;
}

int wait_in_view(const WaitCommand& command, const Session& session, StatusLine& status,
                 std::vector<std::string>& ids) {
  const Clock::time_point begin = Clock::now();
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  ids = resolve_ids(client, command.ids, command.name);
  WaitView view(status, command.json);
  PatientClient engine(client, session, status);
  if (command.timeout) engine.give_up_at(begin + left_of(command, begin));
  for (bool is_first = true;; is_first = false) {
    std::chrono::milliseconds time = is_first              ? kAtFirst
                                     : status.is_visible() ? kWatched
                                                           : kUnwatched;
    if (command.timeout)
      time = std::clamp(left_of(command, begin), std::chrono::milliseconds{0}, time);
    const json::object counts =
        engine.post("/v1/tasks/wait", question_of(command, ids, time), time + kAnswerMargin);
    if (command.any && tell_ended(counts, command.json)) return kExitDone;
    if (flag_at(counts, "done")) return view.end(counts, ids);
    if (has_timed_out(command, begin)) return timed_out(status, command, counts);
    view.progress(counts);
  }
}

}  // namespace

int perform(const WaitCommand& command, const Session& session) {
  StatusLine status;
  std::vector<std::string> ids = command.ids;
  try {
    return wait_in_view(command, session, status, ids);
  } catch (const InterruptedByUser&) {
    status.clear();
    const std::string again = ids.empty() ? "--name '" + command.name + "'" : shortest_words(ids);
    say("the work goes on; `hpcbatch wait " + again + "` looks again");
    throw;
  }
}

// `time-left`: inside a task, how long it may still run.

int perform(const TimeLeftCommand& command, const Session&) {
  const char* said = std::getenv("HPCBATCH_DEADLINE");
  const std::string_view text = said == nullptr ? "" : said;
  const auto deadline = number_in<std::int64_t>(text);
  if (!deadline) {
    throw CommandError(
        kExitTaskFailed,
        std::getenv("HPCBATCH_TASK_ID") == nullptr
            ? "this is no task of hpcbatch: time-left is for the commands that tasks run"
            : "this task has no end: neither it nor its pilot has a time limit");
  }
  const std::int64_t left = std::max<std::int64_t>(0, *deadline - std::time(nullptr));
  if (command.json)
    print_json({{"seconds", left}, {"deadline", *deadline}});
  else
    print(std::to_string(left) + "\n");
  return kExitDone;
}

}  // namespace hpcbatch
