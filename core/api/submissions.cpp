// What there is to see of submissions as a whole: which there are, one in full, why one is as it
// is.
#include "api/api.hpp"

#include "api/answers/submission_summary.hpp"
#include "api/answers/to_json.hpp"
#include "api/make/submitted_files.hpp"
#include "api/read/read_request.hpp"
#include "api/routes.hpp"
#include "failure/failure.hpp"
#include "model/quantities.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::uint32_t kMostOnAPage = 10'000;
// Of its command, a list shows no more.
constexpr std::size_t kCommandShown = 1000;

/// In the order in which one of them says what the whole is doing.
constexpr std::array kStates = {TaskState::Running,  TaskState::Finishing, TaskState::Unknown,
                                TaskState::Waiting,  TaskState::Held,      TaskState::Failed,
                                TaskState::Cancelled};

void put_command(json::object& object, const std::string& recipe) {
  json::array command;
  std::size_t shown = 0;
  const wire::Start whole = start_from_bytes(recipe);
  if (!whole.follows().empty()) {
    json::array follows;
    for (const std::uint64_t array : whole.follows())
      follows.push_back(json::string(std::to_string(array)));
    object["follows"] = std::move(follows);
  }
  for (const std::string& word : whole.argv()) {
    shown += word.size() + 1;
    if (shown > kCommandShown) {
      object["command_cut"] = true;
      break;
    }
    command.push_back(json::string(word));
  }
  object["command"] = std::move(command);
  put(object, output_files(whole));
}

bool has_ended(TaskState state) {
  return state == TaskState::Done || state == TaskState::Failed || state == TaskState::Cancelled;
}

/// All but what the engine knows.
store::ArrayFilter array_filter_of(const HttpRequest& request) {
  store::ArrayFilter filter;
  filter.limit = std::clamp<std::uint32_t>(number_in(request, "limit", 20), 1, kMostOnAPage);
  filter.client = text_in(request, "client");
  filter.name = text_in(request, "name");
  filter.tool = text_in(request, "tool");
  filter.site = text_in(request, "site");
  if (const double since = seconds_in(request, "since", 0); since > 0)
    filter.since =
        Time{} + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(since));
  if (const std::string before = text_in(request, "before"); !before.empty())
    filter.before = parse_selection(before).array;
  if (const std::string per = text_in(request, "per"); !per.empty() && per != "array") {
    if (per != "submit") throw BadRequest(fmt::format("'per' is submit or array, not '{}'", per));
    filter.whole_submits = true;
  }
  filter.failure =
      word_in<FailureChoice>(request, "failure", parse_failure_choice, kFailureChoices);
  return filter;
}

}  // namespace

/// How many of its tasks stand where.
struct Submissions::Standing {
  std::array<std::uint64_t, 8> by_state{};
  TaskState state{TaskState::Done};  ///< what the whole is doing
  std::optional<Time> started;       ///< the first
  std::optional<Time> ended;         ///< the last, where all have
  std::uint64_t& of(TaskState one) { return by_state.at(static_cast<std::size_t>(one)); }
  std::uint64_t of(TaskState one) const { return by_state.at(static_cast<std::size_t>(one)); }
  /// Of tasks that have not ended.
  void add(const Standing& other) {
    for (std::size_t i = 0; i < by_state.size(); ++i) by_state[i] += other.by_state[i];
    if (other.started) started = std::min(started.value_or(*other.started), *other.started);
  }
};

/// Of the tasks that have not ended.
Submissions::Standing Submissions::live_ones(ArrayId id) const {
  Standing now;
  const ArrayState* live = runtime_.engine().tasks().find(id);
  if (!live) return now;
  std::uint64_t at_pilots = 0;
  for (const IndexRange& range : live->tasks.leased().ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const TaskId task{id, static_cast<std::uint32_t>(i)};
      ++now.of(*runtime_.engine().state_of(task));
      ++at_pilots;
      const Lease* lease = runtime_.engine().pilots().lease(task);
      if (lease && lease->started)
        now.started = std::min(now.started.value_or(*lease->started), *lease->started);
    }
  }
  const std::uint64_t held = live->tasks.held().size();
  now.of(TaskState::Held) += held;
  now.of(TaskState::Waiting) += live->tasks.open().size() - at_pilots - held;
  return now;
}

Submissions::Standing Submissions::standing(const store::ArrayOverview& whole) const {
  Standing now;
  if (whole.names) {
    const auto& live = runtime_.engine().tasks().arrays();
    const auto end = live.upper_bound(whole.submit_last);
    for (auto at = live.lower_bound(whole.submit_first); at != end; ++at)
      now.add(live_ones(at->first));
  } else {
    now = live_ones(whole.row.id);
  }
  now.of(TaskState::Done) = whole.done;
  now.of(TaskState::Failed) = whole.failed;
  now.of(TaskState::Cancelled) = whole.cancelled;
  // What ended a moment ago, or while nothing could be written, is in the store later.
  const std::uint64_t known =
      std::accumulate(now.by_state.begin(), now.by_state.end(), std::uint64_t{0});
  if (known < whole.tasks) now.of(TaskState::Finishing) += whole.tasks - known;
  const auto first = std::find_if(kStates.begin(), kStates.end(),
                                  [&](TaskState state) { return now.of(state) != 0; });
  if (first != kStates.end()) now.state = *first;
  if (whole.started) now.started = std::min(now.started.value_or(*whole.started), *whole.started);
  if (has_ended(now.state)) now.ended = whole.last_ended;
  return now;
}

json::object Submissions::counts_json(const Standing& now) {
  json::object counts;
  for (const TaskState one :
       {TaskState::Waiting, TaskState::Held, TaskState::Running, TaskState::Finishing,
        TaskState::Unknown, TaskState::Done, TaskState::Failed, TaskState::Cancelled}) {
    // Two that are rare are left out where there are none.
    const bool is_rare = one == TaskState::Finishing || one == TaskState::Unknown;
    if (!is_rare || now.of(one) != 0) counts[std::string(to_string(one))] = now.of(one);
  }
  return counts;
}

json::object Submissions::array_json(const store::ArrayOverview& whole) const {
  const Standing now = standing(whole);
  json::object object{{"id", std::to_string(whole.row.id.value)},
                      {"state", std::string(to_string(now.state))},
                      {"client", whole.row.client},
                      {"total", whole.tasks},
                      {"counts", counts_json(now)},
                      {"submitted_at", seconds(whole.row.submitted)}};
  if (whole.submit_first != whole.submit_last)
    object["submit"] = fmt::format("{}-{}", whole.submit_first.value, whole.submit_last.value);
  if (whole.names) {
    object["id"] = object["submit"];
    if (!whole.names->empty()) object["name"] = fmt::format("{}", fmt::join(*whole.names, ", "));
  } else {
    if (!whole.row.name.empty()) object["name"] = whole.row.name;
    if (!whole.row.tool.empty()) object["tool"] = whole.row.tool;
    put_command(object, whole.row.recipe);
  }
  if (now.started) object["started_at"] = seconds(*now.started);
  if (now.ended) object["ended_at"] = seconds(*now.ended);
  return object;
}

void Submissions::add_to(Routes& routes) {
  routes.add("GET", "arrays",
             [this](HttpRequest& request, const ReplyPtr& reply) { list(request, reply); });
  routes.add("GET", "arrays/*", [this](HttpRequest& request, const ReplyPtr& reply) {
    show(parse_selection(request.path[2]).array, reply);
  });
}

void Submissions::list(const HttpRequest& request, const ReplyPtr& reply) {
  store::ArrayFilter filter = array_filter_of(request);
  const auto state = word_in<TaskState>(request, "state", parse_task_state, kTaskStates);
  const auto& live = runtime_.engine().tasks().arrays();
  if (state && has_ended(*state)) {
    filter.state = state;
  } else if (state) {
    // The store looks at no more of them either.
    filter.among.emplace();
    auto at = filter.before ? live.lower_bound(*filter.before) : live.end();
    for (int looked_at = 0; at != live.begin() && looked_at < store::History::kArraysLookedAt;
         ++looked_at) {
      --at;
      if (live_ones(at->first).of(*state) != 0) filter.among->push_back(at->first);
    }
    std::reverse(filter.among->begin(), filter.among->end());
  }
  if (!filter.site.empty()) {
    for (const auto& [task, lease] : runtime_.engine().pilots().leases()) {
      if (lease.held_by && lease.held_by->site == filter.site) filter.at_site.push_back(task.array);
    }
    std::sort(filter.at_site.begin(), filter.at_site.end());
  }
  runtime_.look([filter](store::Store& store) { return store.history().arrays(filter); },
                [this, reply](const store::ArrayPage& page) {
                  json::array arrays;
                  for (const store::ArrayOverview& whole : page.arrays)
                    arrays.push_back(array_json(whole));
                  json::object answer{{"arrays", std::move(arrays)}};
                  if (page.next) answer["next"] = std::to_string(page.next->value);
                  reply->answer(200, answer);
                });
}

void Submissions::show(ArrayId id, const ReplyPtr& reply) {
  runtime_.look([id](store::Store& store) { return store.history().overview(id); },
                [this, id, reply](const std::optional<store::ArrayOverview>& whole) {
                  if (!whole)
                    return reply->error(404, fmt::format("there is no task {}", id.value));
                  const store::ArrayRow& row = whole->row;
                  json::object object = array_json(*whole);
                  object["indices"] = to_string(row.indices);
                  object["needs"] = to_json(row.needs);
                  object["priority"] = row.priority;
                  object["retries"] = row.retries;
                  object["ended"] = row.ended;
                  if (row.max_running != 0) object["max_running"] = row.max_running;
                  if (row.give_up_at != 0) object["max_failures"] = row.give_up_at - 1;
                  if (row.gives_up_running) object["halt_running"] = true;
                  put_course(object, row.after, row.course.get());
                  reply->answer(200, object);
                });
}

namespace {

struct ArrayFacts {
  std::optional<store::ArrayOverview> whole;
  std::vector<WayOfFailing> failures;
  store::TaskTimes times;
  std::string longest_item;
};

ArrayFacts read_array_facts(store::Store& store, ArrayId id) {
  ArrayFacts facts{store.history().overview(id), {}, {}, {}};
  if (!facts.whole) return facts;
  const std::string& recipe = facts.whole->row.recipe;
  const auto item = [&, has_items = needs_items(recipe)](TaskId task) {
    return has_items ? item_of(recipe, store.history().item(task)).text() : std::string();
  };
  for (const store::FailureGroup& group : store.history().failures(id)) {
    const TaskId first{id, group.first};
    WayOfFailing way{group, store.history().result(first), item(first)};
    way.needs = way.first ? store.history().needs_then(facts.whole->row, *way.first)
                          : facts.whole->row.needs;
    facts.failures.push_back(std::move(way));
  }
  facts.times = store.history().times(facts.whole->row);
  if (facts.times.longest) facts.longest_item = item(*facts.times.longest);
  return facts;
}

std::string counts_in_words(const json::object& counts, std::uint64_t total) {
  std::string text;
  for (const auto& [state, count] : counts) {
    const auto tasks = count.to_number<std::uint64_t>();
    if (tasks == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "of " + show_count(total, "task") + " " : ", ",
                        tasks, std::string_view(state));
  }
  return text;
}

}  // namespace

void Submissions::explain(const store::ArrayRow& row, const ReplyPtr& reply) {
  const ArrayId id = row.id;
  runtime_.look([id](store::Store& store) { return read_array_facts(store, id); },
                [this, id, reply](const ArrayFacts& facts) {
                  if (!facts.whole)
                    return reply->error(404, fmt::format("there is no task {}", id.value));
                  const store::ArrayRow& whole = facts.whole->row;
                  const Standing now = standing(*facts.whole);
                  json::object counts = counts_json(now);
                  json::array details, failures;
                  std::vector<TriedWith> tried;
                  for (const WayOfFailing& one : facts.failures) {
                    details.push_back(json::string(in_words(id, one)));
                    failures.push_back(to_json(id, one));
                    tried.push_back({one.group.failure, one.needs});
                  }
                  const std::string all = std::to_string(id.value);
                  if (const auto more = retry_with_more(tried, whole.needs, all, true))
                    details.push_back(json::string(*more));
                  if (const auto list = how_to_list(id, facts.failures))
                    details.push_back(json::string(*list));
                  // As far as it has got.
                  const TimeSpent spent{.submitted = whole.submitted,
                                        .started = now.started,
                                        .ended = now.ended,
                                        .cpus = whole.needs.amounts.get(kCpus).value(),
                                        .tasks = facts.times,
                                        .longest_item = facts.longest_item};
                  for (const std::string& line : in_words(spent))
                    details.push_back(json::string(line));
                  add(details, output_files(start_from_bytes(whole.recipe)));
                  if (const auto trouble = runtime_.store_trouble())
                    details.push_back(json::string(*trouble));
                  // One that has not ended speaks for the others.
                  const ArrayState* live = runtime_.engine().tasks().find(id);
                  const IndexSet open = live ? live->tasks.open() : IndexSet{};
                  if (!open.empty()) {
                    const TaskId first{id, open.ranges().back().first};
                    if (const auto why = runtime_.engine().explain(first, runtime_.now())) {
                      details.push_back(json::string(fmt::format(
                          "{} is {}: {}", to_string(first), to_string(why->state), why->text)));
                      for (const std::string& detail : why->details)
                        details.push_back(json::string(detail));
                    }
                  }
                  reply->answer(200, {{"id", std::to_string(id.value)},
                                      {"state", std::string(to_string(now.state))},
                                      {"text", counts_in_words(counts, whole.indices.size())},
                                      {"counts", std::move(counts)},
                                      {"failures", std::move(failures)},
                                      {"times", to_json(spent)},
                                      {"details", std::move(details)}});
                });
}

}  // namespace hpcbatch
