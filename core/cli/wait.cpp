// `wait`: until tasks have ended, with progress on a terminal.
#include "cli/away.hpp"
#include "cli/exit.hpp"
#include "cli/named.hpp"
#include "cli/session.hpp"
#include "cli/status_line.hpp"
#include "cli/submission_table.hpp"
#include "cli/values.hpp"
#include "model/quantities.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdio>
#include <deque>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

/// How long the engine is asked to think about one question: short where somebody watches.
constexpr std::chrono::seconds kWatched{1};
constexpr std::chrono::seconds kUnwatched{30};
constexpr std::chrono::seconds kAnswerMargin{30};
constexpr std::chrono::milliseconds kWaitEvery{200};
/// Where nobody watches, a line goes to standard error so often.
constexpr std::chrono::minutes kTellEvery{1};

double ended_of(const json::object& counts) {
  return number_at(counts, "ok") + number_at(counts, "failed") + number_at(counts, "cancelled");
}

std::string in_words(Clock::duration time) {
  return show_duration(std::chrono::duration_cast<std::chrono::seconds>(time));
}

/// How fast tasks end, over the last of the time that was watched.
class Pace {
 public:
  void seen(double ended, Clock::time_point now) {
    seen_.emplace_back(now, ended);
    while (seen_.size() > 2 && now - seen_.front().first > kSpan) seen_.pop_front();
  }
  /// A second; 0 where it cannot be told.
  double rate() const {
    if (seen_.size() < 2) return 0;
    const std::chrono::duration<double> time = seen_.back().first - seen_.front().first;
    return time.count() > 0 ? (seen_.back().second - seen_.front().second) / time.count() : 0;
  }

 private:
  static constexpr std::chrono::minutes kSpan{1};
  std::deque<std::pair<Clock::time_point, double>> seen_;
};

json::object by_state(const json::object& counts) {
  json::object states;
  for (const auto& [ours, theirs] : {std::pair{"done", "ok"},
                                     {"failed", "failed"},
                                     {"cancelled", "cancelled"},
                                     {"running", "running"},
                                     {"waiting", "waiting"}})
    states[ours] = number_at(counts, theirs);
  return states;
}

std::string progress_of(const json::object& counts, const Pace& pace, Clock::duration elapsed) {
  constexpr std::size_t kBar = 20;
  const double ended = ended_of(counts), total = number_at(counts, "total");
  std::string line = total > 1 ? "[" + progress_bar(by_state(counts), kBar) + "] " : "";
  line += whole(ended) + "/" + whole(total) + " ended";
  for (const char* what : {"failed", "cancelled", "running", "waiting"}) {
    if (number_at(counts, what) > 0) line += ", " + text_at(counts, what) + " " + what;
  }
  line += ", " + in_words(elapsed);
  const double rate = pace.rate();
  if (rate <= 0 || total <= 1) return line;
  line += rate < 1 ? ", " + whole(rate * 60) + " a minute" : ", " + whole(rate) + " a second";
  const std::chrono::duration<double> left((total - ended) / rate);
  return line + ", " + in_words(std::chrono::duration_cast<Clock::duration>(left)) + " left";
}

/// How it ended, and what to type next.
std::string last_line(const json::object& counts, const std::vector<std::string>& ids,
                      Clock::duration elapsed) {
  const double total = number_at(counts, "total"), ok = number_at(counts, "ok");
  std::string line =
      total == ok ? "all " + whole(total) + " done" : whole(ok) + " of " + whole(total) + " done";
  for (const char* what : {"failed", "cancelled"}) {
    if (number_at(counts, what) > 0) line += ", " + text_at(counts, what) + " " + what;
  }
  line += ", after " + in_words(elapsed);
  if (number_at(counts, "failed") > 0)
    line += "; `hpcbatch explain " + ids.front() + "` says why, `hpcbatch retry " + ids.front() +
            "` runs again what did not end well";
  return line;
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

/// What is told of a wait while it lasts and at its end.
class View {
 public:
  View(StatusLine& status, bool is_json) : status_(status), is_json_(is_json) {}
  void progress(const json::object& counts) {
    const Clock::time_point now = Clock::now();
    pace_.seen(ended_of(counts), now);
    const std::string line = progress_of(counts, pace_, now - begin_);
    status_.show(line);
    if (status_.is_visible() || is_json_ || now - told_ < kTellEvery) return;
    told_ = now;
    std::fputs((line + "\n").c_str(), stderr);
  }
  int end(const json::object& counts, const std::vector<std::string>& ids) {
    status_.clear();
    const bool all_well = ended_of(counts) <= number_at(counts, "ok");
    // Where nobody watches, what was short and went well needs no word.
    if (is_json_)
      print_json(counts);
    else if (status_.is_visible() || told_ != begin_ || !all_well)
      std::fputs((last_line(counts, ids, Clock::now() - begin_) + "\n").c_str(), stderr);
    return all_well ? kExitDone : kExitTaskFailed;
  }

 private:
  StatusLine& status_;
  bool is_json_;
  Pace pace_;
  Clock::time_point begin_{Clock::now()};
  Clock::time_point told_{begin_};
};

std::string question_of(const std::vector<std::string>& ids, std::chrono::seconds time) {
  json::object question;
  json::array& asked = question["ids"].emplace_array();
  for (const std::string& id : ids) asked.emplace_back(id);
  question["timeout"] = time.count();
  return json::serialize(question);
}

int wait_in_view(const WaitCommand& command, const Session& session, StatusLine& status,
                 std::vector<std::string>& ids) {
  const std::chrono::seconds time = status.is_visible() ? kWatched : kUnwatched;
  EngineClient client = session.client();
  // Without any engine at the beginning there is nothing to wait for; one that goes away comes
  // back.
  if (const Answer connected = client.http().connect(); connected.outcome != Exchange::Answered)
    client.object_of(connected);
  ids = resolve_ids(client, command.ids, command.name);
  const std::string question = question_of(ids, time);
  View view(status, command.json);
  Away away(Clock::now());
  for (;;) {
    const Answer answer =
        client.http().request("POST", "/v1/tasks/wait", question, time + kAnswerMargin);
    if (has_no_answer(answer) && !away.is_too_long(Clock::now())) {
      status.show("the engine is away; trying again");
      if (!status.is_visible() && away.is_to_be_told(Clock::now())) std::fputs(kAwayText, stderr);
      session.interrupt.pause(kWaitEvery);
      if (client.http().connect().outcome == Exchange::Answered) away.seen(Clock::now());
      continue;
    }
    const json::object counts = object_of(answer);
    away.seen(Clock::now());
    if (flag_at(counts, "done")) return view.end(counts, ids);
    view.progress(counts);
  }
}

}  // namespace

int wait_for_tasks(const WaitCommand& command, const Session& session) {
  StatusLine status;
  std::vector<std::string> ids = command.ids;
  try {
    return wait_in_view(command, session, status, ids);
  } catch (const InterruptedByUser&) {
    if (status.is_visible()) {
      status.clear();
      std::string again = "hpcbatch wait";
      for (const std::string& id : ids) again += " " + id;
      std::fputs(("the work goes on; `" + again + "` looks again\n").c_str(), stderr);
    }
    throw;
  }
}

}  // namespace hpcbatch
