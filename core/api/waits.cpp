#include "api/api.hpp"

#include "api/answers/to_json.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "api/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <memory>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr double kLongestWait = 300;
constexpr std::uint32_t kFeedPage = 10'000;

bool is_over(const Engine& engine, const Selection& selection) {
  const ArrayState* live = engine.tasks().find(selection.array);
  if (!live) return true;
  if (!selection.indices) return live->tasks.is_over();
  return live->tasks.open().intersection(*selection.indices).empty();
}

/// Whether every chosen task has ended, as far as the engine knows.
bool all_ended(const Engine& engine, const std::vector<Selection>& chosen) {
  return std::all_of(chosen.begin(), chosen.end(),
                     [&](const Selection& selection) { return is_over(engine, selection); });
}

json::array ended_of(const Engine& engine, const std::vector<Selection>& chosen) {
  json::array ended;
  for (const Selection& selection : chosen) {
    if (!is_over(engine, selection)) continue;
    std::string id = std::to_string(selection.array.value);
    if (selection.indices) id += "." + to_string(*selection.indices);
    ended.push_back(json::string(id));
  }
  return ended;
}

struct Counts {
  std::uint64_t total{0};
  store::Totals ended;
  std::string unknown;
};

Counts count(store::Store& store, const std::vector<Selection>& chosen) {
  Counts counts;
  for (const Selection& selection : chosen) {
    const auto row = store.history().array(selection.array);
    if (!row) return {0, {}, std::to_string(selection.array.value)};
    if (selection.indices) {
      IndexSet unknown = *selection.indices;
      unknown.remove(row->indices);
      if (!unknown.empty())
        return {0, {}, fmt::format("{}.{}", selection.array.value, to_string(unknown))};
    }
    counts.total += selection.indices ? selection.indices->size() : row->indices.size();
    const auto ended = selection.indices
                           ? store.history().totals(selection.array, *selection.indices)
                           : store.history().totals(selection.array);
    counts.ended.done += ended.done;
    counts.ended.failed += ended.failed;
    counts.ended.cancelled += ended.cancelled;
  }
  return counts;
}

std::uint64_t held_of(const Engine& engine, const std::vector<Selection>& chosen) {
  std::uint64_t held = 0;
  for (const Selection& selection : chosen) {
    const ArrayState* live = engine.tasks().find(selection.array);
    if (!live) continue;
    held += selection.indices ? live->tasks.held().intersection(*selection.indices).size()
                              : live->tasks.held().size();
  }
  return held;
}

std::uint64_t running_of(const Engine& engine, const std::vector<Selection>& chosen) {
  std::uint64_t running = 0;
  for (const Selection& selection : chosen) {
    const ArrayState* live = engine.tasks().find(selection.array);
    if (!live) continue;
    const IndexSet leased = selection.indices
                                ? live->tasks.leased().intersection(*selection.indices)
                                : live->tasks.leased();
    for (const IndexRange& range : leased.ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i) {
        const Lease* lease =
            engine.pilots().lease({selection.array, static_cast<std::uint32_t>(i)});
        if (lease && lease->state != Lease::State::Sent) ++running;
      }
    }
  }
  return running;
}

json::object event_json(const store::ResultRow& row) {
  json::object event{{"cursor", row.sequence},
                     {"id", id_of(row.array, row.indices)},
                     {"state", std::string(to_string(state_after(row.outcome.failure)))},
                     {"failure", std::string(to_string(row.outcome.failure))}};
  if (const auto code = shell_exit_code(row.outcome)) event["exit_code"] = *code;
  if (!row.outcome.message.empty()) event["message"] = row.outcome.message;
  if (row.indices.first != row.indices.last) return event;
  // What one task took: whoever reports on many asks for none of them.
  event["ended_at"] = seconds(row.outcome.ended);
  if (row.outcome.started) event["started_at"] = seconds(*row.outcome.started);
  if (row.outcome.cpu_time != Duration{}) event["cpu_s"] = seconds(row.outcome.cpu_time);
  if (row.outcome.peak_memory != 0) event["peak_memory"] = row.outcome.peak_memory;
  if (!row.pilot.empty()) event["pilot"] = row.pilot;
  if (!row.node.empty()) event["node"] = row.node;
  return event;
}

}  // namespace

void Waits::wait(const HttpRequest& request, const ReplyPtr& reply) {
  const json::value body = parse_body(request.body);
  const std::vector<Selection> chosen = read_selections(body);
  const json::value* any = body.get_object().if_contains("any");
  const bool is_any = any && bool_of(*any, "any");
  double timeout = 30;
  if (const json::value* said = body.get_object().if_contains("timeout")) {
    if (!said->is_number()) throw BadRequest("'timeout' must be a number of seconds");
    timeout = std::clamp(said->to_number<double>(), 0.0, kLongestWait);
  }
  auto answer = [this, chosen, is_any, reply] {
    runtime_.look(
        [chosen](store::Store& store) { return count(store, chosen); },
        [this, chosen, is_any, reply](const Counts& counts) {
          if (!counts.unknown.empty())
            return reply->error(404, fmt::format("there is no task {}", counts.unknown));
          const auto& ended = counts.ended;
          const std::uint64_t over = ended.done + ended.failed + ended.cancelled;
          const std::uint64_t rest = counts.total - std::min(counts.total, over);
          const std::uint64_t running = std::min(running_of(runtime_.engine(), chosen), rest);
          const std::uint64_t held = std::min(held_of(runtime_.engine(), chosen), rest - running);
          json::object said{
              {"done", rest == 0},      {"total", counts.total},           {"ok", ended.done},
              {"failed", ended.failed}, {"cancelled", ended.cancelled},    {"running", running},
              {"held", held},           {"waiting", rest - running - held}};
          if (is_any) said["ended"] = ended_of(runtime_.engine(), chosen);
          reply->answer(200, said);
        });
  };
  wait_for_ends(timeout, reply, [this, chosen, is_any, answer = std::move(answer)](bool timed_out) {
    const Engine& engine = runtime_.engine();
    const bool is_enough = is_any ? !ended_of(engine, chosen).empty() : all_ended(engine, chosen);
    if (!timed_out && !is_enough) return false;
    answer();
    return true;
  });
}

namespace {

/// One look at a time: what ends while the store is asked is found by the next look.
class FeedLook : public std::enable_shared_from_this<FeedLook> {
 public:
  FeedLook(Runtime& runtime, std::string client, std::uint64_t after, ReplyPtr reply)
      : runtime_(runtime), client_(std::move(client)), after_(after), reply_(std::move(reply)) {}

  /// Whether that is over.
  bool look(bool timed_out) {
    timed_out_ = timed_out_ || timed_out;
    ask();
    return answered_ || timed_out;
  }

 private:
  void ask() {
    if (answered_) return;
    if (std::exchange(busy_, true)) {
      again_ = true;
      return;
    }
    runtime_.look(
        [client = client_, after = after_](store::Store& store) {
          return store.history().changes(client, after, kFeedPage);
        },
        [self = shared_from_this()](const store::ChangeFeed& feed) { self->take(feed); });
  }
  void take(const store::ChangeFeed& feed) {
    busy_ = false;
    if (feed.rows.empty() && !feed.pruned && !timed_out_) {
      if (std::exchange(again_, false)) ask();
      return;
    }
    if (std::exchange(answered_, true)) return;
    json::array events;
    for (const store::ResultRow& row : feed.rows) events.push_back(event_json(row));
    reply_->answer(
        200, {{"events", std::move(events)}, {"cursor", feed.cursor}, {"pruned", feed.pruned}});
  }

  Runtime& runtime_;
  std::string client_;
  std::uint64_t after_;
  ReplyPtr reply_;
  bool busy_{false}, again_{false}, timed_out_{false}, answered_{false};
};

}  // namespace

void Waits::events(const HttpRequest& request, const ReplyPtr& reply) {
  if (text_in(request, "after") == "now") {
    runtime_.look(
        [](store::Store& store) { return store.history().newest_change(); },
        [reply](std::uint64_t cursor) {
          reply->answer(200, {{"events", json::array()}, {"cursor", cursor}, {"pruned", false}});
        });
    return;
  }
  const std::uint64_t after =
      text_in(request, "after").empty()
          ? 0
          : bytes_in(request, "after", 0, "cursor; take one from an earlier answer");
  auto look = std::make_shared<FeedLook>(runtime_, text_in(request, "client"), after, reply);
  wait_for_ends(std::min(seconds_in(request, "wait", 0), kLongestWait), reply,
                [look](bool timed_out) { return look->look(timed_out); });
}

Waits::Waits(Runtime& runtime) : runtime_(runtime) {
  runtime_.on_ended([this](ArrayId) {
    std::erase_if(waiters_, [](const std::shared_ptr<Waiter>& waiter) {
      waiter->answered = waiter->answered || waiter->check(false);
      if (waiter->answered) waiter->timer.cancel();
      return waiter->answered;
    });
  });
}

void Waits::add_to(Routes& routes) {
  routes.add("POST", "tasks/wait",
             [this](HttpRequest& request, const ReplyPtr& reply) { wait(request, reply); });
  routes.add("GET", "events",
             [this](HttpRequest& request, const ReplyPtr& reply) { events(request, reply); });
}

void Waits::wait_for_ends(double limit, const ReplyPtr& reply, std::function<bool(bool)> check) {
  if (check(limit <= 0)) return;
  const auto limit_ms = std::chrono::milliseconds(static_cast<std::int64_t>(limit * 1000));
  const std::shared_ptr<Waiter> waiter(
      new Waiter{std::move(check), asio::steady_timer(runtime_.loop(), limit_ms)});
  waiters_.push_back(waiter);
  reply->on_gone([this, weak = std::weak_ptr(waiter)] {
    const auto gone = weak.lock();
    if (!gone || std::exchange(gone->answered, true)) return;
    gone->timer.cancel();
    // Not from within a walk over all of them.
    asio::post(runtime_.loop(), [this, gone] { std::erase(waiters_, gone); });
  });
  waiter->timer.async_wait([this, waiter](const boost::system::error_code& error) {
    // A timer that has fired cannot be cancelled any more: it may come here after an end has
    // answered.
    if (error || std::exchange(waiter->answered, true)) return;
    waiter->check(true);
    std::erase(waiters_, waiter);
  });
}

namespace {

struct OpenRequests {
  HearReader heard;
  std::list<ReplyPtr> replies;
};

}  // namespace

void add_readers(Routes& routes, HearReader heard) {
  const auto open = std::make_shared<OpenRequests>(OpenRequests{std::move(heard), {}});
  routes.add("GET", "readers", [open](const HttpRequest& request, const ReplyPtr& reply) {
    const std::string reader = text_in(request, "reader");
    if (reader.empty()) throw BadRequest("'reader' is missing: the one that submits have named");
    const auto at = open->replies.insert(open->replies.end(), reply);
    open->heard(reader, true);
    // A reply that is dropped while the engine ends hangs up, and is no news of the reader then.
    reply->on_gone([weak = std::weak_ptr(open), at, reader] {
      const auto still_open = weak.lock();
      if (!still_open) return;
      const ReplyPtr gone = std::move(*at);
      still_open->replies.erase(at);
      still_open->heard(reader, false);
    });
  });
}

}  // namespace hpcbatch
