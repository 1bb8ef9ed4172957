#include "runtime/staging_of_tasks.hpp"

#include "links/recipe.hpp"
#include "loop/writer.hpp"
#include "model/check.hpp"
#include "sites/log_reader.hpp"
#include "staging/site_view.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace hpcbatch {
namespace {

/// What each owner needs of a batch of tasks.
std::vector<SiteFiles::Wanted> read_wanted(store::Store& store, const StageIn& action,
                                           const Site& site) {
  std::vector<SiteFiles::Wanted> wanted;
  const auto recipe = store.history().recipe(action.array);
  if (!recipe) return wanted;
  const Filled filled = filled_in(recipe->bytes);
  const wire::Start shared = start_from_bytes(recipe->bytes);
  if (!action.of_each) {
    wanted.push_back({{action.array, std::nullopt}, files_to_stage_in(shared, site)});
    return wanted;
  }
  for (const IndexRange& range : action.indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const TaskId task{action.array, static_cast<std::uint32_t>(i)};
      wire::Start own = shared;
      fill(own, filled, task, [&] { return store.history().item(task); });
      wanted.push_back({{task.array, task.index}, files_to_stage_in(own, site)});
    }
  }
  return wanted;
}

/// Nobody can fetch them.
void lose_outputs(AttemptEnd& end, const std::string& site) {
  const std::string why =
      fmt::format("its outputs lie at the site {}, which is no longer in the configuration", site);
  Outcome& outcome = end.outcome;
  if (outcome.failure == Failure::Ok) outcome.failure = Failure::StageOutFailed;
  outcome.message += (outcome.message.empty() ? "" : "; ") + why;
  end.stage_out = false;
}

StagedIn event_of(const StageIn& action, const SiteFiles::StageInResults& staged) {
  StagedIn event{.site = action.site, .array = action.array, .there = {}, .failed = {}};
  for (const auto& [owner, error] : staged) {
    const IndexSet tasks =
        owner.index ? IndexSet(IndexRange{*owner.index, *owner.index}) : action.indices;
    if (!error) {
      event.there.add(tasks);
      continue;
    }
    event.failed.push_back({tasks, error->failure, error->text, error->can_be_tried_again});
  }
  return event;
}

/// Of a pilot that was started by the version before this one, whose results have no field for it.
std::string missing_file_in(const std::string& text, const std::string& folder) {
  const std::size_t begin = text.find(folder);
  if (begin == std::string::npos) return "";
  // Behind the place it says why.
  const std::size_t why = std::min(text.rfind(": "), text.rfind(" is not a regular file"));
  return text.substr(begin, why != std::string::npos && why > begin ? why - begin : why);
}

}  // namespace

SiteClient* StagingOfTasks::site(const std::string& name) const {
  const auto at = dependencies_.sites.find(name);
  return at == dependencies_.sites.end() ? nullptr : at->second.get();
}

std::string StagingOfTasks::site_of(const PilotId& pilot) const {
  const AllocationEntry* entry = dependencies_.engine->sites().find(pilot.allocation);
  return entry ? entry->facts.site : std::string();
}

bool StagingOfTasks::sees_everything(const std::string& name) const {
  const auto at = dependencies_.sites.find(name);
  return at == dependencies_.sites.end() || at->second->site().path_map == everything_shared();
}

SiteFiles* StagingOfTasks::files_at(const std::string& name) {
  const SiteClient* client = site(name);
  if (!client) return nullptr;
  auto& files = files_[name];
  if (!files) {
    files = std::make_unique<SiteFiles>(dependencies_.loop, dependencies_.plugins, client->site(),
                                        dependencies_.programs.at(name));
    files->keep_all(!leased_before_.empty());
  }
  return files.get();
}

const SiteFiles* StagingOfTasks::files_of(const std::string& site) const {
  const auto at = files_.find(site);
  return at == files_.end() ? nullptr : at->second.get();
}

void StagingOfTasks::open(const Snapshot& snapshot, const std::vector<Site>& sites) {
  stage_out_ = std::make_unique<StageOut>(
      dependencies_.loop, dependencies_.writer, dependencies_.home + "/fetched",
      [this](const AttemptId& one) { return is_current(one); },
      [this](const PilotId& pilot, AttemptEnd end) {
        dependencies_.feed(AttemptsEnded{pilot, {std::move(end)}});
      },
      [this](const AttemptId& one, const std::string& why) {
        dependencies_.feed(OutputsDelayed{one, why});
      });
  std::set<AllocationId> far;
  for (const Allocation& allocation : snapshot.allocations) {
    if (!sees_everything(allocation.site)) far.insert(allocation.id);
  }
  for (const StoredLease& lease : snapshot.leases) {
    if (far.contains(lease.pilot.allocation)) leased_before_.insert(lease.attempt.task);
  }
  for (const Site& site : sites) {
    if (!sees_everything(site.name)) files_at(site.name);
  }
}

void StagingOfTasks::stage_in(const StageIn& action) {
  const SiteClient* client = site(action.site);
  if (!client || sees_everything(action.site)) {
    // It did not see them when the tasks were handed in, and sees everything now.
    return asio::post(dependencies_.loop, [this, action] {
      dependencies_.feed(StagedIn{
          .site = action.site, .array = action.array, .there = action.indices, .failed = {}});
    });
  }
  staged_to_[action.array].insert(action.site);
  auto wanted = std::make_shared<std::vector<SiteFiles::Wanted>>();
  HPCBATCH_CHECK(order_of(action) == WaitsFor::Written);
  dependencies_.writer.after_written(
      [wanted, action, site = client->site()](store::Store& store) {
        *wanted = read_wanted(store, action, site);
      },
      [this, wanted, action, &files = *files_at(action.site)] {
        const ArrayState* array = dependencies_.engine->tasks().find(action.array);
        const auto is_over = [&](const SiteFiles::Wanted& one) {
          return !array || (one.owner.index && !array->tasks.open().contains(*one.owner.index));
        };
        std::erase_if(*wanted, is_over);
        if (wanted->empty()) return;
        files.stage_in(std::move(*wanted), [this, action](const SiteFiles::StageInResults& staged) {
          dependencies_.feed(event_of(action, staged));
        });
      });
}

std::optional<wire::Start> StagingOfTasks::shown_at(const PilotId& pilot, wire::Start start) {
  const std::string name = site_of(pilot);
  if (sees_everything(name)) return start;
  const SiteClient* client = site(name);
  const SiteFiles* files = files_at(name);
  const AttemptId attempt = from_wire(start.attempt());
  const auto place_of = [&](const std::string& path) {
    auto place = files->place_of({attempt.task.array, attempt.task.index}, path);
    return place ? place : files->place_of({attempt.task.array, std::nullopt}, path);
  };
  const auto refusal =
      show_at(start, client->site(), folder_of_outputs(client->site(), pilot, attempt), place_of);
  if (!refusal) return start;
  // The pilot has not heard of it.
  asio::post(dependencies_.loop, [this, name, pilot, attempt, why = *refusal] {
    give_back_without_files(name, pilot, attempt, why);
  });
  return std::nullopt;
}

bool StagingOfTasks::is_current(const AttemptId& attempt) const {
  const Lease* lease = dependencies_.engine->pilots().lease(attempt.task);
  return lease && lease->attempt == attempt;
}

void StagingOfTasks::give_back_without_files(const std::string& name, const PilotId& pilot,
                                             const AttemptId& attempt, const std::string& why) {
  if (!is_current(attempt)) return;
  const ArrayState* array = dependencies_.engine->tasks().find(attempt.task.array);
  IndexSet tasks = IndexRange{attempt.task.index, attempt.task.index};
  if (array && !array->terms->needs.own_files) tasks = array->tasks.all();
  StagedIn gone{.site = name, .array = attempt.task.array, .there = {}, .failed = {}};
  gone.failed.push_back({tasks, Failure::StageInFailed, why, true});
  spdlog::warn("{} goes back from {}: {}", to_string(attempt.task), to_string(pilot), why);
  dependencies_.feed(gone);
  dependencies_.feed(AttemptsReturned{pilot, {attempt}});
}

/// The end is then one of a stale attempt, and acknowledged as such.
void StagingOfTasks::mind_files_gone(const std::string& name, const PilotId& pilot,
                                     const AttemptEnd& end) {
  if (end.outcome.failure != Failure::InputMissing || sees_everything(name)) return;
  const std::string staged = site(name)->site().workspace + "/files/";
  const std::string missing =
      end.missing_file.empty() ? missing_file_in(end.outcome.message, staged) : end.missing_file;
  if (!missing.starts_with(staged)) return;
  files_at(name)->forget_there(missing);
  give_back_without_files(name, pilot, end.attempt,
                          "files that had been staged in are gone: " + end.outcome.message);
}

bool StagingOfTasks::must_be_fetched(const AttemptEnd& end) const {
  return end.stage_out && !end.outputs_staged && is_current(end.attempt);
}

void StagingOfTasks::feed_ends(AttemptsEnded event) {
  const std::string name = site_of(event.pilot);
  for (const AttemptEnd& end : event.ends) mind_files_gone(name, event.pilot, end);
  StageOutPending coming{event.pilot, {}};
  std::erase_if(event.ends, [&](AttemptEnd& end) {
    if (!must_be_fetched(end)) return false;
    if (!site(name)) {
      lose_outputs(end, name);
      return false;
    }
    coming.attempts.push_back(end.attempt);
    stage_out_->add(site(name)->site(), *files_at(name), event.pilot, std::move(end));
    return true;
  });
  if (!event.ends.empty()) dependencies_.feed(event);
  if (!coming.attempts.empty()) dependencies_.feed(coming);
}

void StagingOfTasks::feed_outbox(OutboxRead event, const std::string& name) {
  std::erase_if(event.results, [&](AttemptEnd& end) {
    // Late ones, and those that another's leases are none of its concern.
    if (!dependencies_.engine->is_heard_from_outbox(event.allocation, end.attempt)) return true;
    const PilotId pilot = dependencies_.engine->pilots().lease(end.attempt.task)->pilot;
    mind_files_gone(name, pilot, end);
    if (!must_be_fetched(end)) return false;
    stage_out_->add(site(name)->site(), *files_at(name), pilot, std::move(end));
    return true;
  });
  // What its pilots said before they were killed is known as well.
  event.coming = stage_out_->of(event.allocation);
  dependencies_.feed(event);
}

void StagingOfTasks::tasks_over(ArrayId array, const IndexSet& indices) {
  if (!staged_to_.contains(array) && leased_before_.empty()) return;
  for (const IndexRange& range : indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i)
      task_over({array, static_cast<std::uint32_t>(i)});
  }
}

void StagingOfTasks::task_over(TaskId task) {
  if (const auto at = staged_to_.find(task.array); at != staged_to_.end()) {
    for (const std::string& name : at->second) {
      if (const auto files = files_.find(name); files != files_.end())
        files->second->let_go({task.array, task.index});
    }
  }
  not_leased_before(task);
}

void StagingOfTasks::not_leased_before(TaskId task) {
  if (leased_before_.erase(task) == 0 || !leased_before_.empty()) return;
  for (const auto& [name, files] : files_) files->keep_all(false);
}

void StagingOfTasks::array_over(ArrayId array) {
  const auto node = staged_to_.extract(array);
  if (node.empty()) return;
  for (const std::string& name : node.mapped()) {
    if (const auto files = files_.find(name); files != files_.end())
      files->second->let_go({array, std::nullopt});
  }
}

}  // namespace hpcbatch
