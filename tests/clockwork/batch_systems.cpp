#include "batch_systems.hpp"

#include "links/pilot_messages.hpp"
#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch::clockwork {

using namespace std::chrono_literals;

namespace {

constexpr Duration kKillWait = 30s;     // between the batch system's TERM and KILL
constexpr Duration kRemembered = 5min;  // how long lists show what has ended
constexpr Duration kCancelReach = 2s;

}  // namespace

BatchSystems::~BatchSystems() {
  for (Job& job : jobs_) {
    for (const auto& pilot : job.pilots) pilot->world_ends();
  }
}

void BatchSystems::command(const std::string& site, std::function<void(Draw)> run) {
  Lane& lane = lanes_[site];
  Draw draw = world_.draw({'b', std::hash<std::string>{}(site), ++lane.commands});
  const Time begins = std::max(world_.clock.now(), lane.free_at);
  lane.free_at = begins + (draw.chance(90) ? draw.between(5ms, 200ms) : draw.between(200ms, 5s));
  // A command that runs outlives the engine that began it; one that waits for its turn does not.
  world_.clock.at(begins,
                  world_.engine.if_alive([this, ends = lane.free_at, run = std::move(run), draw] {
                    world_.clock.at(ends, [run, draw] { run(draw); });
                  }));
}

bool BatchSystems::is_spoilt(const std::string& site, IncidentKind how) {
  auto& spoilt = lanes_[site].spoilt;
  const auto at = std::find(spoilt.begin(), spoilt.end(), how);
  if (at == spoilt.end()) return false;
  spoilt.erase(at);
  world_.count("fault " + std::string(name_of(how)));
  return true;
}

// --- commands ----------------------------------------------------------------------------------

void BatchSystems::submit(const OpenAllocation& asked, const Shape& shape, Answer answer) {
  command(asked.site, [this, asked, shape, answer = std::move(answer)](Draw draw) {
    using enum IncidentKind;
    world_.workspace.pilot_files[asked.allocation.name] = asked.site;
    const auto in_vain = [&, this] {
      lanes_[asked.site].free_at = world_.clock.now() + kSubmitDeadline;
      world_.clock.after(kSubmitDeadline, [answer, asked] {
        answer(AllocationRefused{asked.allocation, Refusal::Unclear, "no answer"});
      });
    };
    if (is_spoilt(asked.site, refuse_submit)) {
      world_.workspace.pilot_files.erase(asked.allocation.name);
      const bool is_limit = draw.chance(50) && asked.site != kLocalSite;
      const Refusal how = is_limit ? Refusal::Limit : Refusal::Transient;
      return answer(AllocationRefused{asked.allocation, how, "not now"});
    }
    if (is_spoilt(asked.site, lose_submit)) return in_vain();
    if (is_spoilt(asked.site, late_submit)) {
      Job& job = create(asked, shape);
      job.hidden = true;
      // Before a look-up that finds nothing is believed.
      world_.clock.after(draw.between(0s, kSubmitDeadline + 15s), [this, &job] { appear(job); });
      return in_vain();
    }
    Job& job = create(asked, shape);
    appear(job);
    if (is_spoilt(asked.site, lose_submit_answer)) return in_vain();
    answer(AllocationAccepted{asked.allocation, std::to_string(job.number)});
  });
}

Job& BatchSystems::create(const OpenAllocation& asked, const Shape& shape) {
  jobs_.push_back(
      {.id = asked.allocation, .site = asked.site, .shape = shape, .number = jobs_.size() + 1});
  return jobs_.back();
}

void BatchSystems::appear(Job& job) {
  job.hidden = false;
  record("job-created", job);
  start_later(job);
}

void BatchSystems::cancel(const CancelAllocation& asked) {
  command(asked.site, [this, asked](Draw draw) {
    if (is_spoilt(asked.site, IncidentKind::lose_cancel)) return;
    for (Job& job : jobs_) {
      if (job.id != asked.allocation || !job.lives() || job.hidden) continue;
      Job* there = &job;
      world_.clock.after(draw.between(0s, kCancelReach),
                         [this, there] { signal_end(*there, EndCause::Cancelled); });
    }
  });
}

std::vector<BatchJob> BatchSystems::list(const std::string& site) {
  std::vector<BatchJob> all;
  for (Job& job : jobs_) {
    if (job.site != site || job.hidden || job.dropped) continue;
    if (!job.lives() && world_.clock.now() - job.ended > kRemembered) job.dropped = true;
    if (job.dropped) continue;
    if (job.missing_in > 0) {
      --job.missing_in;
      job.shown_in = 0;
      world_.count("fault forget_job");
      continue;
    }
    ++job.shown_in;
    const BatchJob shown{.name = job.id.name,
                         .number = std::to_string(job.number),
                         .state = job.state,
                         .cause = job.cause};
    all.push_back(shown);
    if (std::exchange(job.repeated, false)) {
      world_.count("fault repeat_job");
      all.push_back(shown);
    }
  }
  return all;
}

void BatchSystems::poll(const std::string& site, Answer answer) {
  const Time asked = world_.clock.now();
  command(site, [this, site, asked, answer = std::move(answer)](Draw draw) {
    Lane& lane = lanes_[site];
    if (world_.clock.now() < lane.polls_fail_until) {
      world_.count("fault fail_poll");
      return answer(SitePollFailed{site, "no contact"});
    }
    std::vector<BatchJob> before = list(site);
    std::swap(before, lane.last_list);
    SitePolled polled{site, lane.last_list, asked};
    if (is_spoilt(site, IncidentKind::stale_poll)) polled.jobs = std::move(before);
    if (is_spoilt(site, IncidentKind::late_poll)) {
      const Duration late = draw.between(2s, 50s);
      lane.free_at = world_.clock.now() + late;
      world_.clock.after(late, [answer, polled] { answer(polled); });
    } else {
      answer(polled);
    }
  });
}

void BatchSystems::read_outbox(const ReadOutbox& asked, Answer answer) {
  command(asked.site, [this, asked, answer = std::move(answer)](Draw) {
    if (world_.clock.now() < world_.workspace.unreadable_until) {
      world_.count("fault hide_outbox");
      world_.clock.after(5s, [this, asked, answer] { read_outbox(asked, answer); });
      return;
    }
    std::vector<std::string> results;
    const std::string prefix = asked.allocation.name + ".";
    for (const auto& [name, left] : world_.workspace.outboxes) {
      if (name.starts_with(prefix)) results.insert(results.end(), left.begin(), left.end());
    }
    answer(OutboxRead{asked.allocation,
                      results_of_outbox(asked.allocation, results, world_.clock.now())});
  });
}

void BatchSystems::forget(const ForgetAllocation& asked) {
  command(asked.site, [this, asked](Draw) {
    world_.workspace.pilot_files.erase(asked.allocation.name);
    std::erase_if(world_.workspace.outboxes, [&](const auto& outbox) {
      return outbox.first.starts_with(asked.allocation.name + ".");
    });
  });
}

void BatchSystems::find_left(const std::string& site, Found found) {
  command(site, [this, site, found = std::move(found)](Draw) {
    std::vector<AllocationId> left;
    for (const auto& [name, of_site] : world_.workspace.pilot_files) {
      if (of_site == site) left.push_back(AllocationId{name});
    }
    for (const auto& [name, results] : world_.workspace.outboxes) {
      const AllocationId id{name.substr(0, name.find('.'))};
      const bool here = std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& job) {
        return job.id == id && job.site == site;
      });
      if (here) left.push_back(id);
    }
    found(left);
  });
}

// --- batch jobs --------------------------------------------------------------------------------

void BatchSystems::record(const std::string& what, const Job& job) {
  world_.record(
      "outside", what,
      {{"name", job.id.name}, {"number", std::to_string(job.number)}, {"site", job.site}});
}

void BatchSystems::start_later(Job& job) {
  Draw draw = world_.draw({'j', job.number, job.starts});
  const Duration wait = job.is_local()    ? draw.between(5ms, 500ms)
                        : draw.chance(80) ? draw.between(200ms, 20s)
                                          : draw.between(20s, 3min);
  world_.clock.after(wait, [this, &job, starts = job.starts] {
    if (job.state == BatchState::Queued && job.starts == starts) start(job);
  });
}

const Site& BatchSystems::site_of(const Job& job) const {
  const auto& sites = world_.scenario().sites;
  return *std::find_if(sites.begin(), sites.end(),
                       [&](const Site& site) { return site.name == job.site; });
}

PilotProcess::Node BatchSystems::draw_node(const Job& job, Draw& draw) {
  PilotProcess::Node node{.name = fmt::format("node{}", 1 + draw.below(9)),
                          .capacity = usable(job.shape)};
  if (job.is_local()) node.name = "this-machine";
  const auto takes = [](std::uint64_t& count) { return count > 0 ? count-- > 0 : false; };
  if (takes(bad_nodes_)) node.bad = true;
  if (const auto hole = black_holes_.find(node.name);
      hole != black_holes_.end() && world_.clock.now() < hole->second) {
    world_.count("fault black_hole");
    node.bad = true;
  }
  if (takes(unfit_nodes_)) node.unfit = true;
  // This machine has the engine's clock.
  if (!job.is_local() && takes(wrong_clocks_)) {
    world_.count("fault lose_wall_clock");
    node.wall_clock = draw.between(-20000h, 20000h);
  }
  return node;
}

void BatchSystems::start(Job& job) {
  ++job.starts;
  job.state = BatchState::Running;
  record("job-running", job);
  job.pilots.clear();
  Draw draw = world_.draw({'n', job.number, job.starts});
  for (std::uint32_t rank = 0; rank < job.shape.nodes; ++rank) {
    const auto pilot = std::make_shared<PilotProcess>(
        world_, PilotId{job.id, rank}, ++incarnations_, std::to_string(job.number),
        draw_node(job, draw), PilotProcess::Times{job.shape.walltime, site_of(job).idle_after});
    job.pilots.push_back(pilot);
    world_.clock.after(draw.between(10ms, 3s), [pilot] { pilot->begin(); });
  }
  if (job.shape.walltime == Duration{}) return world_.count("pilot without an end");
  world_.clock.after(job.shape.walltime, [this, &job, starts = job.starts] {
    if (job.starts == starts) signal_end(job, EndCause::Timeout);
  });
}

/// TERM, and KILL for what is still there after a while.
void BatchSystems::signal_end(Job& job, EndCause cause) {
  if (!job.lives() || std::exchange(job.ending, true)) return;
  job.cause = cause;
  if (job.state == BatchState::Queued || job.state == BatchState::Held ||
      job.state == BatchState::NeverStarts)
    return end(job, cause);
  const auto pilots = job.pilots;
  for (const auto& pilot : pilots) pilot->terminate();
  world_.clock.after(kKillWait, [this, &job, starts = job.starts, cause] {
    if (job.starts == starts && job.lives()) kill_all(job, cause);
  });
}

void BatchSystems::kill_all(Job& job, EndCause cause) {
  job.cause = cause;
  job.ending = true;
  const auto pilots = job.pilots;
  for (const auto& pilot : pilots) pilot->kill();
  if (job.lives()) end(job, cause);
}

void BatchSystems::pilot_gone(const std::shared_ptr<PilotProcess>& pilot) {
  for (Job& job : jobs_) {
    if (job.id != pilot->id().allocation || !job.lives()) continue;
    const auto is_ours = std::find(job.pilots.begin(), job.pilots.end(), pilot);
    if (is_ours == job.pilots.end()) continue;
    const bool all_gone = std::all_of(job.pilots.begin(), job.pilots.end(),
                                      [](const auto& p) { return p->is_gone(); });
    if (!all_gone) return;
    const bool any_killed = std::any_of(job.pilots.begin(), job.pilots.end(),
                                        [](const auto& p) { return p->was_killed(); });
    const EndCause by_itself = any_killed ? EndCause::Failed : EndCause::Completed;
    end(job, job.ending ? job.cause : by_itself);
    return;
  }
}

void BatchSystems::end(Job& job, EndCause cause) {
  job.state = BatchState::Ended;
  job.cause = cause;
  job.ended = world_.clock.now();
  record("job-ended", job);
}

void BatchSystems::machine_lost_power() {
  for (Job& job : jobs_) {
    if (!job.is_local() || !job.lives() || job.hidden) continue;
    // What remembers it may have been in memory alone.
    job.dropped = world_.draw({'o', job.number, job.starts}).chance(50);
    kill_all(job, EndCause::Failed);
  }
}

Job* BatchSystems::any_job(std::uint64_t which, bool running, bool of_cluster) {
  std::vector<Job*> all;
  for (Job& job : jobs_) {
    const bool fits = running ? job.state == BatchState::Running : job.state == BatchState::Queued;
    if (fits && !job.hidden && !job.ending && !(of_cluster && job.is_local())) all.push_back(&job);
  }
  return all.empty() ? nullptr : all[which % all.size()];
}

void BatchSystems::only_these_are_asked(const std::vector<Site>& sites) {
  for (auto& [name, lane] : lanes_) lane.free_at = world_.clock.now();
  for (Job& job : jobs_) {
    const bool known = std::any_of(sites.begin(), sites.end(),
                                   [&](const Site& site) { return site.name == job.site; });
    if (known || job.out_of_reach) continue;
    job.out_of_reach = true;
    world_.observer.out_of_reach(job.id);
    if (job.lives()) record("job-ended", job);  // as far as anybody can know who asks the others
  }
}

// --- faults ------------------------------------------------------------------------------------

void BatchSystems::strike(const Incident& incident) {
  using enum IncidentKind;
  const auto& sites = world_.scenario().sites;
  const std::string& site = sites[incident.which % sites.size()].name;
  const auto counted = [&] { world_.count("fault " + std::string(name_of(incident.kind))); };
  const auto with_job = [&](bool running, auto does) {
    // There is nobody on this machine who holds, preempts or starts again.
    const bool of_cluster = incident.kind == hold_job || incident.kind == never_starts ||
                            incident.kind == preempt_job || incident.kind == requeue_job;
    Job* job = any_job(incident.which, running, of_cluster);
    if (!job) return;
    counted();
    does(*job);
  };
  const auto a_pilot = [&](auto does) {
    with_job(true, [&](Job& job) {
      const auto pilots = job.pilots;
      does(*pilots[(incident.which >> 8) % pilots.size()]);
    });
  };
  switch (incident.kind) {
    case lose_submit_answer:
    case lose_submit:
    case late_submit:
    case refuse_submit:
    case late_poll:
    case stale_poll:
    case lose_cancel:
      lanes_[site].spoilt.push_back(incident.kind);
      return;
    case fail_poll:
      lanes_[site].polls_fail_until = world_.clock.now() + incident.length;
      return;
    case forget_job:
      // Never so often that a batch system could be said to have told that it is gone: a list that
      // lacks it may come a second time, as an old one.
      for (Job& job : jobs_) {
        if (job.site == site && job.lives() && !job.hidden && job.shown_in >= 2) job.missing_in = 1;
      }
      return;
    case repeat_job:
      for (Job& job : jobs_) job.repeated = job.repeated || (job.site == site && job.lives());
      return;
    case drop_ended_job:
      for (Job& job : jobs_) {
        if (job.lives() || job.dropped) continue;
        counted();
        job.dropped = true;
      }
      return;
    case hold_job:
      return with_job(false, [&](Job& job) {
        job.state = BatchState::Held;
        world_.clock.after(incident.length, [this, &job] {
          if (job.state != BatchState::Held) return;
          job.state = BatchState::Queued;
          start_later(job);
        });
      });
    case never_starts:
      // The pause of its shape is an hour, and twice that after the next one.
      if (any_never_started_) return;
      return with_job(false, [&](Job& job) {
        any_never_started_ = true;
        job.state = BatchState::NeverStarts;
      });
    case preempt_job:
      return with_job(true, [&](Job& job) { signal_end(job, EndCause::Preempted); });
    case cancel_job:
      return with_job(incident.which % 4 != 0,
                      [&](Job& job) { signal_end(job, EndCause::Cancelled); });
    case fail_node:
      return with_job(true, [&](Job& job) {
        kill_all(job, job.is_local() ? EndCause::Failed : EndCause::NodeFailed);
      });
    case requeue_job:
      return with_job(true, [&](Job& job) {
        const auto pilots = job.pilots;
        job.pilots.clear();
        for (const auto& pilot : pilots) pilot->kill();
        job.state = BatchState::Queued;
        start_later(job);
      });
    case suspend_job:
      return with_job(true, [&](Job& job) {
        job.state = BatchState::Suspended;
        for (const auto& pilot : job.pilots) pilot->freeze(incident.length, true);
        world_.clock.after(incident.length, [&job, starts = job.starts] {
          if (job.state == BatchState::Suspended && job.starts == starts)
            job.state = BatchState::Running;
        });
      });
    case lose_pilot_file:
      return with_job(true, [&](Job& job) {
        world_.workspace.pilot_files.erase(job.id.name);
        for (const auto& pilot : job.pilots) pilot->lose_link();
      });
    case kill_pilot:
      return a_pilot([](PilotProcess& pilot) { pilot.kill(); });
    case freeze_pilot:
      return a_pilot([&](PilotProcess& pilot) { pilot.freeze(incident.length, false); });
    case suspend_all:
      for (Job& job : jobs_) {
        if (job.state != BatchState::Running || job.ending) continue;
        counted();
        job.state = BatchState::Suspended;
        for (const auto& pilot : job.pilots) pilot->freeze(incident.length, true);
        world_.clock.after(incident.length, [&job, starts = job.starts] {
          if (job.state == BatchState::Suspended && job.starts == starts)
            job.state = BatchState::Running;
        });
      }
      return;
    case black_hole:
      black_holes_[fmt::format("node{}", 1 + incident.which % 9)] =
          world_.clock.now() + incident.length + 2min;
      return;
    case bad_node:
      ++bad_nodes_;
      return;
    case unfit_node:
      ++unfit_nodes_;
      return;
    case lose_wall_clock:
      ++wrong_clocks_;
      return;
    default:
      return;
  }
}

void BatchSystems::make_peace() {
  for (auto& [site, lane] : lanes_) {
    lane.spoilt.clear();
    lane.polls_fail_until = {};
  }
  bad_nodes_ = unfit_nodes_ = wrong_clocks_ = 0;
  black_holes_.clear();
  for (Job& job : jobs_) {
    job.missing_in = 0;
    job.repeated = false;
    for (const auto& pilot : job.pilots) pilot->thaw();
  }
}

bool BatchSystems::is_empty() const {
  return std::none_of(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.lives(); });
}

bool BatchSystems::has_one_that_stays() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& job) {
    return job.lives() && site_of(job).idle_after == Duration{};
  });
}

bool BatchSystems::has_no_end(const AllocationId& id) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& job) {
    return job.id == id && job.shape.walltime == Duration{};
  });
}

bool BatchSystems::holds(const PilotId& pilot, std::uint64_t incarnation,
                         const AttemptId& attempt) const {
  for (const Job& job : jobs_) {
    if (job.id != pilot.allocation) continue;
    for (const auto& process : job.pilots) {
      if (process->id() == pilot && process->incarnation() == incarnation)
        return process->is_gone() || process->is_in_trouble() || process->holds(attempt);
    }
  }
  return true;  // an earlier process: its link has yet to be missed
}

std::string BatchSystems::what_is_left() const {
  std::string text;
  for (const Job& job : jobs_) {
    if (job.lives())
      text += fmt::format(" {} (state {})", job.id.name, static_cast<int>(job.state));
  }
  return text;
}

}  // namespace hpcbatch::clockwork
