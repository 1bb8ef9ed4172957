// Why a task waits: what stands between it and a start, from the nearest reason to the farthest.
#include "engine/engine.hpp"

#include "model/quantities.hpp"

#include <fmt/format.h>

namespace hpcbatch {
namespace {

std::string show_dependency(const Dependency& dependency) {
  std::string text = std::to_string(dependency.array.value);
  if (dependency.index) text += '.' + std::to_string(*dependency.index);
  switch (dependency.kind) {
    case Dependency::Kind::Success:
      return "the success of " + text;
    case Dependency::Kind::AnyEnd:
      return "the end of " + text;
    case Dependency::Kind::EachSuccess:
      return "the task with the same index of " + text;
  }
  return text;
}

/// An estimate is no better than this.
std::string show_about(Duration time) {
  using namespace std::chrono;
  if (time > minutes{2}) return show_duration(round<minutes>(time));
  return show_duration(round<seconds>(time));
}

}  // namespace

std::optional<TaskState> Engine::state_of(TaskId task) const {
  const ArrayState* array = tasks_.find(task.array);
  if (!array || !array->tasks.all().contains(task.index)) return std::nullopt;
  if (array->tasks.ok().contains(task.index) || array->tasks.not_ok().contains(task.index))
    return std::nullopt;
  if (array->tasks.held().contains(task.index)) return TaskState::Held;
  const Lease* lease = pilots_.lease(task);
  if (!lease || lease->state == Lease::State::Sent) return TaskState::Waiting;
  const PilotState* pilot = pilots_.find(lease->pilot);
  if (pilot && !pilot->connected && !lease->has_left) return TaskState::Unknown;
  return lease->waits_for_workspace ? TaskState::Finishing : TaskState::Running;
}

/// Where the files of a task that waits are, or why they are nowhere.
void Engine::explain_files(const ArrayState& array, std::uint32_t index, Time now,
                           std::vector<std::string>& details) const {
  for (const std::string& site : array.terms->needs.staged_to) {
    const auto has = [&](const std::map<std::string, IndexSet>& by_site) {
      const auto at = by_site.find(site);
      return at != by_site.end() && at->second.contains(index);
    };
    if (has(array.files_at())) {
      details.push_back(fmt::format("its files are on site {}", site));
    } else if (has(array.files_staging())) {
      details.push_back(fmt::format("its files are being brought to site {}", site));
    } else if (array.rare && array.rare->pauses.contains(site)) {
      const auto& pause = array.rare->pauses.at(site);
      details.push_back(fmt::format(
          "its files could not be brought to site {}: {}; tried again {}", site, pause.why,
          pause.until > now ? "in " + show_duration(pause.until - now) : "now"));
    } else if (is_slow(site, now)) {
      details.push_back(fmt::format("site {} has taken no files for {}", site,
                                    show_duration(now - files_heard_.at(site))));
    } else {
      details.push_back(
          fmt::format("its files are brought to site {} when its turn is near", site));
    }
  }
}

/// Of sites where it may run.
void Engine::explain_nodes(const Needs& needs, std::vector<std::string>& details) const {
  for (const auto& [name, node] : trust_.nodes()) {
    if (!may_run_at(needs, name.site)) continue;
    details.push_back(fmt::format("node {} of {} gets {}: {}", name.node, name.site,
                                  node.bad_until ? "no more work" : "one task at a time",
                                  trust_.why(name)));
  }
}

void Engine::explain_suspects(TaskId task, std::vector<std::string>& details) const {
  const TaskHistory* past = tasks_.history(task);
  if (past && past->unexplained_deaths != 0) {
    details.push_back(fmt::format(
        "{} pilots died that had it, without a reason ({}): it is tried as the only such task of a "
        "pilot",
        past->unexplained_deaths, past->evidence));
  }
  const auto prime = tasks_.prime_suspect();
  if (!prime || *prime == task) return;
  details.push_back(fmt::format("task {} seems to kill its pilots: {} have died that had it",
                                to_string(*prime), tasks_.history(*prime)->unexplained_deaths));
}

void Engine::explain_suspended(const AllocationId& id, Time now,
                               std::vector<std::string>& details) const {
  const AllocationEntry* entry = sites_.find(id);
  if (!entry || !entry->suspended_at) return;
  details.push_back(fmt::format(
      "the batch system of {} has suspended allocation {} (batch job {}), seen {} ago: its pilots "
      "go on when it lets them",
      entry->facts.site, id.name, entry->facts.number, show_duration(now - *entry->suspended_at)));
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity,readability-function-size)
std::optional<Explanation> Engine::explain(TaskId task, Time now) const {
  const auto state = state_of(task);
  if (!state) return std::nullopt;
  const ArrayState& array = *tasks_.find(task.array);
  Explanation why{*state, "", {}};
  if (const TaskHistory* past = tasks_.history(task)) {
    why.details.push_back(fmt::format("{} earlier attempts", past->attempts));
    if (past->keeps_away) {
      why.details.push_back(
          fmt::format("the last one failed on {} of {}: another node is to try it",
                      past->failed_at.node, past->failed_at.site));
    }
    if (past->needs_more_than) {
      why.details.push_back(
          fmt::format("a pilot's end cut it after {}: it waits for one with more time left",
                      show_duration(*past->needs_more_than)));
    }
  }
  if (const Lease* lease = pilots_.lease(task)) {
    const PilotState* pilot = pilots_.find(lease->pilot);
    const std::string where =
        fmt::format("pilot {}{}", to_string(lease->pilot),
                    pilot && !pilot->node.empty() ? " on " + pilot->node : "");
    if (lease->has_left) {
      why.text = "done at " + where + ", its outputs are being fetched";
      if (const std::string* delay = pilots_.why_delayed(task))
        why.details.push_back("the last time that failed: " + *delay);
    } else if (pilot && !pilot->connected) {
      const std::string until =
          sites_.site(pilot->site)
              ? "when the batch system says that its allocation has ended"
              : fmt::format("after {} of silence: its site {} is no longer in the configuration",
                            show_duration(Site{}.lost_after), pilot->site);
      why.text = fmt::format("unknown: {} has been silent for {}; it is asked for again {}", where,
                             show_duration(now - pilot->silent_since), until);
    } else if (lease->waits_for_workspace) {
      why.text = fmt::format("done at {}, its result waits for the workspace of {}: {}", where,
                             pilot->site, pilot->workspace_trouble);
    } else if (lease->state == Lease::State::Sent) {
      why.text = "waits at " + where + " for room";
    } else if (lease->state == Lease::State::Publishing) {
      why.text = "done at " + where + ", its outputs are being put in place";
    } else {
      why.text = fmt::format("runs at {} for {}", where,
                             show_duration(now - lease->started.value_or(lease->since)));
    }
    if (lease->cancelled) why.text += "; it is being cancelled";
    explain_suspended(lease->pilot.allocation, now, why.details);
    return why;
  }
  if (*state == TaskState::Held) {
    why.text =
        fmt::format("held by its user; 'hpcbatch release {}' lets it go on", to_string(task));
    return why;
  }
  if (array.tasks.blocked().contains(task.index)) {
    why.text = "waits for other tasks";
    for (const auto& [before, open] : array.open())
      why.details.push_back("for " + show_dependency(open.on));
    return why;
  }
  if (tasks_.is_parked(task)) {
    why.text = fmt::format("{} tasks of its array are with pilots, as many as may",
                           array.tasks.leased().size());
    return why;
  }
  if (draining_) {
    why.text = "the engine is being stopped: it starts nothing more";
    return why;
  }

  if (array.needs_files()) explain_files(array, task.index, now, why.details);
  QueuePlace place = array.place();
  place.in_class = tasks_.class_of_task(task);
  const ResourceClass& its_class = tasks_.queue().get(place.in_class);
  why.text = fmt::format("ready, {} tasks of its kind ahead; {}", tasks_.queue().ahead_of(place),
                         explain_service(its_class.needs).value_or("no pilot has room"));
  bool any_site = false;
  bool any_shape = false;
  for (const SiteState& site : sites_.sites()) {
    if (!may_run_at(array.terms->needs, site.site.name)) continue;
    any_site = true;
    for (const ShapeState& shape : site.shapes)
      any_shape = any_shape || could_run(its_class.needs, shape.shape);
  }
  if (!any_site)
    why.details.push_back("no site is left in the configuration that may run it: it needs " +
                          show(its_class.needs));
  else if (!any_shape)
    why.details.push_back("no shape of the configuration can run it any more: it needs " +
                          show(its_class.needs));
  Needs without_time = its_class.needs;
  without_time.time.reset();
  std::size_t pilots = 0;
  for (const auto& [id, pilot] : pilots_.all()) {
    if (!pilot.takes_tasks()) continue;
    if (pilot.kept_for == place.in_class) {
      why.details.push_back(fmt::format("room is being kept for it on pilot {} since {} ago",
                                        to_string(id), show_duration(now - pilot.kept_since)));
    }
    if (PilotTable::has_room(its_class, pilot, pilot.capacity, now)) {
      ++pilots;
    } else if (PilotTable::has_room(without_time, pilot, pilot.capacity, now)) {
      why.details.push_back(fmt::format("pilot {} has too little time left for it", to_string(id)));
    }
  }
  explain_nodes(its_class.needs, why.details);
  explain_suspects(task, why.details);
  if (pilots != 0)
    why.details.push_back(fmt::format("{} pilots could run it once they have room", pilots));
  for (const SiteState& site : sites_.sites()) {
    if (!may_run_at(its_class.needs, site.site.name)) continue;
    if (!site.trouble.empty()) {
      why.details.push_back(fmt::format("site {} has not answered for {}: {}", site.site.name,
                                        show_duration(now - *site.trouble_since), site.trouble));
    }
    if (site.workspace_in_trouble()) {
      why.details.push_back(
          fmt::format("nothing starts at site {}: for {} its pilots have not been able to use the "
                      "workspace: {}",
                      site.site.name, show_duration(now - site.workspace_trouble_since),
                      site.workspace_trouble.begin()->second));
    }
    for (const ShapeState& shape : site.shapes) {
      if (!could_run(its_class.needs, shape.shape)) continue;
      if (!sites_.may_ask(shape, now)) {
        why.details.push_back(fmt::format(
            "shape {} of {} is not asked for during the next {}: {}", shape.shape.name,
            site.site.name, show_duration(*shape.back_off.until - now), shape.back_off.why));
      }
    }
  }
  std::optional<Duration> soonest;
  std::string where;
  for (const auto& [id, entry] : sites_.allocations()) {
    const bool has_pilot =
        entry.facts.state == AllocationState::Running && entry.facts.pilots_seen != 0;
    if (entry.facts.state == AllocationState::Ended) continue;
    const Shape* shape = sites_.shape_of(id);
    if (!shape || !could_run(its_class.needs, *shape)) continue;
    if (!may_run_at(its_class.needs, entry.facts.site)) continue;
    explain_suspended(id, now, why.details);
    if (has_pilot) continue;
    const auto start = sites_.expected_start(entry, now);
    if (start && sites_.is_on_its_way(entry, now) && (!soonest || *start < *soonest)) {
      soonest = start;
      where = entry.facts.site;
    }
    why.details.push_back(
        fmt::format("allocation {} on {}{} is {} since {}{}", id.name, entry.facts.site,
                    entry.facts.number.empty() ? "" : ", batch job " + entry.facts.number + ",",
                    to_string(entry.facts.state), show_duration(now - entry.facts.opened),
                    entry.facts.reason.empty() ? "" : " (" + entry.facts.reason + ")"));
    if (entry.facts.state == AllocationState::Running)
      why.details.back() += ", and its pilot has not registered yet";
  }
  if (soonest && *soonest > Duration{}) {
    why.details.push_back(
        fmt::format("expected to start in about {} on {}", show_about(*soonest), where));
  } else if (soonest) {
    why.details.push_back(fmt::format("was expected to start on {} {} ago, and has not", where,
                                      show_about(Duration{} - *soonest)));
  }
  return why;
}

}  // namespace hpcbatch
