#include "web/watcher.hpp"

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <poll.h>

namespace hpcbatch::web {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostSeconds = 3600, kMostMinutes = 1440, kMostRuns = 20'000;
constexpr double kMinute = 60;
constexpr std::array<std::string_view, 6> kStates{"waiting", "held",   "running",
                                                  "done",    "failed", "cancelled"};
/// Of a run, in this order, as `views.js` reads them.
constexpr std::array<std::string_view, 9> kOfRun{
    "id", "array", "pilot", "started_at", "ended_at", "state", "name", "tool", "attempt"};

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (!value) return {};
  return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

template <class Points>
json::array newer_of(const Points& points, std::uint64_t version) {
  auto first = points.end();
  while (first != points.begin() && std::prev(first)->version > version) --first;
  json::array newer;
  for (; first != points.end(); ++first) newer.push_back(first->values);
  return newer;
}

using namespace std::chrono_literals;

constexpr auto kLookTime = 20s;
constexpr std::chrono::milliseconds kRound = 1s;
/// Rounds between two looks at what changes seldom.
constexpr std::uint64_t kOftenRounds = 2, kSeldomRounds = 5, kWaitsRounds = 15;
/// Tasks whose ends one look asks for, the newest; of more a picture shows no more.
constexpr std::uint32_t kRunsOfARound = 2'000, kRunsAtFirst = 10'000;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

const json::array& list_of(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::value* list = object.if_contains(name);
  return list && list->is_array() ? list->get_array() : kNone;
}

}  // namespace

bool Picture::set(Entry& entry, const json::object& object, std::uint64_t version) {
  std::string text = json::serialize(object);
  if (entry.version != 0 && !entry.gone && entry.text == text) return false;
  entry = {std::move(text), object, version, false};
  return true;
}

void Picture::put(const std::string& section, const json::array& entries,
                  std::string_view name_of) {
  Section& there = sections_[section];
  const std::uint64_t next = version_ + 1;
  bool has_changed = false;
  std::set<std::string, std::less<>> named;
  for (const json::value& value : entries) {
    const json::object& object = value.as_object();
    const std::string name = text_at(object, name_of);
    named.insert(name);
    has_changed |= set(there[name], object, next);
  }
  for (auto& [name, entry] : there) {
    if (entry.gone || named.contains(name)) continue;
    entry = {"", {}, next, true};
    has_changed = true;
  }
  if (has_changed) version_ = next;
  forget_gone(there);
}

/// Pages hear of changes every second; one that has not heard for long gets all.
void Picture::forget_gone(Section& section) {
  constexpr std::uint64_t kRemembered = 120;
  std::erase_if(section, [&](const auto& one) {
    const Entry& entry = one.second;
    const bool is_old = entry.gone && entry.version + kRemembered < version_;
    if (is_old) forgotten_ = std::max(forgotten_, entry.version);
    return is_old;
  });
}

void Picture::change(const std::string& section, const json::array& entries,
                     std::string_view name_of, const json::array& gone) {
  Section& there = sections_[section];
  const std::uint64_t next = version_ + 1;
  bool has_changed = false;
  for (const json::value& value : entries) {
    const json::object& object = value.as_object();
    has_changed |= set(there[text_at(object, name_of)], object, next);
  }
  for (const json::value& name : gone) {
    const auto at = there.find(std::string_view(name.as_string()));
    if (at == there.end() || at->second.gone) continue;
    at->second = {"", {}, next, true};
    has_changed = true;
  }
  if (has_changed) version_ = next;
  forget_gone(there);
}

void Picture::put(const std::string& section, json::object object) {
  std::string text = json::serialize(object);
  Entry& entry = objects_[section];
  if (entry.version != 0 && entry.text == text) return;
  entry = {std::move(text), std::move(object), ++version_, false};
}

void Picture::add_counts(double time, const json::object& tasks) {
  json::array values{time};
  for (const std::string_view state : kStates) {
    const json::value* count = tasks.if_contains(state);
    values.push_back(count ? *count : json::value(0));
  }
  ++version_;
  if (minutes_.empty() || time - minutes_.back().values[0].to_number<double>() >= kMinute) {
    minutes_.push_back({values, version_});
    if (minutes_.size() > kMostMinutes) minutes_.pop_front();
  }
  seconds_.push_back({std::move(values), version_});
  if (seconds_.size() > kMostSeconds) seconds_.pop_front();
}

void Picture::add_runs(const json::array& tasks) {
  bool has_changed = false;
  for (const json::value& value : tasks) {
    const json::object& task = value.as_object();
    if (!task.contains("ended_at") || !task.contains("started_at") || !task.contains("pilot"))
      continue;
    if (!known_runs_.insert(text_at(task, "id") + "@" + text_at(task, "attempt")).second) continue;
    json::array values;
    for (const std::string_view key : kOfRun) {
      const json::value* part = task.if_contains(key);
      values.push_back(part ? *part : json::value());
    }
    runs_.push_back({std::move(values), version_ + 1});
    has_changed = true;
  }
  if (has_changed) ++version_;
  while (runs_.size() > kMostRuns) {
    const json::array& oldest = runs_.front().values;
    known_runs_.erase(std::string(oldest[0].as_string()) + "@" + json::serialize(oldest[8]));
    runs_.pop_front();
  }
}

json::object Picture::since(std::uint64_t version) const {
  if (version < forgotten_) version = 0;
  json::object changed{{"version", version_}};
  json::object sections;
  for (const auto& [name, section] : sections_) {
    json::object entries;
    for (const auto& [key, entry] : section) {
      if (entry.version <= version || (version == 0 && entry.gone)) continue;
      entries[key] = entry.gone ? json::value() : json::value(entry.value);
    }
    if (!entries.empty() || version == 0) sections[name] = std::move(entries);
  }
  if (!sections.empty()) changed["sections"] = std::move(sections);
  for (const auto& [name, entry] : objects_)
    if (entry.version > version) changed[name] = entry.value;
  if (version == 0) changed["minutes"] = newer_of(minutes_, 0);
  if (json::array counts = newer_of(seconds_, version); !counts.empty())
    changed["counts"] = std::move(counts);
  if (json::array runs = newer_of(runs_, version); !runs.empty()) changed["runs"] = std::move(runs);
  return changed;
}

Watcher::Watcher(std::vector<std::string> sockets, bool may_change, int interrupt)
    : engine_(std::move(sockets), interrupt), interrupt_(interrupt), thread_([this, may_change] {
        {
          const std::lock_guard lock(mutex_);
          picture_.put("page", {{"may_change", may_change}});
        }
        run();
      }) {}

Watcher::~Watcher() {
  thread_.join();
}

Watcher::Page::Page(Watcher& watcher) : watcher_(watcher) {
  const std::lock_guard lock(watcher_.mutex_);
  ++watcher_.pages_;
}

Watcher::Page::~Page() {
  const std::lock_guard lock(watcher_.mutex_);
  --watcher_.pages_;
}

void Watcher::run() {
  for (std::uint64_t round = 0;; ++round) {
    try {
      look(round);
    } catch (const std::exception&) {  // no memory for an answer: the next may be smaller
      engine_.disconnect();
    }
    pollfd end{interrupt_, POLLIN, 0};
    if (::poll(&end, 1, static_cast<int>(kRound.count())) > 0) break;
  }
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  changed_.notify_all();
}

std::optional<json::object> Watcher::ask(const std::string& target) {
  const Answer answer = engine_.request("GET", target, {}, kLookTime);
  if (answer.outcome == Exchange::Answered && answer.status == 200) {
    boost::system::error_code error;
    json::value value = json::parse(answer.body, error);
    if (!error && value.is_object()) return std::move(value.get_object());
  }
  if (answer.outcome != Exchange::Answered) engine_.disconnect();
  return {};
}

void Watcher::tell_engine(json::object engine) {
  const std::lock_guard lock(mutex_);
  if (const json::value* tasks = engine.if_contains("tasks"); tasks && tasks->is_object())
    picture_.add_counts(now_seconds(), tasks->get_object());
  // It changes with each look, and says nothing that its start does not.
  engine.erase("uptime_s");
  picture_.put("engine", std::move(engine));
  changed_.notify_all();
}

void Watcher::look_at_runs(std::uint32_t most) {
  const auto answer = ask(fmt::format("/v1/runs?after={}&limit={}", runs_cursor_, most));
  if (!answer) return;
  const json::value* whole = answer->if_contains("whole");
  const std::lock_guard lock(mutex_);
  picture_.add_runs(list_of(*answer, "ended"));
  if (whole && *whole == true)
    picture_.put("tasks", list_of(*answer, "running"), "id");
  else
    picture_.change("tasks", list_of(*answer, "running"), "id", list_of(*answer, "gone"));
  // Behind all that may throw: what was not taken is asked for again.
  runs_cursor_ = text_at(*answer, "cursor");
}

void Watcher::look(std::uint64_t round) {
  const auto engine = ask("/v1/engine");
  if (!engine) return tell_engine({{"state", "away"}});
  tell_engine(*engine);
  bool is_seen = false;
  {
    const std::lock_guard lock(mutex_);
    is_seen = pages_ > 0;
  }
  const auto put_list = [&](const std::string& target, const std::string& name,
                            std::string_view key) {
    const auto answer = ask(target);
    if (!answer) return;
    const std::lock_guard lock(mutex_);
    picture_.put(name, list_of(*answer, name), key);
  };
  if (is_seen || round % kWaitsRounds == 0)
    look_at_runs(runs_cursor_.empty() ? kRunsAtFirst : kRunsOfARound);
  // The first page is to see all at once.
  const bool is_new = is_seen && !std::exchange(was_seen_, is_seen);
  was_seen_ = is_seen;
  if (!is_seen) return;
  put_list("/v1/arrays?per=submit&limit=200", "arrays", "id");
  if (is_new || round % kOftenRounds == 0) {
    put_list("/v1/pilots", "pilots", "name");
    put_list("/v1/allocations", "allocations", "name");
  }
  if (is_new || round % kSeldomRounds == 0) {
    put_list("/v1/sites", "sites", "name");
    put_list("/v1/dropboxes", "dropboxes", "directory");
  }
  if (is_new || round % kWaitsRounds == 0) {
    if (auto waits = ask("/v1/waits")) {
      const std::lock_guard lock(mutex_);
      picture_.put("waits", std::move(*waits));
    }
  }
  changed_.notify_all();
}

std::optional<Watcher::Change> Watcher::change_since(std::uint64_t version,
                                                     std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return is_ending_ || picture_.version() > version; });
  if (is_ending_ || picture_.version() <= version) return {};
  return Change{picture_.version(), json::serialize(picture_.since(version))};
}

}  // namespace hpcbatch::web
