// What is done to the system in one run, drawn from a seed: a list that can be printed, run again,
// and made shorter.
#pragma once

#include "model/ids.hpp"
#include "model/site.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::clockwork {

// What users do, and what goes wrong; where a fault waits for something to spoil, it is armed and
// counts when it strikes.
#define HPCBATCH_INCIDENTS(X)                                                    \
  X(submit, "a user submits an array")                                           \
  X(cancel, "a user cancels tasks")                                              \
  X(hold, "a user holds tasks")                                                  \
  X(release, "a user releases tasks")                                            \
  X(retry, "a user runs ended tasks again")                                      \
  X(stop_engine, "the engine is stopped, at once or when nothing runs")          \
  X(kill_engine, "the engine is killed between two actions")                     \
  X(lose_power, "the engine's machine loses power")                              \
  X(fail_commits, "the store cannot be written for a while")                     \
  X(slow_commits, "the disk is slow for a while")                                \
  X(remove_site, "the engine is started with a site less, and later with all")   \
  X(cut_link, "a link is cut, and both ends see it")                             \
  X(lose_link, "a link goes silent in both directions")                          \
  X(stall_link, "a link delivers nothing for a while")                           \
  X(lose_frame, "a frame on a link is lost")                                     \
  X(double_frame, "a frame on a link comes twice")                               \
  X(swap_frames, "two frames on a link change places")                           \
  X(lose_submit_answer, "a batch system takes a batch job and nobody hears it")  \
  X(lose_submit, "a submit command never reaches the batch system")              \
  X(late_submit, "a batch job appears long after its submit command timed out")  \
  X(refuse_submit, "a batch system refuses a batch job")                         \
  X(fail_poll, "a batch system does not answer polls for a while")               \
  X(late_poll, "a batch system's list comes late")                               \
  X(stale_poll, "a batch system's list is old")                                  \
  X(forget_job, "a batch system's lists lack a living batch job for a moment")   \
  X(repeat_job, "a batch system's list shows a batch job twice")                 \
  X(drop_ended_job, "a batch system forgets a batch job as soon as it ends")     \
  X(lose_cancel, "a cancel command is lost")                                     \
  X(hold_job, "a batch job is held in the queue for a while")                    \
  X(never_starts, "a batch job can never start")                                 \
  X(preempt_job, "a batch job is preempted")                                     \
  X(requeue_job, "a batch job is killed and started again")                      \
  X(cancel_job, "somebody else cancels a batch job")                             \
  X(fail_node, "a node fails")                                                   \
  X(suspend_job, "a batch job is suspended for a while")                         \
  X(kill_pilot, "a pilot is killed at once")                                     \
  X(freeze_pilot, "a pilot stands still for a while, its tasks go on")           \
  X(lose_wall_clock, "a node's wall clock is wrong")                             \
  X(bad_node, "a node fails every task")                                         \
  X(unfit_node, "a pilot finds its node unfit")                                  \
  X(fail_outbox, "outboxes cannot be written for a while")                       \
  X(lose_pilot_file, "somebody removes the file of a running pilot")             \
  X(hide_outbox, "the workspace cannot be read for a while")                     \
  X(killer_task, "the next array has a task that kills its pilot")               \
  X(black_hole, "a node fails every task of all its pilots for a while")         \
  X(lose_workspace, "the workspace can be neither read nor written for a while") \
  X(suspend_all, "all running batch jobs are suspended for a while")             \
  X(keep, "a user keeps pilots of a shape for a while")

enum class IncidentKind : std::uint8_t {
#define HPCBATCH_INCIDENT_(name, text) name,
  HPCBATCH_INCIDENTS(HPCBATCH_INCIDENT_)
#undef HPCBATCH_INCIDENT_
};
inline constexpr int kIncidentKinds = static_cast<int>(IncidentKind::keep) + 1;
/// What users do, and not what goes wrong.
constexpr bool is_by_user(IncidentKind kind) {
  return kind <= IncidentKind::retry || kind == IncidentKind::keep;
}
std::string_view name_of(IncidentKind kind);
std::string_view text_of(IncidentKind kind);

/// Some tasks share it, and it lives at some pilots.
inline constexpr const char* kSharedService = "preloaded";

struct Incident {
  Duration at{};  ///< since the beginning
  IncidentKind kind{};
  std::uint64_t which{0};  ///< draws what it concerns
  Duration length{};       ///< of what lasts
};
/// For people.
std::string describe(const Incident& incident);

struct Scenario {
  std::uint64_t seed{0};
  std::vector<Site> sites;          ///< two clusters, and in some worlds this machine
  Duration length{};                ///< until then things go wrong
  std::vector<Incident> incidents;  ///< by time
};

/// About `tasks` tasks.
Scenario draw_scenario(std::uint64_t seed, std::uint64_t tasks);

inline constexpr const char* kLocalSite = "local";
bool is_local(const Site& site);
bool has_local(const Scenario& scenario);

/// As a file keeps it: a line for the seed, which draws sites and length, with the word `local`
/// where this machine is a site too, and one for each incident. Lines that begin with '#' are for
/// people.
std::string to_text(const Scenario& scenario);
/// Throws std::runtime_error that names the line.
Scenario read_scenario(const std::string& path);

}  // namespace hpcbatch::clockwork
