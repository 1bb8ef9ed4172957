#include "api/api.hpp"

#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "api/read/read_task.hpp"
#include "api/routes.hpp"
#include "failure/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

Retry read_retry(const boost::json::object& body, const std::vector<Selection>& tasks,
                 bool is_one) {
  Retry again{tasks, {}, {}};
  if (const auto* change = body.if_contains("needs")) again.change = read_needs_change(*change);
  if (const auto* only = body.if_contains("failed_only"))
    again.only.failed = bool_of(*only, "'failed_only'");
  if (const auto* words = body.if_contains("failures")) {
    for (const std::string& word : texts_of(*words, "'failures'")) {
      const auto failure = parse_failure_choice(word);
      if (!failure) throw BadRequest(fmt::format("'{}' is no failure; {}", word, kFailureChoices));
      again.only.failures.push_back(*failure);
    }
  }
  if (!is_one && (again.only.failed || !again.only.failures.empty() || again.change.any()))
    throw BadRequest("'needs', 'failed_only' and 'failures' belong to a retry");
  return again;
}

Update read_update(const boost::json::object& body, const std::vector<Selection>& tasks,
                   bool is_one) {
  Update update;
  const auto* set = body.if_contains("set");
  if (is_one != (set != nullptr))
    throw BadRequest(is_one ? "'set' is missing: a map of what is to change"
                            : "'set' belongs to an update");
  if (!is_one) return update;
  update.change = read_terms_change(*set);
  for (const Selection& one : tasks) {
    if (one.indices)
      throw BadRequest(fmt::format(
          "cannot update single tasks of {}: what they need is said of all of it; name {}",
          one.array.value, one.array.value));
    update.arrays.push_back(one.array);
  }
  return update;
}

void tell_changed(const std::string& verb, const Result<Changed>& changed, const ReplyPtr& reply) {
  if (!changed) return reply->error(400, changed.error().text + "; nothing was changed");
  boost::json::object counts{{"tasks", changed->tasks}};
  if (verb == "cancel" || verb == "hold") counts["at_pilots"] = changed->at_pilots;
  if (verb == "retry") {
    counts["dependants"] = changed->dependants;
    counts["others"] = changed->others;
    counts["later"] = changed->later;
  }
  reply->answer(200, std::move(counts));
}

}  // namespace

void Changes::add_to(Routes& routes) {
  routes.add("POST", "tasks/*", [this](HttpRequest& request, const ReplyPtr& reply) {
    change(request.path[2], request, reply);
  });
  routes.add("POST", "tasks/*/input", [this](HttpRequest& request, const ReplyPtr& reply) {
    take_input(parse_task(request.path[2]), request, reply);
  });
}

void Changes::change(const std::string& verb, const HttpRequest& request, const ReplyPtr& reply) {
  const boost::json::value body = parse_body(request.body);
  std::vector<Selection> chosen = read_selections(body);
  constexpr std::array<std::string_view, 6> kVerbs{"cancel", "hold",    "release",
                                                   "retry",  "requeue", "update"};
  if (std::find(kVerbs.begin(), kVerbs.end(), verb) == kVerbs.end()) {
    reply->error(404, fmt::format("tasks cannot be told to '{}'; they can be cancelled, held, "
                                  "released, retried, requeued and updated",
                                  verb));
    return;
  }
  const Update update = read_update(body.get_object(), chosen, verb == "update");
  if (const auto trouble = runtime_.store_refuses())
    return reply->error(503, *trouble + "; nothing was changed");
  const Retry again = read_retry(body.get_object(), chosen, verb == "retry");
  auto act = [this, verb, chosen, again, update, reply] {
    const auto answer = [reply, verb](const Result<Changed>& changed) {
      tell_changed(verb, changed, reply);
    };
    if (verb == "cancel") return runtime_.requests().cancel(chosen, answer);
    if (verb == "retry") return runtime_.requests().retry(again, answer);
    if (verb == "requeue") return runtime_.requests().requeue(chosen, answer);
    if (verb == "update") return runtime_.requests().update(update, answer);
    runtime_.requests().hold(chosen, verb == "hold", answer);
  };
  runtime_.read(
      [chosen](store::Store& store) -> std::string {
        for (const Selection& selection : chosen) {
          const auto row = store.history().array(selection.array);
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

void Changes::take_input(TaskId task, const HttpRequest& request, const ReplyPtr& reply) {
  if (request.body.size() > kLargestPart) {
    throw BadRequest(fmt::format(
        "a piece of input may have {} bytes at most; send it in smaller ones", kLargestPart));
  }
  const auto is_one = [&request](const char* name) {
    const auto at = request.query.find(name);
    return at != request.query.end() && at->second == "1";
  };
  const auto from = request.query.find("offset");
  std::optional<std::uint64_t> offset;
  if (from != request.query.end()) {
    const char* last = from->second.data() + from->second.size();
    const auto [stop, error] = std::from_chars(from->second.data(), last, offset.emplace());
    if (error != std::errc{} || stop != last)
      throw BadRequest(fmt::format("'offset={}' is no whole number", from->second));
  }
  runtime_.links().input(task, {request.body, is_one("end"), offset,
                                [reply](bool taken) {
                                  if (taken) {
                                    reply->answer(200, {{"taken", true}});
                                  } else {
                                    reply->error(
                                        404,
                                        "the task does not take this input: it or its input has "
                                        "ended, or what comes before is missing");
                                  }
                                },
                                is_one("ask")});
}

}  // namespace hpcbatch
