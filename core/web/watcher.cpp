#include "web/watcher.hpp"

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <utility>

#include <poll.h>

namespace hpcbatch::web {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr auto kLookTime = 20s;
constexpr std::chrono::milliseconds kRound = 1s;
/// Rounds between two looks at what changes seldom.
constexpr std::uint64_t kOftenRounds = 2, kSeldomRounds = 5, kWaitsRounds = 15;
constexpr double kHourSeconds = 3600;
/// A result may come to the engine this much after its end; asked for twice, it is kept once.
constexpr double kLateSeconds = 3;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

const json::array& list_of(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::value* list = object.if_contains(name);
  return list && list->is_array() ? list->get_array() : kNone;
}

json::array running_of(const json::array& tasks) {
  json::array running;
  for (const json::value& task : tasks) {
    const json::object& object = task.as_object();
    const json::value* state = object.if_contains("state");
    if (state && *state == "running" && object.contains("pilot")) running.push_back(task);
  }
  return running;
}

}  // namespace

Watcher::Watcher(std::vector<std::string> sockets, bool may_change, int interrupt)
    : engine_(std::move(sockets), interrupt),
      interrupt_(interrupt),
      runs_known_until_(now_seconds() - kHourSeconds),
      thread_([this, may_change] {
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
    changed_.notify_all();
  };
  if (is_seen || round % kWaitsRounds == 0) {
    const double asked_at = now_seconds();
    const auto answer = ask(fmt::format("/v1/tasks?open=1&full=1&limit=5000&ended_since={:.3f}",
                                        runs_known_until_ - kLateSeconds));
    if (answer) {
      runs_known_until_ = asked_at;
      const json::array& tasks = list_of(*answer, "tasks");
      const std::lock_guard lock(mutex_);
      picture_.add_runs(tasks);
      picture_.put("tasks", running_of(tasks), "id");
      changed_.notify_all();
    }
  }
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
      changed_.notify_all();
    }
  }
}

std::optional<Watcher::Change> Watcher::change_since(std::uint64_t version,
                                                     std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return is_ending_ || picture_.version() > version; });
  if (is_ending_ || picture_.version() <= version) return {};
  return Change{picture_.version(), json::serialize(picture_.since(version))};
}

}  // namespace hpcbatch::web
