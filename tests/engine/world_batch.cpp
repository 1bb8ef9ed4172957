// The batch systems of the small world: they accept, refuse, lose answers, start, preempt, requeue
// and end batch jobs.
#include "world.hpp"

#include <algorithm>

namespace hpcbatch {

using namespace std::chrono_literals;

void World::open(const OpenAllocation& asked) {
  const std::string number = std::to_string(jobs_.size() + 1);
  const auto site = std::find_if(sites_.begin(), sites_.end(),
                                 [&](const Site& s) { return s.name == asked.site; });
  const auto shape = std::find_if(site->shapes.begin(), site->shapes.end(),
                                  [&](const Shape& s) { return s.name == asked.shape; });
  const Job job{asked.allocation, asked.site, *shape, number};
  const std::uint32_t luck = peace_ ? 0 : below(10);
  if (luck < 7) {
    record_job("job-created", job);
    jobs_.push_back(job);
    answers_.push_back(AllocationAccepted{asked.allocation, number});
  } else if (luck < 9) {
    // The answer is lost, and the batch job may be there or not.
    if (luck == 7) {
      record_job("job-created", job);
      jobs_.push_back(job);
    }
    answers_.push_back(AllocationRefused{asked.allocation, Refusal::Unclear, "timed out"});
  } else {
    answers_.push_back(AllocationRefused{asked.allocation,
                                         chance(50) ? Refusal::Limit : Refusal::Transient, "no"});
  }
}

void World::cancel(const CancelAllocation& asked) {
  for (Job& job : jobs_) {
    if (job.id == asked.allocation && (peace_ || chance(80)))
      end_job(job, EndCause::Cancelled, true);
  }
}

void World::poll(const std::string& site) {
  SitePolled list{site, {}, now_};
  for (const Job& job : jobs_) {
    if (job.site != site || (job.state == BatchState::Ended && chance(20))) continue;
    list.jobs.push_back(
        {.name = job.id.name, .number = job.number, .state = job.state, .cause = job.cause});
  }
  if (!peace_ && chance(10)) {
    answers_.push_back(SitePollFailed{site, "no contact"});
  } else {
    answers_.push_back(std::move(list));
  }
}

void World::answer() {
  if (answers_.empty()) return;
  const Event event = answers_.front();
  answers_.pop_front();
  feed(event);
}

void World::run_batch_systems() {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    Job& job = jobs_[i];
    if (job.state == BatchState::Queued && chance(30)) {
      job.state = BatchState::Running;
      record_job("job-running", job);
      start_processes(job);
    } else if (job.state == BatchState::Running && !peace_ && chance(2)) {
      // Started anew by the batch system: the same name, another process.
      std::erase_if(processes_, [&](const Process& p) {
        if (p.id.allocation != job.id) return false;
        record_gone(p);
        leave(p);
        return true;
      });
      start_processes(job);
    } else if (job.state == BatchState::Running && !peace_ && chance(3)) {
      const EndCause causes[] = {EndCause::Preempted, EndCause::NodeFailed, EndCause::Cancelled};
      end_job(job, causes[below(3)], chance(50));
    }
  }
}

void World::record_job(const std::string& what, const Job& job) {
  record("outside", what, {{"name", job.id.name}, {"number", job.number}, {"site", job.site}});
}

void World::start_processes(const Job& job) {
  for (std::uint32_t rank = 0; rank < job.shape.nodes; ++rank) {
    processes_.push_back({.id = {job.id, rank},
                          .incarnation = ++incarnations_,
                          .capacity = job.shape.capacity,
                          .end = now_ + job.shape.walltime - end_margin(job.shape.walltime)});
    const Process& process = processes_.back();
    record("pilot/" + to_string(process.id) + "/" + std::to_string(process.incarnation),
           "pilot-started", {{"idle_us", "0"}});
  }
}

/// `orderly`: its pilots had time to write their outboxes.
void World::end_job(Job& job, EndCause cause, bool orderly) {
  if (job.state == BatchState::Ended) return;
  job.state = BatchState::Ended;
  job.cause = cause;
  record_job("job-ended", job);
  std::vector<Process> gone;
  for (std::size_t i = 0; i < processes_.size();) {
    if (processes_[i].id.allocation != job.id) {
      ++i;
      continue;
    }
    gone.push_back(std::move(processes_[i]));
    processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const Process& process : gone) {
    record_gone(process);
    if (orderly) put_into_outbox(process);
    leave(process);
  }
}

}  // namespace hpcbatch
