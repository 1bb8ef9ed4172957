// What runs of tasks asked for and used: sums that can be added up, and spreads per kind.
#pragma once

#include "broker/speed_table.hpp"
#include "model/histogram.hpp"
#include "model/ids.hpp"
#include "model/needs.hpp"
#include "model/resources.hpp"
#include "model/task.hpp"
#include "records/sketch.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace hpcbatch::records {

/// One attempt of a task that has ended.
struct Run {
  Failure failure{};
  bool is_last{true};   ///< of its task; the others count as lost
  bool is_first{true};  ///< of its task: how long it waited is told
  std::optional<Time> started;
  Time submitted{}, ended{};
  Duration cpu{};
  std::uint64_t peak_memory{0};                   ///< bytes; 0: not known
  std::uint64_t read_bytes{0}, written_bytes{0};  ///< from storage and to it
  Duration staged_in{}, staged_out{};             ///< its files' ways; 0: it had none
  std::optional<GpuUse> gpu;
  std::string device{};  ///< what it ran on, where that is known (device_of)
  double tasks{1};       ///< of those that never started
};

/// Of many runs.  Times in seconds, memory in byte-seconds: its bytes by the seconds it ran.
struct Usage {
  double runs{0};       ///< tasks that ended and had begun to run
  double done{0};       ///< of them
  double cancelled{0};  ///< of them
  double never_ran{0};  ///< tasks that ended otherwise
  double attempts{0};   ///< that ended and were tried again
  double wait{0};       ///< from the submit to the first start
  double run{0};        ///< all attempts
  double lost{0};       ///< of `run`: attempts that did not end well
  double cpu_used{0}, cpu_asked{0};
  double memory_used{0};   ///< the peak of each; of those that asked for memory
  double memory_asked{0};  ///< and of which the peak is known
  double time_used{0};     ///< of those that had a limit
  double time_asked{0};
  double gpu_asked{0};                     ///< GPU-seconds
  double read_bytes{0}, written_bytes{0};  ///< of those that ended well
  double gpu_used{0};     ///< GPU-seconds in which they were busy, of those that were looked at
  double gpu_watched{0};  ///< GPU-seconds that these asked for
  double staged_in{0};    ///< while files were on their way to where tasks ran
  double staged_out{0};   ///< and back

  Usage& operator+=(const Usage& other);
};
/// All of it, in the order in which it is kept; only ever longer.
inline constexpr std::array kUsageSums{
    &Usage::runs,          &Usage::done,       &Usage::cancelled,   &Usage::never_ran,
    &Usage::attempts,      &Usage::wait,       &Usage::run,         &Usage::lost,
    &Usage::cpu_used,      &Usage::cpu_asked,  &Usage::memory_used, &Usage::memory_asked,
    &Usage::time_used,     &Usage::time_asked, &Usage::gpu_asked,   &Usage::read_bytes,
    &Usage::written_bytes, &Usage::gpu_used,   &Usage::gpu_watched, &Usage::staged_in,
    &Usage::staged_out};
static_assert(sizeof(Usage) == kUsageSums.size() * sizeof(double), "a sum is missing");

/// Bytes of memory, cpus and seconds that tasks of a kind took.
struct Profile {
  Sketch run;     ///< seconds, of what ended well
  Sketch memory;  ///< bytes; of what ended well and of which it is known, or was too little
  Sketch cpus;    ///< that were busy, on the average; of what ended well and ran for a second
  Sketch wait;    ///< seconds until the first start
  Sketch read_bytes, written_bytes;  ///< of what ended well
  Sketch gpu_busy;                   ///< percent; of what ended well and was looked at
  Sketch gpu_memory;                 ///< bytes; of the same
  Sketch staged_in, staged_out;      ///< seconds; of what had files to come, and to go
  /// How long they took by device, of those of which that is known.
  std::map<std::string, broker::Runs> on;
  /// What they asked for last; 0: nothing.
  double cpus_asked{0}, memory_asked{0}, gpus_asked{0};

  void add(const Profile& other);
  void scale(double factor);
};

void add(Usage& usage, const Run& run, const Needs& needs);
void add(Profile& profile, const Run& run, const Needs& needs);

/// How long tasks of all kinds took, in seconds.
struct Spread {
  WaitHistogram wait;  ///< until the first start
  WaitHistogram run;   ///< of what ended well

  void add(const Spread& other) {
    wait.add(other.wait);
    run.add(other.run);
  }
};
void add(Spread& spread, const Run& run);

// Adds up runs by day, kind, site and client, and by kind, until they are kept.

/// What sums are kept for.
struct Cell {
  std::int32_t day{0};  ///< since 1970, UTC, on which it ended
  std::string kind, site, client;
  friend auto operator<=>(const Cell&, const Cell&) = default;
};

std::int32_t day_of(Time time);

class Tally {
 public:
  /// Those of one array, at one site: to be asked for again only where one of these changes.
  struct Group {
    const std::string& kind;
    const std::string& site;
    const std::string& client;
    const Needs& needs;
  };
  void add(const Group& group, const Run& run, std::int32_t day);

  const std::map<Cell, Usage>& usage() const { return usage_; }
  const std::map<std::string, Profile>& profiles() const { return profiles_; }
  const Spread& spread() const { return spread_; }

 private:
  std::map<Cell, Usage> usage_;
  std::map<std::string, Profile> profiles_;
  Spread spread_;
  // Neighbours are alike as a rule.
  Cell last_;
  Usage* last_usage_{nullptr};
  Profile* last_profile_{nullptr};
};

/// How much of what was learned so long ago still counts: half of it after 30 days.
double weight_after(Duration age);

}  // namespace hpcbatch::records
