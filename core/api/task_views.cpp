#include "api/api.hpp"

#include "api/answers/submission_summary.hpp"
#include "api/answers/to_json.hpp"
#include "api/make/submitted_files.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "api/routes.hpp"
#include "failure/failure.hpp"
#include "model/batch_number.hpp"
#include "model/item.hpp"
#include "model/quantities.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// What it is called and runs.
void put_work(json::object& object, TaskId task, const TaskFacts& facts) {
  const store::ArrayRow& array = *facts.array;
  object["client"] = array.client;
  const wire::Start start = start_from_bytes(array.recipe);
  const PlaceValues values = place_values(start, task);
  if (task.index != 0) object["index"] = *values.index;
  if (values.number) object["batch_number"] = *values.number;
  if (!array.name.empty())
    object["name"] =
        task.index != 0 ? with_places(array.name, values, facts.item) : without_doubled(array.name);
  if (!array.tool.empty()) object["tool"] = array.tool;
  json::array command;
  for (const std::string& argument : start.argv()) {
    // As it is run: whoever looks at one task wants to try it by hand.
    command.push_back(json::string(
        facts.item && task.index != 0 ? with_item(argument, *facts.item, task.index) : argument));
  }
  object["command"] = std::move(command);
  if (facts.item && task.index != 0) put_item(object, *facts.item);
  if (start.has_service()) object["service"] = start.service().name();
  if (!start.directory().empty())
    object["directory"] =
        task.index != 0 ? with_places(start.directory(), values, facts.item) : start.directory();
  put(object, output_files(start, filled_in(array.recipe), task, facts.item));
}

void put_result(json::object& object, const TaskFacts& facts) {
  const store::ResultRow& result = *facts.result;
  const Outcome& outcome = result.outcome;
  put_outcome(object, outcome);
  // Until it ran at all: how long it stood as failed before somebody retried it is no wait.
  std::optional<Time> first = outcome.started;
  for (const store::AttemptRow& row : facts.attempts) {
    if (const auto& started = row.outcome.started)
      first = std::min(first.value_or(*started), *started);
  }
  if (first) object["wait_s"] = std::max(0.0, seconds(*first - facts.array->submitted));
  if (outcome.peak_memory != 0) object["peak_memory"] = outcome.peak_memory;
  if (outcome.cpu_time != Duration{}) object["cpu_s"] = seconds(outcome.cpu_time);
  if (outcome.staged_in != Duration{}) object["staged_in_s"] = seconds(outcome.staged_in);
  if (outcome.staged_out != Duration{}) object["staged_out_s"] = seconds(outcome.staged_out);
  if (outcome.read_bytes != 0) object["read"] = outcome.read_bytes;
  if (outcome.written_bytes != 0) object["written"] = outcome.written_bytes;
  if (outcome.gpu) {
    object["gpu_busy"] = outcome.gpu->busy;
    object["gpu_memory"] = outcome.gpu->memory;
    if (outcome.gpu->energy_mj != 0)
      object["gpu_energy_wh"] = static_cast<double>(outcome.gpu->energy_mj) / 3.6e6;
  }
  if (!outcome.cpus.empty()) object["cpu_list"] = outcome.cpus;
  if (!outcome.device.empty()) object["device"] = outcome.device;
  if (!result.pilot.empty()) object["pilot"] = result.pilot;
  if (!result.node.empty()) object["node"] = result.node;
  if (facts.allocation) {
    object["allocation"] = facts.allocation->id.name;
    object["site"] = facts.allocation->site;
  }
  if (result.attempt != 0) object["attempt"] = result.attempt;
  put_metrics(object, facts.metrics);
}

json::array attempts_json(const std::vector<store::AttemptRow>& rows) {
  json::array attempts;
  for (const store::AttemptRow& row : rows) {
    json::object past{{"attempt", row.attempt}};
    put_outcome(past, row.outcome);
    if (!row.pilot.empty()) past["pilot"] = row.pilot;
    if (!row.node.empty()) past["node"] = row.node;
    attempts.push_back(std::move(past));
  }
  return attempts;
}

void add_text(json::array& details, const std::string& text) {
  details.push_back(json::string(text));
}

std::string place_of(const std::string& pilot, const std::string& node) {
  return fmt::format("{}{}{}", pilot, node.empty() ? "" : " at ", node);
}

std::string end_in_words(const Outcome& outcome) {
  std::string text(to_string(outcome.failure));
  if (outcome.failure == Failure::ToolFailed)
    text += fmt::format(" with exit code {}", outcome.exit_code);
  if (outcome.signal != 0) text += fmt::format(" by signal {}", outcome.signal);
  const bool is_said = outcome.failure == Failure::ToolFailed &&
                       outcome.message == fmt::format("exit {}", outcome.exit_code);
  if (outcome.failure == Failure::Cancelled && !outcome.message.empty()) return outcome.message;
  if (!outcome.message.empty() && !is_said) text += ": " + outcome.message;
  return text;
}

void add_what_it_took(json::array& details, const store::ResultRow& result) {
  const Outcome& outcome = result.outcome;
  if (outcome.peak_memory != 0) add_text(details, "peak memory " + show_size(outcome.peak_memory));
  if (outcome.started) add_text(details, "ran " + show_duration(outcome.ended - *outcome.started));
  // It was on its way there.
  const bool never_ran = outcome.failure == Failure::Cancelled && !outcome.started;
  if (!result.pilot.empty() && !never_ran)
    add_text(details, "on pilot " + place_of(result.pilot, result.node));
}

}  // namespace

void TaskViews::read_facts(TaskId task, std::function<void(TaskFacts)> answer) {
  const Lease* lease = runtime_.engine().pilots().lease(task);
  const std::uint64_t epoch = lease ? lease->attempt.epoch : 0;
  runtime_.look(
      [task, epoch](store::Store& store) {
        TaskFacts facts{store.history().array(task.array),
                        store.history().result(task),
                        store.history().attempts(task),
                        std::nullopt,
                        std::nullopt,
                        {},
                        {}};
        if (facts.array && needs_items(facts.array->recipe))
          facts.item = item_of(facts.array->recipe, store.history().item(task));
        if (facts.array)
          facts.needs = facts.result ? store.history().needs_then(*facts.array, *facts.result)
                                     : store.history().needs_then(*facts.array, epoch);
        if (facts.result) {
          facts.metrics = store.history().metrics(task, facts.result->epoch);
          if (const auto pilot = parse_pilot(facts.result->pilot))
            facts.allocation = store.history().allocation(pilot->allocation.name);
        }
        return facts;
      },
      std::move(answer));
}

boost::json::object TaskViews::task_json(TaskId task, const TaskFacts& facts) const {
  const store::ArrayRow& array = *facts.array;
  json::object object{{"id", to_string(task)}, {"array", std::to_string(task.array.value)}};
  const auto live = runtime_.engine().state_of(task);
  const TaskState state = live           ? *live
                          : facts.result ? state_after(facts.result->outcome.failure)
                                         : TaskState::Running;  // the store cannot take its end
  object["state"] = std::string(to_string(state));
  put_work(object, task, facts);
  object["needs"] = to_json(facts.needs);
  if (task.index == 0) put_course(object, array.after, array.course.get());
  object["submitted_at"] = seconds(array.submitted);
  if (facts.result && !live) put_result(object, facts);
  put_lease(object, task);
  if (!facts.attempts.empty()) object["attempts"] = attempts_json(facts.attempts);
  return object;
}

void TaskViews::put_lease(json::object& object, TaskId task) const {
  const Lease* lease = runtime_.engine().pilots().lease(task);
  if (!lease) return;
  object["attempt"] = lease->attempt.number;
  if (lease->started) object["started_at"] = seconds(*lease->started);
  object["pilot"] = to_string(lease->pilot);
  object["allocation"] = lease->pilot.allocation.name;
  const PilotState* pilot = runtime_.engine().pilots().find(lease->pilot);
  if (!pilot) return;
  object["site"] = pilot->site;
  if (!pilot->node.empty()) object["node"] = pilot->node;
}

void TaskViews::add_to(Routes& routes) {
  routes.add("GET", "tasks",
             [this](HttpRequest& request, const ReplyPtr& reply) { list(request, reply); });
  routes.add("GET", "tasks/*", [this](HttpRequest& request, const ReplyPtr& reply) {
    show(parse_task(request.path[2]), reply);
  });
  routes.add("GET", "tasks/*/explain", [this](HttpRequest& request, const ReplyPtr& reply) {
    explain(parse_task(request.path[2]), reply);
  });
}

void TaskViews::show(TaskId task, const ReplyPtr& reply) {
  read_facts(task, [this, task, reply](const TaskFacts& facts) {
    if (!facts.array || (!facts.array->indices.contains(task.index) && task.index != 0)) {
      return reply->error(404, fmt::format("there is no task {}", to_string(task)));
    }
    if (!facts.array->indices.contains(task.index)) {
      return reply->error(
          400,
          fmt::format("{0} is an array; name one of its tasks, like {0}.{1}, or all of it, {0}",
                      task.array.value, facts.array->indices.ranges().back().first));
    }
    reply->answer(200, task_json(task, facts));
  });
}

void TaskViews::explain(TaskId task, const ReplyPtr& reply) {
  read_facts(task, [this, task, reply](const TaskFacts& facts) {
    if (!facts.array) return reply->error(404, fmt::format("there is no task {}", to_string(task)));
    if (facts.array->indices.contains(task.index)) return explain_one(task, facts, reply);
    if (task.index == 0) return submissions_.explain(*facts.array, reply);
    reply->error(404, fmt::format("there is no task {}", to_string(task)));
  });
}

/// Of a task that waits for files, or for its outputs to come back, how far the large one has come
/// that is moved now, be it its own or one before it.
void TaskViews::add_files_on_their_way(json::array& details, TaskId task) const {
  const ArrayState* array = runtime_.engine().tasks().find(task.array);
  if (!array) return;
  const Lease* lease = runtime_.engine().pilots().lease(task);
  for (const std::string& site : array->terms->needs.staged_to) {
    const SiteFiles* files = runtime_.files_of(site);
    const SiteFiles::Figures figures = files ? files->figures() : SiteFiles::Figures{};
    const auto staging = array->files_staging().find(site);
    const bool is_awaited =
        figures.copy && (figures.copy->is_sent ? staging != array->files_staging().end() &&
                                                     staging->second.contains(task.index)
                                               : lease && lease->has_left);
    if (is_awaited) add_text(details, fmt::format("site {}: {}", site, figures.copy_in_words()));
  }
}

void TaskViews::explain_one(TaskId task, const TaskFacts& facts, const ReplyPtr& reply) {
  json::array details;
  for (const store::AttemptRow& row : facts.attempts) {
    add_text(details,
             fmt::format("attempt {} on {}: {}: {}", row.attempt, place_of(row.pilot, row.node),
                         to_string(row.outcome.failure), row.outcome.message));
  }
  if (const auto trouble = runtime_.store_trouble()) add_text(details, *trouble);
  TaskState state = TaskState::Running;
  std::string text = "it is over, and how it ended is not in the store yet";
  if (const auto why = runtime_.engine().explain(task, runtime_.now())) {
    for (const std::string& detail : why->details) add_text(details, detail);
    add_files_on_their_way(details, task);
    state = why->state;
    text = why->text;
  } else if (facts.result) {
    add_what_it_took(details, *facts.result);
    const Failure failure = facts.result->outcome.failure;
    if (const auto more =
            retry_with_more({{failure, facts.needs}}, facts.array->needs, to_string(task), false))
      add_text(details, *more);
    if (facts.array->needs.guess) add_text(details, guess_in_words(facts.array->needs));
    state = state_after(failure);
    text = end_in_words(facts.result->outcome);
  }
  add(details, output_files(facts.array->recipe, task, facts.item));
  json::object why{{"id", to_string(task)},
                   {"state", std::string(to_string(state))},
                   {"text", text},
                   {"details", std::move(details)}};
  if (facts.item && task.index != 0) put_item(why, *facts.item);
  reply->answer(200, std::move(why));
}

namespace {

store::Filter filter_of(const HttpRequest& request) {
  store::Filter filter;
  filter.limit = std::min<std::uint32_t>(number_in(request, "limit", 100), 100'000);
  filter.client = text_in(request, "client");
  if (const std::string array = text_in(request, "array"); !array.empty())
    filter.array = parse_selection(array).array;
  filter.state = word_in<TaskState>(request, "state", parse_task_state, kTaskStates);
  filter.failure =
      word_in<FailureChoice>(request, "failure", parse_failure_choice, kFailureChoices);
  filter.printed = text_in(request, "printed") == "1";
  if (const std::string before = text_in(request, "before"); !before.empty()) {
    const Selection last = parse_selection(before);
    filter.before = TaskId{last.array, last.indices ? last.indices->ranges().back().first : 0};
  }
  if (const double since = seconds_in(request, "ended_since", 0); since > 0)
    filter.ended_since =
        Time{} + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(since));
  return filter;
}

bool admits_ended(const store::Filter& filter) {
  return !filter.state || *filter.state == TaskState::Done || *filter.state == TaskState::Failed ||
         *filter.state == TaskState::Cancelled;
}

/// What an array waits for and what has not come yet.
void put_open(json::object& line, const ArrayState& array) {
  std::vector<Dependency> open;
  for (const auto& [id, one] : array.open()) open.push_back(one.on);
  if (!open.empty()) line["after_open"] = to_json(open);
}

/// What the engine holds of one array: each task that a pilot has, and those that wait as one.
class LiveLines {
 public:
  /// `put_lease` adds where a task is that a pilot has.
  using PutLease = std::function<void(json::object&, TaskId)>;
  LiveLines(const ListAsked& asked, const Engine& engine, Lines& lines, PutLease put_lease)
      : asked_(asked),
        filter_(asked.filter),
        engine_(engine),
        lines_(lines),
        put_lease_(std::move(put_lease)) {}

  bool admits(ArrayId id, const ArrayState& array) const {
    if (filter_.failure || (filter_.array && *filter_.array != id)) return false;
    if (filter_.before && filter_.before->array < id) return false;
    return filter_.client.empty() ||
           engine_.tasks().queue().name_of(array.client) == filter_.client;
  }
  void add(ArrayId id, const ArrayState& array) {
    IndexSet waiting = array.tasks.open();
    waiting.remove(array.tasks.held());
    for (const IndexRange& range : array.tasks.leased().ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i) {
        const TaskId task{id, static_cast<std::uint32_t>(i)};
        const TaskState state = *engine_.state_of(task);
        if (state == TaskState::Waiting) continue;
        waiting.remove(task.index);
        add(task, IndexRange{task.index, task.index}, state);
      }
    }
    if (filter_.printed) return;  // what runs may have
    add_set(id, array.tasks.held(), TaskState::Held);
    if (!asked_.full) return add_set(id, waiting, TaskState::Waiting);
    add_set(id, waiting.intersection(array.tasks.blocked()), TaskState::Waiting,
            array.open().empty() ? "begin" : "tasks");
    waiting.remove(array.tasks.blocked());
    const std::uint32_t most = array.terms->max_running;
    const bool is_full = most != 0 && array.tasks.leased().size() >= most;
    add_set(id, waiting, TaskState::Waiting, is_full ? "its_array" : "room");
  }

 private:
  void add(TaskId first, IndexRange range, TaskState state, const char* waits_for = nullptr) {
    if (filter_.state && *filter_.state != state) return;
    if (filter_.before && !(first < *filter_.before)) return;
    add_range(lines_, asked_, first.array, range, [&](IndexRange part) {
      json::object line =
          line_of(id_of(first.array, part), state, std::uint64_t{part.last} - part.first + 1);
      if (waits_for != nullptr) line["waits_for"] = waits_for;
      if (asked_.full && (state == TaskState::Waiting || state == TaskState::Held))
        put_open(line, *engine_.tasks().find(first.array));
      if (asked_.full && part.first == part.last) put_lease_(line, TaskId{first.array, part.first});
      return line;
    });
  }
  /// A line for neighbours, from the highest down, until there are enough.
  void add_set(ArrayId id, const IndexSet& set, TaskState state, const char* waits_for = nullptr) {
    std::uint32_t added = 0;
    for (const IndexRange& range : set.ranges()) {
      const TaskId first{id, range.first};
      if (filter_.before && !(first < *filter_.before)) continue;
      if (++added > filter_.limit) return;
      add(first, range, state, waits_for);
    }
  }

  const ListAsked& asked_;
  const store::Filter& filter_;
  const Engine& engine_;
  Lines& lines_;
  PutLease put_lease_;
};

/// Of arrays that are waited for, where their users begin to count.
void put_waits(json::object& line, store::Store& store, const std::vector<Dependency>& after) {
  json::object first;
  json::array delays;
  bool is_delayed = false;
  for (const Dependency& on : after) {
    delays.emplace_back(seconds(on.delay));
    is_delayed = is_delayed || on.delay > Duration{};
    const std::string id = std::to_string(on.array.value);
    const auto row = first.contains(id) ? std::nullopt : store.history().array(on.array);
    // A task alone has the index 0.
    if (row && !row->indices.contains(0))
      first[id] = start_from_bytes(row->recipe).from_zero() ? 0 : 1;
  }
  if (is_delayed) line["after_delays"] = std::move(delays);
  if (!first.empty()) line["after_first"] = std::move(first);
}

/// Of the leases of tasks that are with pilots: what each was given is found by it.
using Epochs = std::map<TaskId, std::uint64_t>;

/// What all tasks of an array have in common, in the words of `GET /v1/arrays/ID`.
void put_terms(json::object& line, store::Store& store, const store::ArrayRow& row, TaskId task,
               const Epochs& leased) {
  line["array"] = std::to_string(row.id.value);
  line["indices"] = to_string(row.indices);
  const auto result = line.contains("ended_at") ? store.history().result(task) : std::nullopt;
  // What runs has what it was given, whatever was changed since.
  const auto needs = [&] {
    if (result) return store.history().needs_then(row, *result);
    const auto lease = leased.find(task);
    return lease == leased.end() ? row.needs : store.history().needs_then(row, lease->second);
  };
  line["needs"] = to_json(needs());
  line["priority"] = row.priority;
  if (row.max_running != 0) line["max_running"] = row.max_running;
  put_course(line, row.after, row.course.get());
  put_waits(line, store, row.after);
  const wire::Start start = start_from_bytes(row.recipe);
  if (start.from_zero()) line["from_zero"] = true;
  if (start.numbered_size() != 0) line["numbered"] = true;
  if (!start.directory().empty()) line["directory"] = start.directory();
}

/// What it runs, and the files of its streams.  Of what waits in an array of a batch script, and of
/// several tasks at once, they have SLURM's "no index".
void put_run(json::object& line, store::Store& store, const store::ArrayRow& row, TaskId task) {
  constexpr std::uint32_t kNoIndex = 4'294'967'294;
  const wire::Start start = start_from_bytes(row.recipe);
  PlaceValues values = place_values(start, task);
  std::optional<Item> item;
  const json::string& state = line.at("state").get_string();
  const bool waits = task.index != 0 && (state == "waiting" || state == "held");
  if (line.at("tasks").to_number<std::uint64_t>() != 1 || (waits && start.numbered_size() != 0)) {
    values.index = kNoIndex;
    values.number = batch_number(row.id);
  } else if (needs_items(row.recipe)) {
    item = item_of(row.recipe, store.history().item(task));
  }
  const auto put_file = [&](const char* key, const std::string& file) {
    if (!file.empty()) line[key] = with_places(file, values, item);
  };
  put_file("stdin", start.standard_input());
  put_file("stdout", start.standard_output());
  put_file("stderr", start.standard_error());
  json::array command;
  for (const std::string& argument : start.argv()) command.push_back(json::string(argument));
  line["command"] = std::move(command);
  static constexpr std::array<std::pair<std::string_view, const char*>, 3> kSlurm{
      {{"SLURM_NTASKS", "slurm_tasks"},
       {"SLURM_MEM_PER_CPU", "slurm_memory_per_cpu"},
       {"SLURM_JOB_COMMENT", "slurm_comment"}}};
  for (const wire::Variable& variable : start.variables()) {
    for (const auto& [name, key] : kSlurm)
      if (variable.name() == name) line[key] = variable.value();
  }
}

/// What its array says of it; of one task also its item.
void put_array(json::object& line, store::Store& store, const store::ArrayRow& row, TaskId task) {
  line["client"] = row.client;
  line["submitted_at"] = seconds(row.submitted);
  if (!row.tool.empty()) line["tool"] = row.tool;
  const bool is_one = task.index != 0 && line.at("tasks").to_number<std::uint64_t>() == 1;
  std::optional<Item> item;
  if (is_one && needs_items(row.recipe)) item = item_of(row.recipe, store.history().item(task));
  const std::uint32_t index =
      task.index - (is_one && start_from_bytes(row.recipe).from_zero() ? 1 : 0);
  if (is_one) line["index"] = index;
  if (item) put_item_and_columns(line, *item);
  if (!row.name.empty())
    line["name"] = is_one ? with_places(row.name, {task, index}, item) : without_doubled(row.name);
}

/// The lines with what their arrays say; nothing where there is no such array.
std::optional<json::array> listed(store::Store& store, const ListAsked& asked, Lines lines,
                                  const Epochs& leased) {
  const store::Filter& filter = asked.filter;
  if (admits_ended(filter) && (!asked.open || filter.ended_since)) add_ended(store, asked, lines);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (lines.size() > filter.limit) lines.resize(filter.limit);
  if (filter.array && !store.history().array(*filter.array)) return std::nullopt;
  json::array tasks;
  std::optional<store::ArrayRow> row;
  for (auto& [task, line] : lines) {
    if (!row || row->id != task.array) row = store.history().array(task.array);
    if (row) put_array(line, store, *row, task);
    if (row && asked.full) put_terms(line, store, *row, task, leased);
    if (row && asked.files) put_run(line, store, *row, task);
    tasks.push_back(std::move(line));
  }
  return tasks;
}

}  // namespace

void TaskViews::list(const HttpRequest& request, const ReplyPtr& reply) {
  const ListAsked asked{filter_of(request), text_in(request, "apart") == "1",
                        text_in(request, "open") == "1", text_in(request, "full") == "1",
                        text_in(request, "files") == "1"};
  const store::Filter& filter = asked.filter;
  Lines lines;
  Epochs leased;
  LiveLines live(asked, runtime_.engine(), lines, [&](json::object& line, TaskId task) {
    put_lease(line, task);
    const Lease* lease = asked.full ? runtime_.engine().pilots().lease(task) : nullptr;
    if (lease) leased.emplace(task, lease->attempt.epoch);
  });
  const auto& arrays = runtime_.engine().tasks().arrays();
  // From the newest, until there are enough.
  for (auto at = arrays.rbegin(); at != arrays.rend() && lines.size() < filter.limit; ++at) {
    if (live.admits(at->first, at->second)) live.add(at->first, at->second);
  }
  runtime_.look(
      [asked, lines = std::move(lines), leased = std::move(leased)](store::Store& store) mutable {
        return listed(store, asked, std::move(lines), leased);
      },
      [reply, filter = asked.filter](std::optional<json::array> tasks) {
        if (!tasks)
          return reply->error(404, fmt::format("there is no task {}", filter.array->value));
        reply->answer(200, {{"tasks", std::move(*tasks)}});
      });
}

}  // namespace hpcbatch
