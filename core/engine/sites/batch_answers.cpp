// What a trusted list of batch jobs means for our allocations.  Classes of states and ends:
// reliability tables of the batch systems (SLURM job_state_codes, job_reason_codes).
#include "engine/sites/site_table.hpp"

#include "model/check.hpp"
#include "model/quantities.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// A list may be a moment old: a batch job counts as gone only after so many lists without it.
constexpr std::uint32_t kAbsentPolls = 3;
constexpr std::uint32_t kAbsentPollsOfUnclear = 2;
// Submits that are not answered and leave no batch job: after so many the batch system is given a
// pause.
constexpr std::uint32_t kSubmitsThatVanish = 3;
// A cancel may be lost like any command; one that is still seen after this long is told again.
constexpr Duration kCancelAgain = 30s;

constexpr std::string_view kEndedSomehow = "it ended, and the batch system does not say how";

struct Meaning {
  Failure failure;
  bool unexplained;
  std::string_view text;
};

Meaning meaning_of(EndCause cause, bool by_us) {
  if (by_us) return {Failure::PilotKilled, false, "we cancelled it"};
  switch (cause) {
    case EndCause::Timeout:
      return {Failure::PilotWalltime, false, "its walltime was used up"};
    case EndCause::Preempted:
      return {Failure::PilotPreempted, false, "it was preempted"};
    case EndCause::NodeFailed:
      return {Failure::NodeLost, false, "its node failed"};
    case EndCause::OutOfMemory:
      return {Failure::PilotKilled, true, "the batch system killed it for its memory"};
    case EndCause::Cancelled:
      return {Failure::PilotKilled, false, "it was cancelled, and not by us"};
    case EndCause::LaunchFailed:
      return {Failure::PilotKilled, false, "the batch system could not launch it"};
    case EndCause::Completed:
      // With exit code 0, by its own decision: what was on its way to it never reached it.
      return {Failure::PilotKilled, false, "it ended"};
    case EndCause::Failed:
      return {Failure::PilotKilled, true, "it failed"};
    case EndCause::None:
      break;
  }
  return {Failure::PilotKilled, true, "the batch system no longer knows it"};
}

/// Where a batch system keeps no history, or no exit code, what its pilots said tells most.
EndCause end_as_pilots_said(const AllocationEntry& entry, const Shape* shape, Time now) {
  const Allocation& facts = entry.facts;
  if (facts.pilots_seen == 0 || !facts.running_since) return EndCause::None;
  // One that was ended from outside is let go as well once it holds nothing.
  if (entry.let_go.size() >= facts.pilots_seen && !entry.terminated_at) return EndCause::Completed;
  const bool has_end =
      shape && (shape->walltime != Duration{} || HPCBATCH_PLANTED(endless_pilot_used_up));
  if (has_end && now >= *facts.running_since + shape->walltime - end_margin(shape->walltime))
    return EndCause::Timeout;
  return entry.terminated_at ? EndCause::Cancelled : EndCause::None;
}

bool is_orderly(EndCause cause) {
  return cause == EndCause::Completed || cause == EndCause::Timeout || cause == EndCause::Preempted;
}

bool is_live(BatchState state) {
  return state != BatchState::Ended;
}

}  // namespace

/// Whether more of the shape are asked for at once after this end of one.
void SiteTable::pause_after(ShapeState& shape, const AllocationEntry& entry, EndCause cause,
                            const std::string& text, const std::string& words, Time now) {
  const bool never_registered = entry.facts.pilots_seen == 0;
  if (cause == EndCause::LaunchFailed) {
    back_off(shape, 10min, 24h,
             text + (!words.empty() ? words
                                    : "; look at the workspace's directories and the set-up "
                                      "lines"),
             now);
  } else if (cause == EndCause::Cancelled) {
    pause_after_cancel(shape, entry, text, now);
  } else if (entry.of_no_use) {
    // The pause was set when that was found out.
  } else if (!never_registered && is_orderly(cause)) {
    // It works, and there is room for the next one.
    shape.back_off = {};
  } else if (never_registered ? cause == EndCause::NodeFailed || cause == EndCause::Preempted
                              : cause != EndCause::NodeFailed) {
    // Not the shape's fault; but nodes that fail again and again fail the next one too, unless
    // its pilots did good work meanwhile.
    if (entry.did_well) shape.back_off.clear_failures();
    back_off(shape, 1s, 10min, text, now);
  } else if (never_registered) {
    back_off(shape, 10s, 1h,
             text + ", and its pilot never registered" +
                 (!words.empty() ? words : "; its output lies in the workspace"),
             now);
  }
}

AllocationOver SiteTable::over(AllocationEntry& entry, EndCause cause, const std::string& reason,
                               Time now) {
  Allocation& facts = entry.facts;
  // SLURM 22.05 says JobLaunchFailure as well of a batch script that was killed.
  if (cause == EndCause::LaunchFailed && facts.pilots_seen > 0) cause = EndCause::Failed;
  const Meaning meaning = meaning_of(cause, facts.cancel_asked);
  const std::string number =
      facts.number.empty() ? "" : fmt::format(", batch job {}", facts.number);
  const bool is_told_of = cause == EndCause::None && entry.seen == BatchState::Ended;
  std::string text = fmt::format("allocation {} on {}{}: {}{}", facts.id.name, facts.site, number,
                                 is_told_of ? kEndedSomehow : meaning.text,
                                 reason.empty() ? "" : " (" + reason + ")");
  const bool never_registered = facts.pilots_seen == 0;
  // Of one that was there its own file says more than the batch system's word for a bad end.
  const bool has_words = !entry.output_tail.empty() &&
                         (never_registered || (!is_orderly(cause) && !facts.cancel_asked));
  const std::string words =
      has_words ? "; its output ends with: " + entry.output_tail : std::string();
  facts.state = AllocationState::Ended;
  facts.cause = cause;
  facts.ended = now;
  facts.reason = text + words;
  if (ShapeState* shape = shape_state(facts); shape && !facts.cancel_asked)
    pause_after(*shape, entry, cause, text, words, now);
  return {facts.id, meaning.failure, meaning.unexplained, text + words};
}

std::optional<AllocationOver> SiteTable::follow(AllocationEntry& entry, const BatchJob& job,
                                                Time now) {
  Allocation& facts = entry.facts;
  entry.absent_polls = 0;
  if (!job.number.empty()) facts.number = job.number;
  if (job.state == BatchState::Ended) {
    entry.seen = job.state;
    const EndCause cause = job.cause == EndCause::None
                               ? end_as_pilots_said(entry, shape_of(facts.id), now)
                               : job.cause;
    return over(entry, cause, job.reason, now);
  }

  const AllocationState before = facts.state;
  const std::string reason_before = facts.reason;
  if (entry.seen == BatchState::Suspended && job.state != BatchState::Suspended)
    entry.resumed_at = now;
  entry.seen = job.state;
  if (job.state != BatchState::Suspended)
    entry.suspended_at.reset();
  else if (!entry.suspended_at)
    entry.suspended_at = now;
  entry.time_left = job.time_left;
  if (entry.pilots_away == 0) entry.seen_at = now;
  facts.reason = job.reason;
  if (facts.state < AllocationState::Queued) {
    facts.state = AllocationState::Queued;
    if (ShapeState* shape = shape_state(facts)) shape->proven = true;
  }
  if (job.state == BatchState::Running || job.state == BatchState::Suspended) {
    runs(entry, now);
  } else {
    entry.may_run_already = false;
  }
  if (facts.cancel_asked && now - entry.cancelled_at > kCancelAgain) {
    entry.cancelled_at = now;
    actions_.push_back(CancelAllocation{facts.id, facts.site, facts.number});
  }
  if (job.state == BatchState::NeverStarts) {
    if (ShapeState* shape = shape_state(facts); shape && !facts.cancel_asked) {
      refused_for_good(*shape,
                       fmt::format("batch job {} could never start: {}; change the shape",
                                   facts.number, job.reason),
                       fmt::format("batch job {} could never start: {}", facts.number, job.reason),
                       now);
    }
    cancel(facts.id, now);
  }
  if (facts.state != before || facts.reason != reason_before) save(entry);
  return std::nullopt;
}

std::optional<AllocationOver> SiteTable::absent(AllocationEntry& entry, const SitePolled& event,
                                                Time now) {
  const Time submitted = std::max(entry.asked_at, entry.may_arrive_until);
  const bool is_too_old = event.asked <= std::max(submitted, entry.alive_at);
  if (entry.facts.state == AllocationState::Submitting || is_too_old) return std::nullopt;
  const bool is_unclear = entry.facts.state == AllocationState::Unclear;
  // Before it could have settled its absence says nothing.
  if (is_unclear && event.asked - submitted < site(event.site)->site.settle_after)
    return std::nullopt;
  ++entry.absent_polls;
  if (is_unclear) {
    if (entry.absent_polls < kAbsentPollsOfUnclear) return std::nullopt;
    const ShapeState* shape = shape_state(entry.facts);
    if (entry.facts.cancel_asked || !shape)
      return over(entry, EndCause::None, "never submitted", now);
    if (!shape->may_be_asked(now)) {
      entry.of_no_use = true;  // the pause that there is says it all
      return over(entry, EndCause::None, "never submitted", now);
    }
    if (++entry.never_arrived >= kSubmitsThatVanish) {
      of_no_use(
          entry.facts.id,
          fmt::format("{} submissions in a row were not answered and left no batch job behind ({})",
                      entry.never_arrived, entry.facts.reason),
          now);
      return over(entry, EndCause::None, "never submitted", now);
    }
    // It never arrived: the same name is asked for again, so that even a late first one is the same
    // allocation.
    entry.facts.state = AllocationState::Submitting;
    entry.asked_at = now;
    entry.absent_polls = 0;
    save(entry);
    actions_.push_back(OpenAllocation{entry.facts.id, entry.facts.site, entry.facts.shape});
    return std::nullopt;
  }
  const std::uint32_t enough = HPCBATCH_PLANTED(gone_when_absent_once) ? 1 : kAbsentPolls;
  if (entry.absent_polls < enough) return std::nullopt;
  const EndCause cause = end_as_pilots_said(entry, shape_of(entry.facts.id), now);
  return over(entry, cause,
              cause == EndCause::None ? "" : "as its pilots said; the batch system keeps no record",
              now);
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::vector<AllocationOver> SiteTable::polled(const SitePolled& event,
                                              const std::set<AllocationId>& alive, Time now) {
  SiteState& state = state_of(event.site);
  state.poll_in_flight = false;
  state.failed_polls = 0;
  state.trouble.clear();
  state.trouble_since.reset();

  for (const auto& [name, words] : event.output_tail) {
    if (AllocationEntry* found = entry(AllocationId{name})) found->output_tail = words;
  }
  std::vector<AllocationOver> ended;
  std::set<std::string> shown;
  for (const BatchJob& job : event.jobs) {
    AllocationEntry* found = entry(AllocationId{job.name});
    if (found && found->facts.site == event.site) {
      if (found->facts.state == AllocationState::Ended) continue;
      // The same name twice can only be a requeued or doubled batch job: one that lives outweighs
      // one that ended.
      if (!is_live(job.state) && shown.contains(job.name)) continue;
      const bool lives_too =
          !is_live(job.state) &&
          std::any_of(event.jobs.begin(), event.jobs.end(),
                      [&](const BatchJob& j) { return j.name == job.name && is_live(j.state); });
      if (lives_too) continue;
      shown.insert(job.name);
      if (auto over = follow(*found, job, now)) ended.push_back(std::move(*over));
    } else if (!found && is_live(job.state) && job.name.starts_with(prefix_)) {
      // Ours by name, and nobody waits for it: a batch job that outlived its allocation.
      actions_.push_back(CancelAllocation{AllocationId{job.name}, event.site, job.number});
    }
  }
  for (auto& [id, entry] : allocations_) {
    if (entry.facts.site != event.site || entry.facts.state == AllocationState::Ended) continue;
    // A pilot that is there proves more than a list that lacks it.
    if (shown.contains(id.name) || alive.contains(id)) continue;
    if (auto over = absent(entry, event, now)) ended.push_back(std::move(*over));
  }
  return ended;
}

}  // namespace hpcbatch
