#include "engine/history_of.hpp"

#include "model/check.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

using enum Noted::When;
using Facts = std::vector<std::pair<std::string, std::string>>;

Facts of_attempt(const AttemptId& attempt, const PilotId& pilot) {
  return {{"task", to_string(attempt.task)},
          {"attempt", std::to_string(attempt.number)},
          {"epoch", std::to_string(attempt.epoch)},
          {"pilot", to_string(pilot)}};
}

Facts with(Facts facts, std::string name, std::string value) {
  facts.emplace_back(std::move(name), std::move(value));
  return facts;
}

Facts with(Facts facts, Failure failure) {
  return with(std::move(facts), "failure", std::string(to_string(failure)));
}

Facts of_tasks(ArrayId array, const IndexSet& indices) {
  return {{"array", std::to_string(array.value)}, {"indices", to_string(indices)}};
}

}  // namespace

std::vector<Noted> noted_at_start(const Snapshot& snapshot, const std::vector<Site>& sites) {
  std::vector<Noted> noted{
      {Now, "engine-started", {{"start", std::to_string(snapshot.engine_start)}}}};
  for (const Site& site : sites) {
    noted.push_back({Now,
                     "site",
                     {{"site", site.name},
                      {"max_queued", std::to_string(site.max_queued)},
                      {"max_running", std::to_string(site.max_running)}}});
  }
  return noted;
}

Noted noted_restored(const LiveArray& live) {
  IndexSet open = live.array.indices;
  open.remove(live.ok);
  open.remove(live.not_ok);
  return {Now, "restored-open", of_tasks(live.id, open)};
}

std::vector<Noted> noted_restored(const Snapshot& snapshot) {
  std::vector<Noted> noted;
  for (const StoredLease& lease : snapshot.leases)
    noted.push_back({Now, "restored-lease", of_attempt(lease.attempt, lease.pilot)});
  noted.push_back({Now, "restored", {{"next_array", std::to_string(snapshot.next_array)}}});
  return noted;
}

std::vector<Noted> noted_before(const Event& event, const Action& action) {
  std::vector<Noted> noted;
  match(
      action,
      [&](const OpenAllocation& a) {
        // Asked for before, and the batch system's own list does not have it.
        const auto* polled = std::get_if<SitePolled>(&event);
        const auto is_it = [&](const BatchJob& job) { return job.name == a.allocation.name; };
        if (polled && std::none_of(polled->jobs.begin(), polled->jobs.end(), is_it)) {
          noted.push_back({Durable, "allocation-absent", {{"allocation", a.allocation.name}}});
        }
        const Facts what{{"allocation", a.allocation.name}, {"site", a.site}, {"shape", a.shape}};
        noted.push_back({Now, "allocation-decided", what});
        noted.push_back({Durable, "allocation-asked", what});
      },
      [&](const SaveRevived& a) {
        noted.push_back({Now, "reviving", of_tasks(a.array, a.indices)});
      },
      [&](const PermitPublish& a) {
        noted.push_back({Written, "publish-permitted", of_attempt(a.attempt, a.pilot)});
      },
      [&](const WelcomePilot& a) {
        noted.push_back(
            {Now,
             "pilot-registered",
             {{"pilot", to_string(a.pilot)}, {"incarnation", std::to_string(a.incarnation)}}});
      },
      [](const auto&) {});
  return noted;
}

std::vector<Noted> noted_after(const Action& action) {
  std::vector<Noted> noted;
  match(
      action,
      [&](const SaveArrays& a) {
        for (std::size_t i = 0; i < a.arrays.size(); ++i)
          noted.push_back({Durable, "accepted", of_tasks(a.id_of(i), a.arrays[i].indices)});
      },
      [&](const SaveRevived& a) {
        // They may be leased before that is on disk.
        noted.push_back({Written, "revived", of_tasks(a.array, a.indices)});
      },
      [&](const SaveLeases& a) {
        for (const AttemptId& attempt : a.attempts) {
          noted.push_back({Written, "leased", of_attempt(attempt, a.pilot)});
        }
      },
      [&](const DropLeases& a) {
        for (const TaskId task : a.tasks) {
          noted.push_back({Written, "lease-returned", {{"task", to_string(task)}}});
        }
      },
      [&](const SaveFailedAttempt& a) {
        noted.push_back(
            {Written, "attempt-failed", with(of_attempt(a.attempt, a.pilot), a.outcome.failure)});
      },
      [&](const SaveResult& a) {
        noted.push_back(
            {Durable, "result", with(of_attempt(a.attempt, a.pilot), a.outcome.failure)});
      },
      [&](const SaveResults& a) {
        noted.push_back(
            {Durable, "never-ran", with(of_tasks(a.array, a.indices), a.outcome.failure)});
      },
      [&](const SaveAllocation& a) {
        if (a.allocation.state != AllocationState::Ended) return;
        noted.push_back({Now,
                         "allocation-ended",
                         {{"allocation", a.allocation.id.name},
                          {"cause", a.allocation.cancel_asked ? "unneeded" : "batch-system"}}});
      },
      [](const auto&) {});
  return noted;
}

std::vector<Noted> noted_at_end(const Engine& engine, Time now) {
  std::vector<Noted> noted;
  for (const auto& [id, array] : engine.tasks().arrays()) {
    const IndexSet open = array.tasks.open();
    if (open.empty()) continue;
    const auto why = engine.explain({id, open.ranges().back().first}, now);
    noted.push_back({Now, "waits", with(of_tasks(id, open), "reason", why ? why->text : "")});
  }
  noted.push_back({Now, "engine-ended", {}});
  return noted;
}

}  // namespace hpcbatch
