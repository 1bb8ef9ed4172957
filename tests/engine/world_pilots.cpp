// The pilots of the small world: they register, start what fits, stage, publish, keep results until
// acknowledged, die.
#include "world.hpp"

#include "model/visit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {

using namespace std::chrono_literals;

World::Process* World::find(const PilotId& id, std::uint64_t incarnation) {
  const auto at = std::find_if(processes_.begin(), processes_.end(), [&](const Process& p) {
    return p.id == id && p.incarnation == incarnation;
  });
  return at == processes_.end() ? nullptr : &*at;
}

void World::record_gone(const Process& process) {
  record("outside", "pilot-killed",
         {{"process", to_string(process.id) + "/" + std::to_string(process.incarnation)}});
}

void World::record_attempt(const std::string& what, const Process& process, const Here& here) {
  record("pilot/" + to_string(process.id) + "/" + std::to_string(process.incarnation), what,
         {{"task", to_string(here.attempt.task)},
          {"epoch", std::to_string(here.attempt.epoch)},
          {"failure", std::string(to_string(here.outcome.failure))}});
}

void World::send(const PilotId& id, const Action& action) {
  const auto welcomed = welcomed_.find(id);
  Process* process = welcomed == welcomed_.end() ? nullptr : find(id, welcomed->second);
  if (process && process->linked) process->inbox.push_back(action);
}

/// Its link is gone; the engine hears of it where it took the link for the pilot's.
void World::leave(const Process& process) {
  const auto welcomed = welcomed_.find(process.id);
  if (welcomed == welcomed_.end() || welcomed->second != process.incarnation) return;
  welcomed_.erase(welcomed);
  answers_.push_back(PilotDisconnected{process.id});
}

void World::break_link(Process& process) {
  process.linked = false;
  process.inbox.clear();
  const auto welcomed = welcomed_.find(process.id);
  if (welcomed == welcomed_.end() || welcomed->second != process.incarnation) return;
  welcomed_.erase(welcomed);
  feed(PilotDisconnected{process.id});
}

void World::put_into_outbox(const Process& process) {
  for (const Here& here : process.held) {
    if (here.state == Here::State::Ended) {
      outboxes_[process.id.allocation].push_back({process.id, here.attempt, here.outcome, false});
    }
  }
}

void World::run_pilot() {
  if (processes_.empty()) return;
  Process& process = processes_[below(static_cast<std::uint32_t>(processes_.size()))];
  if (now_ >= process.end) {
    const auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& j) {
      return j.id == process.id.allocation && j.state == BatchState::Running;
    });
    for (Here& here : process.held) {
      if (here.state != Here::State::Running) continue;
      here.state = Here::State::Ended;
      here.outcome.failure = Failure::PilotWalltime;
      here.outcome.ended = now_;
      record_attempt("attempt-ended", process, here);
    }
    if (job != jobs_.end()) end_job(*job, EndCause::Timeout, true);
    return;
  }
  if (!process.linked) {
    if (peace_ || chance(60)) return connect(process);
  } else if (!process.inbox.empty() && chance(60)) {
    return read_inbox(process);
  } else if (!peace_ && chance(3)) {
    return break_link(process);
  }
  work(process);
}

void World::connect(Process& process) {
  process.linked = true;
  PilotRegistered hello{
      process.id, process.incarnation, "node", process.capacity, process.end - now_, {}, "", {}};
  for (const Here& here : process.held) {
    using There = HeldAttempt::State;
    const There states[] = {There::Waiting, There::Running, There::Publishing, There::Ended};
    hello.held.push_back({here.attempt, states[static_cast<std::size_t>(here.state)]});
  }
  const PilotId id = process.id;
  const std::uint64_t incarnation = process.incarnation;
  feed(hello);
  // What the engine has not acknowledged is said again.
  for (std::size_t i = 0;; ++i) {
    Process* still = find(id, incarnation);
    if (!still || !still->linked || i >= still->held.size()) return;
    Here& here = still->held[i];
    if (here.state == Here::State::Ended || here.state == Here::State::Staged)
      say_ended(*still, here);
  }
}

void World::say_ended(Process& process, Here& here) {
  if (!process.linked) return;
  feed(AttemptEnded{process.id, here.attempt, here.outcome, here.state == Here::State::Staged});
}

void World::give_back(Process& process, std::uint32_t count) {
  AttemptsReturned returned{process.id, {}};
  for (std::size_t i = process.held.size(); i-- > 0 && returned.attempts.size() < count;) {
    if (process.held[i].state != Here::State::Waiting) continue;
    returned.attempts.push_back(process.held[i].attempt);
    process.held.erase(process.held.begin() + static_cast<std::ptrdiff_t>(i));
  }
  feed(returned);
}

void World::read_inbox(Process& process) {
  const Action action = process.inbox.front();
  process.inbox.pop_front();
  const auto here_of = [&](const AttemptId& attempt) {
    return std::find_if(process.held.begin(), process.held.end(),
                        [&](const Here& h) { return h.attempt == attempt; });
  };
  const auto exit_now = [&] {
    for (Job& job : jobs_) {
      if (job.id == process.id.allocation && job.state == BatchState::Running)
        return end_job(job, EndCause::Completed, true);
    }
  };
  match(
      action,
      [&](const SendLeases& a) {
        for (const SendLeases::Lease& lease : a.leases) {
          process.held.push_back({lease.attempt, lease.granted});
        }
        if (process.leaving) give_back(process, 1000);
      },
      [&](const RecallLeases& a) { give_back(process, a.count); },
      [&](const KillAttempt& a) {
        const auto at = here_of(a.attempt);
        if (at == process.held.end()) return;
        const bool ran = at->state == Here::State::Running;
        if (at->state != Here::State::Ended) at->outcome.failure = Failure::Cancelled;
        if (ran) record_attempt("attempt-ended", process, *at);
        if (a.silent) {
          process.held.erase(at);
        } else if (at->state != Here::State::Ended) {
          at->state = Here::State::Ended;
          at->outcome.ended = now_;
          say_ended(process, *at);
        }
      },
      [&](const AcknowledgeResult& a) {
        if (const auto at = here_of(a.attempt); at != process.held.end()) process.held.erase(at);
      },
      [&](const PermitPublish& a) {
        const auto at = here_of(a.attempt);
        if (at == process.held.end() || at->state != Here::State::Staged) return;
        at->state = Here::State::Ended;
        record_attempt("published", process, *at);
        say_ended(process, *at);
      },
      [&](const EndPilot&) { exit_now(); },
      [&](const FencePilot&) {
        process.held.clear();  // killed, nothing said
        exit_now();
      },
      [](const auto&) {});
}

/// Two attempts of one task never run at the same time: the batch systems of this world end what
/// they say has ended.  Only what a site that was taken out of the configuration still runs nobody
/// knows.
void World::check_alone(const Process& process, TaskId task) {
  for (const Process& other : processes_) {
    if (out_of_reach_.contains(other.id.allocation)) continue;
    for (const Here& here : other.held) {
      if (here.attempt.task != task || here.state == Here::State::Waiting ||
          here.state == Here::State::Ended)
        continue;
      if (&other != &process) {
        fail(fmt::format("{} starts on {} while it runs on {}", to_string(task),
                         to_string(process.id), to_string(other.id)));
      }
    }
  }
}

void World::work(Process& process) {
  Resources free = process.capacity;
  for (const Here& here : process.held) {
    if (here.state == Here::State::Running) free.subtract(here.granted);
  }
  if (process.held.empty() && !process.leaving && chance(peace_ ? 20 : 2)) {
    process.leaving = true;
    if (process.linked) feed(PilotLeaving{process.id, "idle"});
    return;
  }
  if (process.leaving && process.linked && process.held.empty())
    return feed(PilotLeaving{process.id, "idle"});
  if (process.held.empty()) return;
  Here& here = process.held[below(static_cast<std::uint32_t>(process.held.size()))];
  if (here.state == Here::State::Waiting && fits(here.granted, free)) {
    check_alone(process, here.attempt.task);
    here.state = Here::State::Running;
    here.outcome.started = now_;
    record_attempt("attempt-started", process, here);
    if (process.linked) feed(AttemptsStarted{process.id, {here.attempt}});
  } else if (here.state == Here::State::Running && chance(40)) {
    here.outcome.ended = now_;
    const std::uint32_t luck = below(peace_ ? 8 : 10);
    const Failure failures[] = {Failure::ToolFailed, Failure::GpuError};
    here.outcome.failure = luck < 8 ? Failure::Ok : failures[luck - 8];
    here.state = luck < 3 ? Here::State::Staged : Here::State::Ended;
    record_attempt("attempt-ended", process, here);
    say_ended(process, here);
  }
}

}  // namespace hpcbatch
