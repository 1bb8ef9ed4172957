#include "tally.hpp"

#include "names.hpp"
#include "scenario.hpp"

#include <array>

namespace hpcbatch::clockwork {
namespace {

constexpr std::array kTransitions{
    // Allocations.
    "allocation new", "allocation submitting > unclear", "allocation submitting > queued",
    "allocation submitting > running", "allocation submitting > ended",
    "allocation unclear > submitting", "allocation unclear > queued",
    "allocation unclear > running", "allocation unclear > ended", "allocation queued > running",
    "allocation queued > ended", "allocation running > ended",
    // Attempts and tasks.
    "attempt failed tool_failed", "attempt failed tool_signal", "attempt failed time_task",
    "attempt failed stage_in_failed", "attempt failed container_failed", "attempt failed gpu_error",
    "attempt failed node_lost", "attempt failed pilot_walltime", "attempt failed pilot_preempted",
    "attempt failed pilot_killed", "task ended ok", "task ended tool_failed",
    "task ended tool_signal", "task ended time_task", "task ended cancelled",
    "task ended set_aside", "task never ran cancelled", "task never ran dependency_failed",
    // Pilots.
    "pilot without an end", "pilot stops", "pilot stops by force", "pilot leaves idle",
    "pilot leaves walltime", "pilot leaves terminated", "pilot leaves drained",
    "pilot leaves given up", "pilot leaves failed checks", "pilot leaves fenced"};

}  // namespace

Tally::Tally() {
  for (const std::string_view what : kEvents) counts_[std::string(what)] = 0;
  // Pilots here have no files of their own, and are honest; tasks read no input; nobody ends a pause by hand, or
  // waits for results.
  for (const char* what : {"event outputs delayed", "event workspace seen", "event overstepped",
                           "event input given", "event resume", "event reader heard"})
    counts_.erase(what);
  for (const std::string_view what : kActions) counts_[std::string(what)] = 0;
  counts_.erase("action save reader");
  for (const std::string_view what : kPilotActions) counts_[std::string(what)] = 0;
  // No task of theirs asks for a signal.
  counts_.erase("pilot signal");
  for (const char* what : kTransitions) counts_[what] = 0;
  for (int i = 0; i < kIncidentKinds; ++i) {
    const auto kind = static_cast<IncidentKind>(i);
    counts_[(is_by_user(kind) ? "user " : "fault ") + std::string(name_of(kind))] = 0;
  }
}

void Tally::count(std::string_view what, std::uint64_t times) {
  const auto at = counts_.find(what);
  if (at != counts_.end()) {
    at->second += times;
  } else {
    counts_[std::string(what)] = times;  // what nobody thought of is told all the same
  }
}

void Tally::add(const Tally& other) {
  for (const auto& [what, times] : other.counts_) count(what, times);
}

}  // namespace hpcbatch::clockwork
