#include "runtime/engine_history.hpp"

#include "model/visit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace hpcbatch {
namespace {

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

Facts of_tasks(ArrayId array, const IndexSet& indices) {
  return {{"array", std::to_string(array.value)}, {"indices", to_string(indices)}};
}

IndexSet open_of(IndexSet indices, const IndexSet& ok, const IndexSet& not_ok) {
  indices.remove(ok);
  indices.remove(not_ok);
  return indices;
}

}  // namespace

std::unique_ptr<EngineHistory> EngineHistory::open(Writer& writer, const Snapshot& snapshot,
                                                   const std::vector<Site>& sites) {
  const char* folder = std::getenv("HPCBATCH_HISTORY");
  if (!folder || *folder == '\0') return nullptr;
  return std::make_unique<EngineHistory>(folder, writer, snapshot, sites);
}

EngineHistory::EngineHistory(const std::string& folder, Writer& writer, const Snapshot& snapshot,
                             const std::vector<Site>& sites)
    : folder_(folder),
      writer_(writer),
      file_(std::make_shared<wire::HistoryFile>(
          folder, "engine", "engine/" + std::to_string(snapshot.engine_start))) {
  file_->add("engine-started", {{"start", std::to_string(snapshot.engine_start)}});
  for (const Site& site : sites) {
    file_->add("site", {{"site", site.name},
                        {"max_queued", std::to_string(site.max_queued)},
                        {"max_running", std::to_string(site.max_running)}});
  }
  for (const LiveArray& live : snapshot.arrays)
    file_->add("restored-open",
               of_tasks(live.id, open_of(live.array.indices, live.ok, live.not_ok)));
  file_->add("restored", {{"next_array", std::to_string(snapshot.next_array)}});
}

void EngineHistory::when_written(std::string what, Facts facts) {
  writer_.after_written({}, [file = file_, what = std::move(what), facts = std::move(facts)] {
    file->add(what, facts);
  });
}

void EngineHistory::when_durable(std::string what, Facts facts) {
  writer_.after_durable(
      [file = file_, what = std::move(what), facts = std::move(facts)] { file->add(what, facts); },
      false);
}

void EngineHistory::before(const Event& event, const Action& action) {
  match(
      action,
      [&](const OpenAllocation& a) {
        // Asked for before, and the batch system's own list does not have it.
        const auto* polled = std::get_if<SitePolled>(&event);
        const auto is_it = [&](const BatchJob& job) { return job.name == a.allocation.name; };
        if (polled && std::none_of(polled->jobs.begin(), polled->jobs.end(), is_it)) {
          when_durable("allocation-absent", {{"allocation", a.allocation.name}});
        }
        when_durable("allocation-asked",
                     {{"allocation", a.allocation.name}, {"site", a.site}, {"shape", a.shape}});
      },
      [&](const PermitPublish& a) {
        when_written("publish-permitted", of_attempt(a.attempt, a.pilot));
      },
      [&](const WelcomePilot& a) {
        file_->add("pilot-registered",
                   {{"pilot", to_string(a.pilot)}, {"incarnation", std::to_string(a.incarnation)}});
      },
      [](const auto&) {});
}

void EngineHistory::after(const Action& action) {
  match(
      action,
      [&](const SaveArray& a) { when_durable("accepted", of_tasks(a.id, a.array.indices)); },
      [&](const SaveRevived& a) {
        // They may be leased before that is on disk.
        when_written("revived", of_tasks(a.array, a.indices));
      },
      [&](const SaveLeases& a) {
        for (const AttemptId& attempt : a.attempts)
          when_written("leased", of_attempt(attempt, a.pilot));
      },
      [&](const DropLeases& a) {
        for (const TaskId task : a.tasks)
          when_written("lease-returned", {{"task", to_string(task)}});
      },
      [&](const SaveFailedAttempt& a) {
        when_written("attempt-failed", with(of_attempt(a.attempt, a.pilot), "failure",
                                            std::string(to_string(a.outcome.failure))));
      },
      [&](const SaveResult& a) {
        when_durable("result", with(of_attempt(a.attempt, a.pilot), "failure",
                                    std::string(to_string(a.outcome.failure))));
      },
      [&](const SaveResults& a) {
        when_durable("never-ran", with(of_tasks(a.array, a.indices), "failure",
                                       std::string(to_string(a.outcome.failure))));
      },
      [&](const SaveAllocation& a) {
        if (a.allocation.state != AllocationState::Ended) return;
        when_written("allocation-ended",
                     {{"allocation", a.allocation.id.name},
                      {"cause", a.allocation.cancel_asked ? "unneeded" : "batch-system"}});
      },
      [](const auto&) {});
}

void EngineHistory::end(const Engine& engine, Time now) {
  for (const auto& [id, array] : engine.tasks().arrays()) {
    const IndexSet open = open_of(array.facts.indices, array.ok, array.not_ok);
    if (open.empty()) continue;
    const auto why = engine.explain({id, open.ranges().back().first}, now);
    file_->add("waits", with(of_tasks(id, open), "reason", why ? why->text : ""));
  }
  file_->add("engine-ended", {});
}

}  // namespace hpcbatch
