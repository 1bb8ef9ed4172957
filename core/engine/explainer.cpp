// Why a task waits: what stands between it and a start, from the nearest reason to the farthest.
#include "engine/explainer.hpp"

#include "engine/sites/site_forecast.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

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
    case Dependency::Kind::Start:
      return (dependency.delay == Duration{} ? "" : show_duration(dependency.delay) + " from ") +
             "the start of " + text;
    case Dependency::Kind::NotSuccess:
      return "the failure of " + text;
  }
  return text;
}

/// An estimate is no better than this.
std::string show_about(Duration time) {
  using namespace std::chrono;
  if (time > minutes{2}) return show_duration(round<minutes>(time));
  return show_duration(round<seconds>(time));
}

/// Ready, but as many of its array run as may.
bool is_parked(const ReadyQueue& queue, const ArrayState& array, std::uint32_t index) {
  const std::vector<QueuePlace> all = array.places();
  return std::any_of(all.begin(), all.end(), [&](const QueuePlace& place) {
    const IndexSet* parked = queue.parked(place);
    return parked && parked->contains(index);
  });
}

}  // namespace

/// Where the files of a task that waits are, or why they are nowhere.
void Explainer::explain_files(const ArrayState& array) {
  for (const std::string& site : array.terms->needs.staged_to) {
    const auto has = [&](const std::map<std::string, IndexSet>& by_site) {
      const auto at = by_site.find(site);
      return at != by_site.end() && at->second.contains(task_.index);
    };
    if (has(array.files_at())) {
      add("its files are on site {}", site);
    } else if (has(array.files_staging())) {
      add("its files are being staged in at site {}", site);
    } else if (array.rare && array.rare->pauses.contains(site)) {
      const auto& pause = array.rare->pauses.at(site);
      add("its files could not be staged in at site {}: {}; tried again {}", site, pause.why,
          pause.until > now_ ? "in " + show_duration(pause.until - now_) : "now");
    } else if (engine_.is_slow(site, now_)) {
      add("site {} has taken no files for {}", site,
          show_duration(now_ - engine_.stage_in_.heard.at(site)));
    } else {
      add("its files are staged in at site {} when its turn is near", site);
    }
  }
}

/// Of sites where it may run.
void Explainer::explain_nodes(const Needs& needs) {
  for (const auto& [name, node] : engine_.trust_.nodes()) {
    if (!may_run_at(needs, name.site)) continue;
    add("node {} of {} gets {}: {}", name.node, name.site,
        node.bad_until ? "no more work" : "one task at a time", engine_.trust_.why(name));
  }
}

void Explainer::explain_suspects() {
  const TaskHistory* past = engine_.tasks_.history(task_);
  if (past && past->unexplained_deaths != 0) {
    add("{} died that had it, without a reason ({}): it is tried as the only such task of a pilot",
        show_count(past->unexplained_deaths, "pilot"), past->evidence);
  }
  const auto prime = engine_.tasks_.prime_suspect();
  if (!prime || *prime == task_) return;
  add("task {} seems to kill its pilots: {} have died that had it", to_string(*prime),
      engine_.tasks_.history(*prime)->unexplained_deaths);
}

void Explainer::explain_suspended(const AllocationId& id) {
  const AllocationEntry* entry = engine_.sites_.find(id);
  if (!entry || !entry->suspended_at) return;
  add("the batch system of {} has suspended allocation {} (batch job {}), seen {} ago: its pilots "
      "go on when it lets them",
      entry->facts.site, id.name, entry->facts.number, show_duration(now_ - *entry->suspended_at));
}

std::optional<std::string> Explainer::service_of(const Needs& needs) const {
  if (needs.service.empty()) return std::nullopt;
  for (const auto& [id, pilot] : engine_.pilots_.all()) {
    if (!pilot.takes_tasks() || !pilot.starting.contains(needs.service)) continue;
    return fmt::format("its service {} is starting on pilot {}{}", needs.service, to_string(id),
                       pilot.node.empty() ? "" : " on " + pilot.node);
  }
  return std::nullopt;
}

void Explainer::explain_past() {
  const TaskHistory* past = engine_.tasks_.history(task_);
  if (!past) return;
  add("{}", show_count(past->attempts, "earlier attempt"));
  if (past->keeps_away) {
    add("the last one failed on {} of {}: another node is to try it", past->failed_at.node,
        past->failed_at.site);
  }
  if (past->guess_failed)
    add("what runs before it let expect was too little: it has what was asked for");
  if (const auto grown = engine_.tasks_.grown_needs(task_))
    add("it has more than before, which was too little: {}", show(*grown));
  if (past->needs_more_than) {
    add("a pilot's end cut it after {}: it waits for one with more time left",
        show_duration(*past->needs_more_than));
  }
}

void Explainer::explain_guess(const Needs& needs) {
  if (needs.guess && !engine_.tasks_.guess_failed(task_)) add("{}", guess_in_words(needs));
}

std::string Explainer::text_of(const Lease& lease) {
  const PilotState* pilot = engine_.pilots_.find(lease.pilot);
  const std::string where = fmt::format("pilot {}{}", to_string(lease.pilot),
                                        pilot && !pilot->node.empty() ? " on " + pilot->node : "");
  if (lease.has_left) {
    if (const std::string* delay = engine_.pilots_.why_delayed(task_))
      add("the last time that failed: {}", *delay);
    return "done at " + where + ", its outputs are being staged out";
  }
  if (pilot && !pilot->connected) {
    const AllocationEntry* entry = engine_.sites_.find(lease.pilot.allocation);
    if (entry && entry->facts.fenced.contains(lease.pilot.rank)) add("{}", entry->facts.reason);
    const std::string until =
        engine_.sites_.site(pilot->site)
            ? "when the batch system says that its allocation has ended"
            : fmt::format("after {} of silence: its site {} is no longer in the configuration",
                          show_duration(Site{}.lost_after), pilot->site);
    return fmt::format("unknown: {} has been silent for {}; it is asked for again {}", where,
                       show_duration(now_ - pilot->silent_since), until);
  }
  if (lease.waits_for_workspace)
    return fmt::format("done at {}, its result waits for the workspace of {}: {}", where,
                       pilot->site, pilot->workspace_trouble);
  if (lease.state == Lease::State::Sent) return "waits at " + where + " for room";
  if (lease.state == Lease::State::Publishing)
    return "done at " + where + ", its outputs are being put in place";
  return fmt::format("runs at {} for {}", where,
                     show_duration(now_ - lease.started.value_or(lease.since)));
}

/// Where it is not for want of a pilot that it waits.
std::optional<std::string> Explainer::why_not_ready(const ArrayState& array) {
  if (why_.state == TaskState::Held)
    return fmt::format("held by its user; 'hpcbatch release {}' lets it go on", to_string(task_));
  if (array.tasks.blocked().contains(task_.index)) {
    const Course& course = array.terms->course.get();
    for (const auto& [before, open] : array.open()) add("for {}", show_dependency(open.on));
    if (course.any_of_after && array.open().size() > 1) add("any of these is enough");
    if (!array.open().empty() && engine_.tasks_.waits_for_its_time(array))
      add("and not before {} from now", show_duration(*course.begin - now_));
    if (array.open().empty()) return "begins in " + show_duration(*course.begin - now_);
    return "waits for other tasks";
  }
  if (is_parked(engine_.tasks_.queue(), array, task_.index))
    return fmt::format("{} of its array {} with pilots, and no more may be",
                       show_count(array.tasks.leased().size(), "task"),
                       array.tasks.leased().size() == 1 ? "is" : "are");
  if (engine_.drain_.on) return "the engine is being stopped: it starts nothing more";
  return std::nullopt;
}

void Explainer::explain_places(const Needs& needs, const Needs& of_class) {
  bool any_site = false;
  bool any_shape = false;
  for (const SiteState& site : engine_.sites_.sites()) {
    if (!may_run_at(needs, site.site.name)) continue;
    any_site = true;
    for (const ShapeState& shape : site.shapes)
      any_shape = any_shape || could_run(of_class, shape.shape);
  }
  if (!any_site)
    add("no site is left in the configuration that may run it: it needs {}", show(of_class));
  else if (!any_shape)
    add("no shape of the configuration can run it any more: it needs {}", show(of_class));
}

/// How many could run it when they have room.
std::size_t Explainer::explain_pilots(ClassId id) {
  const ResourceClass& wanted = engine_.tasks_.queue().get(id);
  Needs without_time = wanted.needs;
  without_time.time.reset();
  std::size_t pilots = 0;
  for (const auto& [name, pilot] : engine_.pilots_.all()) {
    if (!pilot.takes_tasks()) continue;
    if (pilot.kept_for == id) {
      add("room is being kept for it on pilot {} since {} ago{}", to_string(name),
          show_duration(now_ - pilot.kept_since),
          pilot.kept_until && *pilot.kept_until > now_
              ? ", and expected in " + show_duration(*pilot.kept_until - now_)
              : "");
    }
    if (PilotTable::has_room(wanted, pilot, pilot.capacity, now_))
      ++pilots;
    else if (PilotTable::has_room(without_time, pilot, pilot.capacity, now_))
      add("pilot {} has too little time left for it", to_string(name));
  }
  return pilots;
}

bool Explainer::awaits_pilot(const Needs& needs) const {
  const SiteForecast forecast(engine_.sites_, now_);
  const auto& all = engine_.sites_.allocations();
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    const auto& [id, entry] = one;
    if (entry.facts.state == AllocationState::Ended || entry.facts.pilots_seen != 0) return false;
    const Shape* shape = engine_.sites_.shape_of(id);
    return shape && could_run(needs, *shape) && may_run_at(needs, entry.facts.site) &&
           forecast.is_on_its_way(entry);
  });
}

namespace {

/// Who has the cpus of a site.
struct Holders {
  Amount cpus;
  Amount free;
  std::size_t tasks{0};
  std::vector<TaskId> outer;  ///< of these, those that have submitted tasks which have not ended
};

std::string show_holders(const std::string& site, const Holders& holders,
                         const std::optional<TaskId>& within) {
  Resources cpus;
  cpus.set(kCpus, holders.cpus);
  const bool has_submitted_it = within && std::find(holders.outer.begin(), holders.outer.end(),
                                                    *within) != holders.outer.end();
  return fmt::format(
      "{} {} of site {} are held by {}; {} submitted tasks that have not ended{}. If they wait for "
      "these, no room becomes free: end some of them ('hpcbatch cancel {}'), give the site more "
      "cpus, or submit the inner tasks to another site",
      holders.free > Amount{} ? fmt::format("{:g} of", (holders.cpus - holders.free).value())
                              : "all",
      show(cpus), site, show_count(holders.tasks, "task"),
      holders.tasks == holders.outer.size() ? "all of them"
                                            : fmt::format("{} of them", holders.outer.size()),
      has_submitted_it
          ? fmt::format(", among them {}, which submitted this one", to_string(*within))
          : "",
      to_string(has_submitted_it ? *within : holders.outer.front()));
}

}  // namespace

void Explainer::explain_outer_tasks(ClassId id) {
  const ResourceClass& wanted = engine_.tasks_.queue().get(id);
  const std::set<TaskId> outer = engine_.tasks_.outer_tasks();
  if (outer.empty() || awaits_pilot(wanted.needs)) return;
  std::map<std::string, Holders> sites;
  for (const auto& [name, pilot] : engine_.pilots_.all()) {
    if (!pilot.takes_tasks() || !PilotTable::has_room(wanted, pilot, pilot.capacity, now_))
      continue;
    Holders& site = sites[pilot.site];
    site.cpus += pilot.capacity.get(kCpus);
    site.free += std::max(Amount{}, pilot.free.get(kCpus));
    site.tasks += pilot.in_room.size();
    Resources room = pilot.free;
    for (const TaskId task : pilot.in_room) {
      if (outer.contains(task))
        site.outer.push_back(task);
      else
        room.add(engine_.pilots_.lease(task)->granted);
    }
    if (PilotTable::has_room(wanted, pilot, room, now_)) return;
  }
  const std::optional<TaskId>& within = engine_.tasks_.find(task_.array)->terms->within;
  for (const auto& [name, holders] : sites) {
    if (!holders.outer.empty()) add("{}", show_holders(name, holders, within));
  }
}

void Explainer::explain_sites(const Needs& needs) {
  for (const SiteState& site : engine_.sites_.sites()) {
    if (!may_run_at(needs, site.site.name)) continue;
    if (!site.trouble.empty()) {
      add("site {} has not answered for {}: {}", site.site.name,
          show_duration(now_ - *site.trouble_since), site.trouble);
    }
    if (site.workspace_in_trouble()) {
      add("nothing starts at site {}: for {} its pilots have not been able to use the workspace: "
          "{}",
          site.site.name, show_duration(now_ - site.workspace_trouble_since),
          site.workspace_trouble.begin()->second);
    }
    const SiteForecast forecast(engine_.sites_, now_);
    for (const ShapeState& shape : site.shapes) {
      if (!could_run(needs, shape.shape)) continue;
      if (forecast.starts_nothing(shape))
        add("no pilot of shape {} of {} starts now: {}", shape.shape.name, site.site.name,
            shape.blind);
      if (shape.may_be_asked(now_)) continue;
      add("shape {} of {} is not asked for during the next {}: {}", shape.shape.name,
          site.site.name, show_duration(*shape.back_off.until - now_), shape.back_off.why);
    }
  }
}

void Explainer::explain_allocation(const AllocationId& id, const Allocation& facts) {
  add("allocation {} on {}{} is {} since {}{}{}", id.name, facts.site,
      facts.number.empty() ? "" : ", batch job " + facts.number + ",", to_string(facts.state),
      show_duration(now_ - facts.opened), facts.reason.empty() ? "" : " (" + facts.reason + ")",
      facts.state == AllocationState::Running ? ", and its pilot has not registered yet" : "");
}

namespace {

std::string who_says(const StartBound& bound) {
  switch (bound.by) {
    case StartBound::By::Model:
      return fmt::format("a model of {} waits", bound.from);
    case StartBound::By::Waits:
      return fmt::format("{} waits before it", bound.from);
    case StartBound::By::Queue:
      break;
  }
  return "what its queue shows";
}

}  // namespace

void Explainer::explain_allocations(const Needs& needs) {
  const SiteTable& sites = engine_.sites_;
  const SiteForecast forecast(sites, now_);
  std::optional<Duration> soonest;
  std::optional<StartBound> bound;
  std::string where;
  for (const auto& [id, entry] : sites.allocations()) {
    if (entry.facts.state == AllocationState::Ended) continue;
    const Shape* shape = sites.shape_of(id);
    if (!shape || !could_run(needs, *shape) || !may_run_at(needs, entry.facts.site)) continue;
    explain_suspended(id);
    if (entry.facts.state == AllocationState::Running && entry.facts.pilots_seen != 0) continue;
    const auto told = forecast.start_bound(entry);
    const auto start = told ? std::optional(told->half.value_or(told->most) - now_)
                            : forecast.expected_start(entry);
    if (start && forecast.is_on_its_way(entry) && (!soonest || *start < *soonest)) {
      soonest = start;
      bound = told;
      where = entry.facts.site;
    }
    explain_allocation(id, entry.facts);
  }
  if (!soonest) return;
  if (bound && !bound->half && bound->most > now_)
    add("expected to start in {} at most on {}, as its queue looks, should all others run for as "
        "long as they may",
        show_about(bound->most - now_), where);
  else if (bound && bound->half && *bound->half > now_)
    add("expected to start in about {} on {}, with 90 % in {} at most, from {}",
        show_about(*bound->half - now_), where, show_about(bound->most - now_), who_says(*bound));
  else if (*soonest > Duration{})
    add("expected to start in about {} on {}", show_about(*soonest), where);
  else if (*soonest == Duration{})
    add("expected to start on {} any moment", where);
  else
    add("was expected to start on {} {} ago, and has not", where,
        show_about(Duration{} - *soonest));
}

Explanation Explainer::explain() {
  const ArrayState& array = *engine_.tasks_.find(task_.array);
  explain_past();
  explain_guess(array.terms->needs);
  if (const Lease* lease = engine_.pilots_.lease(task_)) {
    why_.text = text_of(*lease) + (lease->cancelled ? "; it is being cancelled" : "");
    explain_suspended(lease->pilot.allocation);
    if (!lease->counted && lease->state == Lease::State::Sent) explain_outer_tasks(lease->in_class);
    return std::move(why_);
  }
  if (auto text = why_not_ready(array)) {
    why_.text = std::move(*text);
    return std::move(why_);
  }
  if (array.needs_files()) explain_files(array);
  QueuePlace place = array.place();
  place.in_class = engine_.tasks_.class_of_task(task_);
  const ReadyQueue& queue = engine_.tasks_.queue();
  const ResourceClass& alike = queue.get(place.in_class);
  const Needs& needs = alike.needs;
  why_.text = fmt::format("ready, {} with the same needs ahead; {}",
                          show_count(queue.ahead_of(place, task_.index), "task"),
                          service_of(needs).value_or("no pilot has room"));
  if (queue.size() > alike.ready)
    // Among them those of the same needs that are tried alone.
    add("{} in other places of the queue, which may be served first",
        show_count(queue.size() - alike.ready, "task"));
  explain_places(array.terms->needs, needs);
  const std::size_t pilots = explain_pilots(place.in_class);
  explain_nodes(needs);
  explain_suspects();
  if (pilots != 0) add("{} could run it once there is room", show_count(pilots, "pilot"));
  explain_outer_tasks(place.in_class);
  explain_sites(needs);
  explain_allocations(needs);
  return std::move(why_);
}

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

std::optional<Explanation> Engine::explain(TaskId task, Time now) const {
  const auto state = state_of(task);
  if (!state) return std::nullopt;
  return Explainer(*this, task, *state, now).explain();
}

}  // namespace hpcbatch
