#include "api/api.hpp"

#include "api/make/submitted_files.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "api/read/read_task.hpp"
#include "api/routes.hpp"
#include "documents/task_values.hpp"
#include "failure/failure.hpp"
#include "model/quantities.hpp"
#include "wire/wire.pb.h"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
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

TaskSignal read_signal(const boost::json::object& body, bool is_one) {
  const auto* name = body.if_contains("signal");
  const auto* to = body.if_contains("to");
  if (!is_one && (name || to)) throw BadRequest("'signal' and 'to' belong to a signal");
  if (!is_one) return {};
  if (!name) throw BadRequest("'signal' is missing: a name such as USR1, or a number");
  const std::string said = text_of(*name, "'signal'");
  TaskSignal signal{static_cast<std::uint32_t>(parse_signal(said)), TaskSignal::To::All};
  if (signal.number == 0)
    throw BadRequest(fmt::format("'{}' is not a signal; write a name such as USR1", said));
  const std::string whom = to ? text_of(*to, "'to'") : "all";
  constexpr std::array<std::string_view, 3> kWhom{"all", "first", "steps"};
  const auto at = std::find(kWhom.begin(), kWhom.end(), whom);
  if (at == kWhom.end())
    throw BadRequest(fmt::format(
        "'to' is '{}'; say all, first or steps: which processes of the task are meant", whom));
  signal.to = static_cast<TaskSignal::To>(at - kWhom.begin());
  return signal;
}

/// Bytes, where a batch script asked for memory so and it was not said otherwise since.
std::optional<double> memory_per_cpu(const store::ArrayRow& row) {
  const wire::Start start = start_from_bytes(row.recipe);
  for (const wire::Variable& variable : start.variables()) {
    if (variable.name() != "SLURM_MEM_PER_CPU") continue;
    const auto each = static_cast<double>(parse_size(variable.value() + "M").value_or(0));
    const Resources& needs = row.needs.amounts;
    const auto now = Amount::of(std::llround(each * needs.get(kCpus).value()));
    if (each > 0 && needs.get(kMemory) == now) return each;
  }
  return std::nullopt;
}

/// With other cpus, memory that was asked for each of them is another; why it cannot be said.
std::string put_memory_of_cpus(Update& update, store::Store& store) {
  Resources& amounts = update.change.needs.amounts;
  if (amounts.get(kCpus) == Amount{} || amounts.get(kMemory) != Amount{}) return "";
  std::optional<std::optional<double>> all;
  for (const ArrayId id : update.arrays) {
    const auto row = store.history().array(id);
    const auto each = row ? memory_per_cpu(*row) : std::nullopt;
    if (all && *all != each)
      return fmt::format(
          "some of them, such as {}, have memory for each cpu; update them one by "
          "one, or say 'memory' too",
          id.value);
    all = each;
  }
  if (all && *all)
    amounts.set(kMemory, Amount::of(std::llround(**all * amounts.get(kCpus).value())));
  return "";
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

/// The first that there is not; empty: all are there.
std::string unknown_of(const std::vector<Selection>& chosen, store::Store& store) {
  for (const Selection& selection : chosen) {
    const auto row = store.history().array(selection.array);
    if (!row) return std::to_string(selection.array.value);
    if (!selection.indices) continue;
    IndexSet unknown = *selection.indices;
    unknown.remove(row->indices);
    if (!unknown.empty()) return fmt::format("{}.{}", selection.array.value, to_string(unknown));
  }
  return "";
}

/// What is to be changed, as the store knows it.
struct ChosenTasks {
  std::string unknown, trouble;
  std::vector<Selection> tasks;
  Update update;
};

ChosenTasks find_chosen(const Chosen& chosen, Update update, store::Store& store) {
  ChosenTasks found{unknown_of(chosen.tasks, store), {}, chosen.tasks, std::move(update)};
  for (const auto& [first, last] : chosen.submits) {
    const std::vector<ArrayId> ids = store.history().ids_of_submit(first, last);
    const bool is_known = !ids.empty() && ids.back() == last;
    if (!is_known && found.unknown.empty())
      found.unknown = fmt::format("{}-{}", first.value, last.value);
    for (const ArrayId id : ids) found.tasks.push_back({id, std::nullopt});
    if (found.update.change.any())
      found.update.arrays.insert(found.update.arrays.end(), ids.begin(), ids.end());
  }
  if (found.unknown.empty()) found.trouble = put_memory_of_cpus(found.update, store);
  return found;
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
  Chosen chosen = read_chosen(body);
  constexpr std::array<std::string_view, 7> kVerbs{"cancel",  "hold",   "release", "retry",
                                                   "requeue", "update", "signal"};
  if (std::find(kVerbs.begin(), kVerbs.end(), verb) == kVerbs.end()) {
    reply->error(404, fmt::format("tasks cannot be told to '{}'; they can be cancelled, held, "
                                  "released, retried, requeued, updated and signalled",
                                  verb));
    return;
  }
  Update update = read_update(body.get_object(), chosen.tasks, verb == "update");
  const TaskSignal signal = read_signal(body.get_object(), verb == "signal");
  if (const auto trouble = runtime_.store_refuses())
    return reply->error(503, *trouble + "; nothing was changed");
  Retry again = read_retry(body.get_object(), {}, verb == "retry");
  auto act = [this, verb, again, signal, reply](ChosenTasks found) mutable {
    const auto answer = [reply, verb](const Result<Changed>& changed) {
      tell_changed(verb, changed, reply);
    };
    if (verb == "cancel") return runtime_.requests().cancel(found.tasks, answer);
    again.tasks = found.tasks;
    if (verb == "retry") return runtime_.requests().retry(again, answer);
    if (verb == "requeue") return runtime_.requests().requeue(found.tasks, answer);
    if (verb == "signal")
      return reply->answer(200, {{"tasks", runtime_.links().signal(found.tasks, signal)}});
    if (verb == "update") return runtime_.requests().update(std::move(found.update), answer);
    runtime_.requests().hold(found.tasks, verb == "hold", answer);
  };
  runtime_.read(
      [chosen = std::move(chosen), update = std::move(update)](store::Store& store) mutable {
        return find_chosen(chosen, std::move(update), store);
      },
      [reply, act = std::move(act)](ChosenTasks found) mutable {
        if (!found.unknown.empty())
          return reply->error(
              404, fmt::format("there is no task {}; nothing was changed", found.unknown));
        if (!found.trouble.empty())
          return reply->error(400, found.trouble + "; nothing was changed");
        act(std::move(found));
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
    offset = number_in<std::uint64_t>(from->second);
    if (!offset) throw BadRequest(fmt::format("'offset={}' is no whole number", from->second));
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
