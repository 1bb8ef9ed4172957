// Sites and the shapes of allocations that they may be asked for, as the configuration names them.
#pragma once

#include "model/needs.hpp"
#include "model/path_map.hpp"
#include "model/resources.hpp"
#include "model/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// The kind of GPUs to which a batch system gives none (Slurm's GRES `gpu:2`).
inline constexpr std::string_view kGpuWithoutKind = "gpu";

/// A kind of allocation.  Amounts are per node.
struct Shape {
  std::string name;
  std::string partition;  ///< empty: the batch system's default
  std::uint32_t nodes{1};
  Resources capacity;             ///< cpus, memory, gpus/KIND, others
  Duration walltime{};            ///< zero: no end
  std::vector<std::string> tags;  ///< sorted
  /// Choices of tasks that it was made for (choices.hpp), among `tags`; none of those that the
  /// configuration names.
  std::vector<std::string> made_for{};
  std::uint32_t max_queued{0};  ///< of this shape; 0: only the site's limit
  std::uint32_t max_running{0};
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// How pilots of a site reach the engine.  Auto: a pilot tries direct, relay and spool in this
/// order.
enum class LinkKind : std::uint8_t { Auto, Unix, Direct, Relay, Spool };

/// What is kept of each stream that a task writes to no file of its own: a task that nobody reads
/// in full still fits, one that says the same for ever does not fill the workspace.
inline constexpr std::uint64_t kOutputLimit = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kNoOutputLimit = UINT64_MAX;
inline constexpr std::uint64_t kLeastOutputLimit = 1024;

/// What is done with what runs before used: nothing, said to who submits, or packed by.
enum class EstimateMode : std::uint8_t { Off, Advise, Use };
std::string_view to_string(EstimateMode mode);
std::optional<EstimateMode> parse_estimate_mode(std::string_view word);

/// One place with a batch system.
struct Site {
  std::string name;
  std::string scheduler;
  std::string transport;
  std::string scheduler_config;  ///< YAML text for the plugin
  std::string transport_config;
  LinkKind link{LinkKind::Auto};
  std::string interface;        ///< numeric address that pilots connect to; empty: found out
  std::string relay_interface;  ///< of the login node, where pilots connect to the relay there
  std::string workspace;        ///< absolute
  std::string trust_group{};    ///< its members may write the workspace and what is above it
  /// Bytes of files that are kept in the workspace for tasks of a site without our file system.
  std::uint64_t store_limit{std::uint64_t{100} << 30};
  /// How long the workspace keeps logs and other files of what is over, and how many bytes of them.
  Duration keep_for{std::chrono::hours{30 * 24}};
  std::uint64_t keep_limit{std::uint64_t{20} << 30};
  std::uint64_t output_limit{kOutputLimit};  ///< bytes, of tasks that say none
  std::string scratch{"/tmp"};               ///< on the nodes
  bool shares_gpus_by_mps{false};            ///< tasks of parts of one GPU; else they take turns
  std::string gpu_test{};                    ///< a shell's command, for each GPU; empty: none
  PathMap path_map{everything_shared()};
  std::vector<std::string> setup;
  std::vector<std::string> options;
  bool asks_for_memory{true};  ///< its batch system may have no word for it
  /// What tasks may choose of its batch jobs (choices.hpp): by key the values, none for any.
  /// Nothing: as the configuration has it whatever the batch system has a word for; until that is
  /// known, nothing.
  std::optional<std::map<std::string, std::vector<std::string>>> choices;
  std::uint32_t max_queued{4};
  std::uint32_t max_running{16};
  /// What an hour costs in which work waits for a pilot, against one in which a pilot waits for work.
  double waiting_cost{19}, idle_cost{1};
  EstimateMode estimate{EstimateMode::Off};  ///< where a submit says nothing
  bool look_at_queue{true};                  ///< once a minute, where somebody waits for a start
  bool retrains{true};                       ///< its model of waits, where there is one
  Duration idle_after{std::chrono::seconds{60}};  ///< a pilot with nothing to do ends
  Duration poll_every{std::chrono::seconds{15}};
  Duration settle_after{
      std::chrono::seconds{20}};  ///< until the absence of an unclear batch job is believed
  Duration lost_after{std::chrono::minutes{15}};  ///< of a pilot's silence while its batch job runs
  std::vector<Shape> shapes;
  friend bool operator==(const Site&, const Site&) = default;
};

/// The ways by which pilots of the site may reach the engine, in the order in which they are tried.
std::vector<LinkKind> link_ways(const Site& site);
bool has_way(const Site& site, LinkKind way);

/// `settle_after` of a site that is this machine.
inline constexpr std::chrono::seconds kSettleAfterHere{2};
/// A submit command is given up after so long; it may have reached the batch system until then.
inline constexpr std::chrono::seconds kSubmitDeadline{60};

/// The pilot's own share of a shape's memory: 2 % and at least 100 MB.
std::int64_t pilots_own_memory(std::int64_t bytes);
/// What tasks can use of one node of a shape.
Resources usable(const Shape& shape);
/// A pilot must have ended this long before its walltime: batch systems are late and early by up to
/// a minute.
Duration end_margin(Duration walltime);
/// What of the walltime is used up before a pilot can start its first task.
Duration start_allowance(Duration walltime);
/// The longest time a task may ask for in a shape; no value: no bound.
std::optional<Duration> longest_task(const Shape& shape);
/// Whether a task could ever run in an empty pilot of the shape (its site aside).
bool could_run(const Needs& needs, const Shape& shape);

}  // namespace hpcbatch
