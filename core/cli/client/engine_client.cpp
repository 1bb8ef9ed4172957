#include "cli/client/engine_client.hpp"

#include "cli/parse/spelled.hpp"
#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "documents/task_values.hpp"
#include "model/index_set.hpp"
#include "model/quantities.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// From here on it is the engine that failed, not the request.
constexpr int kFirstServerError = 500;

/// One that is being killed takes connections until the last of its threads has ended.
constexpr std::chrono::seconds kUntilGone{5};
/// What is over by then needs no line that says how long it takes.
constexpr std::chrono::milliseconds kFirstView{500}, kViewEvery{250};
constexpr std::chrono::seconds kTroubleTime{2};

std::string error_text(const Answer& answer) {
  boost::system::error_code error;
  const json::value value = json::parse(answer.body, error);
  if (!error && value.is_object()) {
    if (const json::value* text = value.get_object().if_contains("error");
        text != nullptr && text->is_string()) {
      return std::string(text->get_string());
    }
  }
  return "the engine answered with HTTP status " + std::to_string(answer.status) +
         " and no explanation";
}

std::optional<Owner> owner_of(const std::string& home) {
  return parse_owner(read_regular(AT_FDCWD, home + "/engine.lock", kLongestOwner).text);
}

/// Such a request is answered when something has happened.
bool is_long_poll(std::string_view target) {
  return target == "/v1/tasks/wait" || target.find("wait=") != std::string_view::npos;
}

std::string own_host() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return host;
}

/// What the engine itself says of trouble that it has, which may be why it does not answer another
/// request.
std::string trouble_of_engine(const Places& places) {
  const Answer answer =
      HttpClient(sockets_of(places), -1).request("GET", "/v1/engine", {}, kTroubleTime);
  boost::system::error_code error;
  const json::value value = json::parse(answer.body, error);
  if (error || !value.is_object()) return {};
  const std::string message = text_at(value.get_object(), "message");
  return message.empty() ? "" : "; it says: " + one_line(message);
}

constexpr std::chrono::milliseconds kTryEvery{200};

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

/// A million tasks take the engine a while to read.
constexpr std::chrono::minutes kSubmitTime{10};
constexpr std::chrono::milliseconds kBetweenTries{200};
constexpr int kTries = 5;

/// An engine that is older than this program, where the program runs in a task.
bool knows_no_within(const Answer& answer) {
  return answer.outcome == Exchange::Answered && answer.status == 400 &&
         answer.body.find("'within' is no key of a submit") != std::string::npos;
}

/// Only `explain` uses it.
std::string without_within(boost::json::object request) {
  request.erase("within");
  return boost::json::serialize(request);
}

constexpr std::string_view kLast = "last";

std::vector<std::string> last_ones(EngineClient& client, const std::string& task) {
  const json::object answer = client.get("/v1/arrays?limit=1&client=" + encode_part(client_name()));
  const Objects found = objects_at(answer, "arrays");
  if (found.empty()) {
    throw CommandError(kExitUsage,
                       "you have submitted nothing that is known here; `hpcbatch list` shows what "
                       "others have");
  }
  const json::object& newest = found.front();
  if (task.empty() && newest.contains("submit")) return submissions_in(text_at(newest, "submit"));
  return {text_at(newest, "id") + task};
}

/// Each task once, however often it is named: what is named whole is not named in part.
std::vector<std::string> each_once(const std::vector<std::string>& ids) {
  std::set<std::string> whole;
  for (const std::string& id : ids) {
    if (id.find('.') == std::string::npos) whole.insert(id);
  }
  std::vector<std::string> once;
  std::map<std::string, IndexSet> parts;
  std::set<std::string> told;
  for (const std::string& id : ids) {
    const std::size_t dot = id.find('.');
    if (dot == std::string::npos) {
      if (told.insert(id).second) once.push_back(id);
      continue;
    }
    const std::string array = id.substr(0, dot);
    auto indices = parse_index_set(id.substr(dot + 1));
    if (whole.contains(array) || !indices) continue;
    indices->remove(parts[array]);
    if (indices->empty()) continue;
    parts[array].add(*indices);
    once.push_back(array + "." + to_string(*indices));
  }
  return once;
}

/// The ids of what a word of `key` names, each with the delay that the word had.
json::array waits_of(EngineClient& client, std::string text, std::string_view key,
                     const std::function<void()>& connect) {
  std::string delay;
  if (key == "after_start") {
    delay = text.substr(delay_at(text));
    text.resize(text.size() - delay.size());
  }
  if (text.starts_with(kLast)) connect();
  json::array resolved;
  for (const std::string& id : one_by_one(resolve_ids(client, {text}, "")))
    resolved.emplace_back(id + delay);
  return resolved;
}

}  // namespace

std::vector<std::string> sockets_of(const Places& places) {
  std::vector<std::string> sockets{places.socket};
  if (places.home + "/socket" != places.socket) sockets.push_back(places.home + "/socket");
  return sockets;
}

json::object object_of(const Answer& answer) {
  switch (answer.outcome) {
    case Exchange::Answered:
      break;
    case Exchange::Interrupted:
      throw InterruptedByUser{};
    case Exchange::NoEngine:
      throw CommandError(kExitNoEngine,
                         answer.error + "; no engine runs: start one with `hpcbatch engine start`");
    case Exchange::Refused:
    case Exchange::Lost:
    case Exchange::TimedOut:
      throw CommandError(kExitNoEngine, answer.error);
  }
  if (answer.status != 200) {
    throw CommandError(answer.status >= kFirstServerError ? kExitNoEngine : kExitUsage,
                       error_text(answer));
  }
  boost::system::error_code error;
  json::value value = json::parse(answer.body, error);
  if (error || !value.is_object()) {
    throw CommandError(
        kExitNoEngine,
        "the engine's answer is not a JSON object; does another program use its socket?");
  }
  return std::move(value.get_object());
}

std::optional<Owner> engine_that_died(const std::string& home) {
  auto owner = owner_of(home);
  if (!owner || owner->host != own_host() ||
      is_running(owner->process, owner->process_start, owner->boot_id))
    return std::nullopt;
  return owner;
}

std::optional<std::string> engine_out_of_reach(const Places& places) {
  const auto owner = owner_of(places.home);
  if (!owner || owner->host != own_host() ||
      !is_running(owner->process, owner->process_start, owner->boot_id))
    return std::nullopt;
  const std::string process = std::to_string(owner->process);
  const std::string since = time_at({{"at", time_of_start(owner->process_start)}}, "at");
  return "an engine runs here (process " + process + ", since " + since +
         "), but it does not listen at its socket " + places.socket +
         ". An engine that has just been started may still read its store back: then wait for it. "
         "If somebody has removed the socket, the engine makes it again within a few seconds; " +
         places.home + "/engine.log says why it cannot. `kill " + process +
         "` ends the engine: queued work stays, and the next command starts a new engine";
}

std::optional<std::string> engine_elsewhere(const std::string& home) {
  const auto owner = owner_of(home);
  if (!owner || owner->host == own_host() || std::time(nullptr) - owner->heartbeat >= kHeartbeatAge)
    return std::nullopt;
  return "the engine of " + home + " runs on " + owner->host + " (process " +
         std::to_string(owner->process) + "); use it there, or end it there first";
}

std::optional<std::string> engine_not_heard(const Places& places) {
  const auto elsewhere = engine_elsewhere(places.home);
  return elsewhere ? elsewhere : engine_out_of_reach(places);
}

EngineClient::EngineClient(const Places& places, int interrupt)
    : places_(places), http_(sockets_of(places), interrupt) {
  http_.when_slow(kPatience, [this](std::string_view method, const std::string& target) {
    if (is_long_poll(target)) return;
    say("waits for the engine (process " + std::to_string(http_.peer()) +
        "), which has not answered " + std::string(method) + " " + target + " for " +
        std::to_string(kPatience.count()) + " s" + trouble_of_engine(places_));
  });
}

json::object EngineClient::object_of(const Answer& answer) {
  if (answer.outcome == Exchange::NoEngine) {
    if (const auto text = engine_not_heard(places_)) throw CommandError(kExitNoEngine, *text);
  }
  json::object object = hpcbatch::object_of(answer);
  const json::value* trouble = object.if_contains("trouble");
  if (trouble != nullptr && trouble->is_string() && !std::exchange(told_trouble_, true))
    say(one_line(trouble->get_string()));
  return object;
}

json::object EngineClient::get(const std::string& target, std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> until;
  for (;;) {
    const Answer answer = http_.request("GET", target, {}, time);
    const bool is_gone = answer.outcome == Exchange::Lost || answer.outcome == Exchange::NoEngine;
    if (is_gone && !until) until = Clock::now() + kUntilGone;
    if (!is_gone || Clock::now() >= *until || !find_again_ || !find_again_())
      return object_of(answer);
  }
}

json::object EngineClient::post(const std::string& target, const json::object& body,
                                std::chrono::milliseconds time) {
  return object_of(http_.request("POST", target, json::serialize(body), time));
}

void EngineRevival::tried(EngineClient& client, const Answer& answer) {
  if (answer.outcome != Exchange::NoEngine || !engine_that_died(session_.places.home)) {
    dead_since_.reset();
    return;
  }
  const Clock::time_point now = Clock::now();
  if (!dead_since_) dead_since_ = now;
  if (now - *dead_since_ < kOthers || now < next_) return;
  start(client);
}

void EngineRevival::start(EngineClient& client) {
  std::string said;
  try {
    if (connect_or_start(client, session_.places, session_.interrupt, Lifetime::UntilIdle))
      said = "the engine had died and was started again; its log is " + session_.places.home +
             "/engine.log";
    dead_since_.reset();
    told_ = false;
  } catch (const CommandError& error) {
    if (!told_) said = std::string(error.what()) + "; it is tried again";
    told_ = true;
  }
  // One that dies again and again is not started without end.
  next_ = Clock::now() + pause_;
  pause_ = std::min(kLongestPause, 2 * pause_);
  if (said.empty()) return;
  status_.clear();
  say(one_line(said));
}

Answer PatientClient::try_again(EngineAbsence::Clock::time_point now) {
  status_.show("the engine is away; trying again");
  if (!status_.is_visible() && away_.is_to_be_told(now))
    say("the engine is away; it is waited for, ten minutes at most");
  session_.interrupt.pause(kTryEvery);
  Answer tried = client_.http().connect();
  if (tried.outcome == Exchange::Answered) away_.seen(EngineAbsence::Clock::now());
  revival_.tried(client_, tried);
  return tried;
}

boost::json::object PatientClient::ask(const char* method, const std::string& target,
                                       const std::string& body, std::chrono::milliseconds time) {
  for (;;) {
    const Answer answer = client_.http().request(method, target, body, time);
    const auto now = EngineAbsence::Clock::now();
    if (!has_no_answer(answer) || is_over(now)) {
      away_.seen(now);
      return client_.object_of(answer);
    }
    try_again(now);
  }
}

void PatientClient::reconnect(const std::string& lost) {
  client_.http().disconnect();
  away_.seen(EngineAbsence::Clock::now());
  for (;;) {
    const auto now = EngineAbsence::Clock::now();
    if (is_over(now)) throw CommandError(kExitNoEngine, lost);
    const Answer tried = try_again(now);
    if (tried.outcome == Exchange::Refused) client_.object_of(tried);
    if (tried.outcome == Exchange::Answered) return status_.clear();
  }
}

boost::json::object PatientClient::get(const std::string& target, std::chrono::milliseconds time) {
  return ask("GET", target, {}, time);
}

boost::json::object PatientClient::post(const std::string& target, const std::string& body,
                                        std::chrono::milliseconds time) {
  return ask("POST", target, body, time);
}

std::vector<std::string> submit_safely(EngineClient& client, const Session& session,
                                       const boost::json::object& request) {
  std::string body = boost::json::serialize(request);
  // A line on a terminal while the engine reads and saves a large one.
  StatusLine status;
  std::optional<SlowNote> view;
  if (status.is_visible()) {
    const auto show = [&, begin = std::chrono::steady_clock::now()](const std::string& what) {
      const auto time = std::chrono::steady_clock::now() - begin;
      status.show(what + ", " + show_duration(std::chrono::floor<std::chrono::seconds>(time)));
    };
    view.emplace("the engine takes in " + show_size(body.size()) + " of tasks", kFirstView, show,
                 kViewEvery);
  }
  Answer answer;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (attempt > 0) session.interrupt.pause(kBetweenTries);
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
    answer = client.http().request("POST", "/v1/tasks", body, kSubmitTime);
    if (knows_no_within(answer)) {
      body = without_within(request);
      answer = client.http().request("POST", "/v1/tasks", body, kSubmitTime);
    }
    if (answer.outcome != Exchange::Lost && answer.outcome != Exchange::NoEngine) break;
  }
  const boost::json::object accepted = object_of(answer);
  std::vector<std::string> ids = texts_at(accepted, "ids");
  if (ids.empty())
    throw CommandError(kExitNoEngine, "the engine accepted the tasks but named no ids");
  if (ids.size() != array_at(accepted, "ids")->size())
    throw CommandError(kExitNoEngine, "the engine named an id that is no text");
  for (const std::string& one : texts_at(accepted, "advice")) say(one_line(one));
  return ids;
}

bool cancel_now(const Places& places, const boost::json::array& ids,
                std::chrono::milliseconds time) {
  HttpClient http(sockets_of(places), -1);
  const std::string body = boost::json::serialize(boost::json::object{{"ids", ids}});
  const Answer answer = http.request("POST", "/v1/tasks/cancel", body, time);
  return answer.outcome == Exchange::Answered && answer.status == 200;
}

std::vector<std::string> resolve_ids(EngineClient& client, const std::vector<std::string>& words,
                                     const std::string& name) {
  std::vector<std::string> ids;
  ids.reserve(words.size());
  for (const std::string& word : words) {
    const std::vector<std::string> meant = word.starts_with(kLast)
                                               ? last_ones(client, word.substr(kLast.size()))
                                               : submissions_in(word);
    ids.insert(ids.end(), meant.begin(), meant.end());
  }
  if (name.empty()) return each_once(ids);
  const std::size_t of_words = ids.size();
  std::string before;
  do {
    const json::object answer =
        client.get("/v1/arrays?limit=1000&client=" + encode_part(client_name()) +
                   "&name=" + encode_part(name) + (before.empty() ? "" : "&before=" + before));
    before = text_at(answer, "next");
    for (const json::object& one : objects_at(answer, "arrays")) ids.push_back(text_at(one, "id"));
  } while (!before.empty());
  if (ids.size() == of_words) {
    throw CommandError(kExitUsage, "nothing that you have submitted is called '" + name +
                                       "'; `hpcbatch list` shows the names");
  }
  return each_once(ids);
}

void resolve_waits(EngineClient& client, json::array& tasks, const std::function<void()>& connect) {
  for (json::value& task : tasks) {
    for (const char* key : {"after", "after_any", "after_each", "after_start", "after_failed"}) {
      json::value* waits = task.get_object().if_contains(key);
      if (waits == nullptr || !waits->is_array()) continue;
      json::array resolved;
      for (const json::value& word : waits->get_array()) {
        if (!word.is_string()) {
          resolved.push_back(word);
          continue;
        }
        for (json::value& id : waits_of(client, std::string(word.get_string()), key, connect))
          resolved.push_back(std::move(id));
      }
      *waits = std::move(resolved);
    }
  }
}

std::vector<std::string> one_by_one(const std::vector<std::string>& ids) {
  std::vector<std::string> tasks;
  for (const std::string& id : ids) {
    const std::size_t dot = id.find('.');
    const auto indices =
        dot == std::string::npos ? std::nullopt : parse_index_set(id.substr(dot + 1));
    if (!indices) {
      tasks.push_back(id);
      continue;
    }
    // Ranges come from the highest down.
    for (auto range = indices->ranges().rbegin(); range != indices->ranges().rend(); ++range) {
      for (std::uint64_t i = range->first; i <= range->last; ++i)
        tasks.push_back(id.substr(0, dot + 1) + std::to_string(i));
    }
  }
  return tasks;
}

}  // namespace hpcbatch
