// `wait`: until tasks have ended, with progress on a terminal.
#include "cli/away.hpp"
#include "cli/exit.hpp"
#include "cli/session.hpp"
#include "cli/status_line.hpp"
#include "cli/values.hpp"
#include "model/quantities.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdio>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

/// How long the engine is asked to think about one question: short where somebody watches.
constexpr std::chrono::seconds kWatched{1};
constexpr std::chrono::seconds kUnwatched{30};
constexpr std::chrono::seconds kAnswerMargin{30};
constexpr std::chrono::milliseconds kWaitEvery{200};

std::string progress_of(const json::object& counts, Clock::duration elapsed) {
  const double ended =
      number_at(counts, "ok") + number_at(counts, "failed") + number_at(counts, "cancelled");
  std::string line =
      std::to_string(static_cast<std::int64_t>(ended)) + "/" + text_at(counts, "total") + " ended";
  for (const char* what : {"running", "waiting", "failed", "cancelled"}) {
    if (number_at(counts, what) > 0) line += ", " + text_at(counts, what) + " " + what;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed);
  return line + ", " + show_duration(seconds);
}

bool has_no_answer(const Answer& answer) {
  switch (answer.outcome) {
    case Exchange::NoEngine:
    case Exchange::Lost:
    case Exchange::TimedOut:
      return true;
    case Exchange::Answered:
      return answer.status == kBusyStatus;
    case Exchange::Interrupted:
    case Exchange::Refused:
      break;
  }
  return false;
}

}  // namespace

int wait_for_tasks(const WaitCommand& command, const Session& session) {
  StatusLine status;
  const std::chrono::seconds time = status.is_visible() ? kWatched : kUnwatched;
  json::object question;
  json::array& ids = question["ids"].emplace_array();
  for (const std::string& id : command.ids) ids.emplace_back(id);
  question["timeout"] = time.count();
  const std::string body = json::serialize(question);

  EngineClient client = session.client();
  const Clock::time_point begin = Clock::now();
  // Without any engine at the beginning there is nothing to wait for; one that goes away comes
  // back.
  if (const Answer connected = client.http().connect(); connected.outcome != Exchange::Answered)
    client.object_of(connected);
  Away away(Clock::now());
  for (;;) {
    const Answer answer =
        client.http().request("POST", "/v1/tasks/wait", body, time + kAnswerMargin);
    if (has_no_answer(answer) && !away.is_too_long(Clock::now())) {
      status.show("the engine is away; trying again");
      if (!status.is_visible() && away.is_to_be_told(Clock::now())) std::fputs(kAwayText, stderr);
      session.interrupt.pause(kWaitEvery);
      if (client.http().connect().outcome == Exchange::Answered) away.seen(Clock::now());
      continue;
    }
    const json::object counts = object_of(answer);
    away.seen(Clock::now());
    if (flag_at(counts, "done")) {
      status.clear();
      if (command.json) print_json(counts);
      return number_at(counts, "failed") + number_at(counts, "cancelled") > 0 ? kExitTaskFailed
                                                                              : kExitDone;
    }
    status.show(progress_of(counts, Clock::now() - begin));
  }
}

}  // namespace hpcbatch
