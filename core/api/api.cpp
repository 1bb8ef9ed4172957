#include "api/api.hpp"

#include "api/read/json_words.hpp"
#include "api/read/read_task.hpp"
#include "api/read/selections.hpp"
#include "api/to_json.hpp"
#include "loop/asio.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace hpcbatch {

namespace {

/// Whoever looks while the store is in trouble is told so with the answer, which may be old.
class ToldOfTrouble final : public HttpReply {
 public:
  ToldOfTrouble(ReplyPtr reply, std::string trouble)
      : reply_(std::move(reply)), trouble_(std::move(trouble)) {}
  void answer(int status, const boost::json::value& body) override {
    boost::json::value told = body;
    if (status == 200 && told.is_object()) told.get_object()["trouble"] = valid_utf8(trouble_);
    reply_->answer(status, told);
  }
  void line(const boost::json::value& object) override { reply_->line(object); }
  void finish() override { reply_->finish(); }
  std::size_t unsent() const override { return reply_->unsent(); }
  void when_sent(std::function<void()> then) override { reply_->when_sent(std::move(then)); }
  void on_gone(std::function<void()> then) override { reply_->on_gone(std::move(then)); }

 private:
  ReplyPtr reply_;
  std::string trouble_;
};

Retry read_retry(const boost::json::object& body, const std::vector<Selection>& tasks,
                 bool is_one) {
  Retry again{tasks, false, {}};
  if (const auto* change = body.if_contains("needs")) again.change = read_needs_change(*change);
  if (const auto* only = body.if_contains("failed_only"))
    again.failed_only = bool_of(*only, "'failed_only'");
  if (!is_one && (again.failed_only || again.change.any()))
    throw BadRequest("'needs' and 'failed_only' belong to a retry");
  return again;
}

}  // namespace

Api::Api(Runtime& runtime, ToolShelf& tools, EngineFacts facts)
    : runtime_(runtime), tools_(tools), facts_(std::move(facts)) {
  runtime_.on_ended([this](ArrayId) {
    std::erase_if(waiters_, [](const std::shared_ptr<Waiter>& waiter) {
      waiter->answered = waiter->answered || waiter->check(false);
      if (waiter->answered) waiter->timer.cancel();
      return waiter->answered;
    });
  });
}

Api::~Api() = default;

void Api::handle(HttpRequest request, ReplyPtr reply) {
  try {
    if (const auto trouble = runtime_.store_trouble(); trouble && request.method == "GET")
      reply = std::make_shared<ToldOfTrouble>(std::move(reply), *trouble);
    const auto& path = request.path;
    if (path.size() < 2 || path[0] != "v1") {
      reply->error(404, "there is nothing here; docs/api.md lists the requests");
    } else if (path[1] == "tasks") {
      tasks(std::move(request), reply);
    } else if (path[1] == "keys") {
      keys(request, reply);
    } else if (path[1] == "arrays") {
      arrays(request, reply);
    } else if (path[1] == "events") {
      events(request, reply);
    } else if (path[1] == "sites") {
      sites(request, reply);
    } else if (path[1] == "allocations") {
      allocations(request, reply);
    } else if (path[1] == "pilots") {
      pilots(request, reply);
    } else if (path[1] == "tools") {
      tools(request, reply);
    } else if (path[1] == "submits") {
      post_submits(request, reply);
    } else if (path[1] == "engine") {
      engine(request, reply);
    } else if (path[1] == "dropboxes") {
      dropbox(request, reply);
    } else {
      reply->error(404, fmt::format("there is no /v1/{}; docs/api.md lists the requests", path[1]));
    }
  } catch (const BadRequest& e) {
    reply->error(400, e.what());
  }
}

void Api::tasks(HttpRequest request, const ReplyPtr& reply) {
  const auto& path = request.path;
  if (path.size() == 2) {
    if (request.method == "POST") return post_tasks(std::move(request.body), reply);
    if (request.method == "GET") return list_tasks(request, reply);
    return reply->error(400, "/v1/tasks takes GET and POST");
  }
  if (request.method == "POST" && path.size() == 3) {
    if (path[2] == "wait") return wait_tasks(request, reply);
    if (path[2] == "try") return try_tasks(std::move(request.body), reply);
    return change_tasks(path[2], request, reply);
  }
  one_task(request, reply);
}

void Api::one_task(Request request, const ReplyPtr& reply) {
  const auto& path = request.path;
  const TaskId task = parse_task(path[2]);
  const std::string what = path.size() > 3 ? path[3] : "";
  if (request.method == "POST" && what == "input") return take_input(task, request, reply);
  if (request.method != "GET" || path.size() > 4)
    return reply->error(404, "a task has no such request; docs/api.md lists them");
  if (what.empty()) return show_task(task, reply);
  if (what == "explain") return explain_task(task, reply);
  if (what == "log") return log_of_task(task, request, reply);
  reply->error(404, fmt::format("a task has no '{}'; docs/api.md lists the requests", what));
}

void Api::wait_for_ends(double limit, const ReplyPtr& reply, std::function<bool(bool)> check) {
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

std::string Api::site_of(const std::string& pilot) const {
  const auto id = parse_pilot(pilot);
  const AllocationEntry* entry = id ? runtime_.engine().sites().find(id->allocation) : nullptr;
  return entry ? entry->facts.site : "";
}

void Api::change_tasks(const std::string& verb, Request request, const ReplyPtr& reply) {
  const boost::json::value body = parse_body(request.body);
  std::vector<Selection> chosen = read_selections(body);
  if (verb != "cancel" && verb != "hold" && verb != "release" && verb != "retry") {
    reply->error(
        404,
        fmt::format("tasks cannot be told to '{}'; they can be cancelled, held, released, retried",
                    verb));
    return;
  }
  if (const auto trouble = runtime_.store_refuses())
    return reply->error(503, *trouble + "; nothing was changed");
  const Retry again = read_retry(body.get_object(), chosen, verb == "retry");
  auto act = [this, verb, chosen, again, reply] {
    const auto answer = [reply](const Result<std::uint64_t>& tasks) {
      if (!tasks) return reply->error(400, tasks.error().text + "; nothing was changed");
      reply->answer(200, {{"tasks", *tasks}});
    };
    if (verb == "cancel") return runtime_.cancel(chosen, answer);
    if (verb == "retry") return runtime_.retry(again, answer);
    runtime_.hold(chosen, verb == "hold", answer);
  };
  runtime_.read(
      [chosen](store::Store& store) -> std::string {
        for (const Selection& selection : chosen) {
          const auto row = store.array(selection.array);
          if (!row) return std::to_string(selection.array.value);
          if (!selection.indices) continue;
          IndexSet unknown = *selection.indices;
          unknown.remove(row->indices);
          if (!unknown.empty())
            return fmt::format("{}.{}", selection.array.value, to_string(unknown));
        }
        return "";
      },
      [reply, act = std::move(act)](const std::string& unknown) {
        if (!unknown.empty()) {
          reply->error(404, fmt::format("there is no task {}; nothing was changed", unknown));
        } else {
          act();
        }
      });
}

void Api::take_input(TaskId task, Request request, const ReplyPtr& reply) {
  if (request.body.size() > kLargestPart) {
    throw BadRequest(fmt::format(
        "a piece of input may have {} bytes at most; send it in smaller ones", kLargestPart));
  }
  const auto end = request.query.find("end");
  const auto from = request.query.find("offset");
  std::optional<std::uint64_t> offset;
  if (from != request.query.end()) {
    const char* last = from->second.data() + from->second.size();
    const auto [stop, error] = std::from_chars(from->second.data(), last, offset.emplace());
    if (error != std::errc{} || stop != last)
      throw BadRequest(fmt::format("'offset={}' is no whole number", from->second));
  }
  runtime_.input(task, {request.body, end != request.query.end() && end->second == "1", offset,
                        [reply](bool taken) {
                          if (taken) {
                            reply->answer(200, {{"taken", true}});
                          } else {
                            reply->error(404,
                                         "the task does not take this input: it or its input has "
                                         "ended, or what comes before is missing");
                          }
                        }});
}

}  // namespace hpcbatch
