// Sites and the shapes of allocations that they may be asked for, as the configuration names them.
#pragma once

#include "hpcbatch/scheduler.hpp"
#include "model/ids.hpp"
#include "model/needs.hpp"
#include "model/resources.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

// Which folders of this machine a site sees, and under what names.

/// A folder here and the same folder there, both absolute and without a slash at the end ("/" alone
/// but for that).
struct SharedFolder {
  std::string here;
  std::string there;
  friend bool operator==(const SharedFolder&, const SharedFolder&) = default;
};
using PathMap = std::vector<SharedFolder>;

/// All of this machine's files, under the same names.
PathMap everything_shared();
/// The name there of a file here, by the innermost folder that holds it; nothing where none does.
/// `..` is taken for what it is by name: links are not looked at.
std::optional<std::string> seen_as(const PathMap& map, const std::string& path);

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

// What tasks choose of the batch jobs that run them (account, QOS and the like): tags KEY=VALUE
// that no shape needs to have, because one is made that has them.

/// Each set of choices has pilots of its own: so many of them at one site, and no more.
inline constexpr std::size_t kMostChoiceSets = 64;

/// KEY of a tag KEY=VALUE; empty where it is none.
std::string_view key_of(std::string_view tag);

/// Whether a site lets tasks choose that.  Of values see hpcbatch/choices.hpp.
bool may_choose(const Site& site, std::string_view tag);
/// Those of the tags that are choices at the site, one of a key; sorted.
std::vector<std::string> choices_of(const Needs& needs, const Site& site);

/// Whether what has these tags has all that is asked for.  A tag `partition=a,b` asks for any of
/// several, `constraint=a&b` for all of them.
bool has_tags(const std::vector<std::string>& tags, const std::vector<std::string>& asked);
/// The same for a shape or pilot that was made for some choices: nobody else's tasks run on what
/// one has chosen to be charged for.
bool has_tags(const std::vector<std::string>& tags, const std::vector<std::string>& made_for,
              const Needs& needs);

/// The shape that has in addition, or instead, what was chosen.  Its name is read by the two below.
Shape made_for(const Shape& configured, const std::vector<std::string>& choices);
/// What the configuration calls the shape that one of this name was made from.
std::string configured_name(std::string_view shape);
std::vector<std::string> choices_in_name(std::string_view shape);

// Allocations as the engine follows them: one batch job each, from the intent to its end.

/// intended -> submitting -> (unclear ->) queued -> running -> ended
///   intended    stored, nothing asked of the batch system yet
///   submitting  the submit command may have been run
///   unclear     its answer was lost: settled by looking the name up, never by asking again
///   queued      the batch system has it
///   running     the batch system runs it, or one of its pilots has registered
///   ended       the batch system says so, or it was never accepted
enum class AllocationState : std::uint8_t { Intended, Submitting, Unclear, Queued, Running, Ended };
std::string_view to_string(AllocationState state);

/// What the batch system was asked for: what its pilots may say that they are.
struct AskedFor {
  std::uint32_t nodes{1};
  Resources capacity;   ///< of each node, for tasks
  Duration walltime{};  ///< zero: no end
  friend bool operator==(const AskedFor&, const AskedFor&) = default;
};

/// What of an allocation survives the engine.
struct Allocation {
  AllocationId id;
  std::string site;
  std::string shape;
  AllocationState state{AllocationState::Intended};
  std::string number;  ///< the batch system's own, for people and for cancelling
  Time opened{};
  std::optional<Time> running_since;
  std::optional<Time> ended;
  EndCause cause{EndCause::None};
  std::string reason;                ///< for people: refusal, pending reason, how it ended
  bool cancel_asked{false};          ///< by us
  std::uint32_t pilots_seen{0};      ///< how many of its pilots ever registered
  std::optional<AskedFor> asked{};   ///< no value: an engine that did not note it asked
  std::set<std::uint32_t> fenced{};  ///< ranks of pilots that said what they may not
};

// A shape of which pilots are to be there until a time, whatever there is for them to do.

struct Keep {
  std::string site;
  std::string shape;
  std::uint32_t allocations{1};  ///< at once; 0: no more
  Time until{};
  Time since{};
  // Of this time, as far as an engine was there to see it:
  Duration missing{};  ///< in which one of them was not there
  Duration beyond{};   ///< in which one more of the shape was there than asked for
};

}  // namespace hpcbatch
