// What the user asked for, one plain value per verb.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hpcbatch {

// What the programs behind the verbs are told: an engine, which tells the client that started it how
// the start went, `fsck` and `sites add`.

/// What `hpcbatch sites add` is told.
struct SitesAddOptions {
  std::string name;
  std::string scheduler;  ///< empty: what is found on this machine
  std::string host;       ///< of the login node; empty: this machine
  std::string user;       ///< there; empty: ours
  std::string transport;  ///< to that host: ssh or openssh
  std::string workspace;  ///< absolute, there
  std::string config;     ///< file; empty: where it is looked for
  bool yes{false};        ///< write without asking
};

/// Shows the entry, asks, and writes it; the exit code.
using SitesAddMain = std::function<int(const SitesAddOptions&)>;

/// What `hpcbatch fsck` is told.
struct FsckOptions {
  std::string store;    ///< its file; empty: that of the state directory
  std::string salvage;  ///< a new file for what can be read; empty: only look
  bool json{false};
};

/// Prints what it finds; the exit code.
using FsckMain = std::function<int(const FsckOptions&)>;

struct EngineOptions {
  bool started_by_client{
      false};  ///< ends itself after 30 minutes without tasks, pilots and clients
  bool limits_of_session{
      false};  ///< a verb started it on its way: what was lowered for that verb alone is not kept
  bool check_config{
      false};  ///< only reads the configuration: exit 0, or 2 with the message on stderr
  std::optional<std::string> config;  ///< absolute; instead of the usual place
  std::string log;                    ///< `text` or `json`; empty: as the configuration says
  /// A pipe's end, -1 for none.  The engine writes kEngineReady when clients can connect, or one
  /// sentence saying why it does not start, and closes it.  Its reader may be gone: SIGPIPE must be
  /// ignored.
  int ready_descriptor{-1};
};

inline constexpr char kEngineReady = 'R';

/// What the log says of each engine once it listens, before the place: what stands above it is of
/// earlier engines, or of this one's start.
inline constexpr std::string_view kListensInLog = "listening on ";

// How an engine that does not start ends, besides 2 for a configuration that is wrong.
inline constexpr int kEngineElsewhere =
    3;  ///< the lock is held by an engine on another host; the sentence says which
inline constexpr int kEngineAlreadyRuns =
    4;  ///< the lock is held by an engine on this host: clients connect to that

/// Runs the engine in the foreground until it is stopped; its exit code.
using EngineMain = std::function<int(const EngineOptions&)>;

// What the user asked for of `split`.

/// Beside what is said of each part (WorkOptions).
struct SplitOptions {
  std::string inputs;     ///< file with a path a line, `-` for standard input; empty: a recording
  std::string recording;  ///< to be cut by the tool's own means; empty: inputs
  std::uint32_t files_per_task{1};
  std::string bytes_per_task;  ///< a size; empty: no bound
  std::string reuse;           ///< file with paths that every part gets; empty: none
  std::uint32_t pieces{0};     ///< of a recording; 0: by their length
  std::string piece_length;    ///< a duration
  std::string merge;           ///< what a shell is given; empty: the tool's, or nothing is merged
  std::uint32_t merge_at_once{100};
  std::string result;  ///< file
  std::string parts;   ///< folder; empty: beside the result
  bool keep_parts{false};
  bool json{false};
};

using Assignments = std::vector<std::pair<std::string, std::string>>;

/// What `run` and `submit` say of a task.
struct WorkOptions {
  /// By the key of a task, the texts as the user wrote them, found to be well formed.
  std::map<std::string, std::vector<std::string>, std::less<>> said;
  /// Of the caller's variables only these, beside HOME, PATH and the like; nothing: all of them.
  std::optional<std::vector<std::string>> exported;
  std::vector<std::string> command;

  bool says(std::string_view key) const { return said.contains(key); }
  /// Empty: nothing.
  std::string one(std::string_view key) const {
    const auto at = said.find(key);
    return at == said.end() ? std::string() : at->second.back();
  }
  /// Of what is written NAME=VALUE.
  Assignments pairs(std::string_view key) const;
};

/// `1-100:5%20`: indices, and how many at once (0: no bound).
struct ArrayOption {
  std::string indices;
  std::uint32_t max_running{0};
};

/// A list of items: a file, `-` for standard input, or words of the command line.
struct ItemSource {
  std::string file;  ///< empty: words
  std::vector<std::string> words;
};
struct ItemOptions {
  std::vector<ItemSource> sources;  ///< in the order of their columns
  std::string columns;              ///< what separates them, `tab` or `space`; empty: there is one
  bool header{false};               ///< the first line has their names
  bool link{false};
  bool null{false};  ///< those of a file end with a zero byte and not with the line
};

/// When the rest of an array is not even begun: after more failures than so many, or than this
/// share of its tasks.
struct HaltOption {
  std::optional<std::uint32_t> failures;
  std::optional<double> share;
  bool ends_running{false};
};
/// One task for each index, or for each item.
struct ManyOptions {
  std::optional<ArrayOption> array;
  ItemOptions items;
  std::uint32_t max_running{0};  ///< 0: no bound
  std::optional<HaltOption> halt;
  std::vector<std::string> skip_done;  ///< submissions; what ended well there is left out
};
inline bool is_many(const ManyOptions& many) {
  return many.array.has_value() || !many.items.sources.empty();
}

struct RunCommand {
  WorkOptions work;
  ManyOptions many;
  bool prefix{false};      ///< of many: each line of theirs behind its task's id
  bool keep_order{false};  ///< of many: what they print in the order of their indices
  std::string joblog;      ///< file; empty: none
  std::string key;
  bool resume{false};  ///< what has ended well under that key is not run again
};
struct SubmitCommand {
  WorkOptions work;
  ManyOptions many;
  std::string script;              ///< its lines say options, too; empty: none
  bool as_sbatch{false};           ///< it is SLURM's, and what it prints goes where sbatch puts it
  bool as_qsub{false};             ///< the same of PBS and qsub
  bool is_parsable{false};         ///< of sbatch: the number alone is printed
  bool is_quiet{false};            ///< of sbatch and qsub: nothing is printed
  std::vector<std::string> words;  ///< of the command line, less the script and what is behind `--`
  std::string file;                ///< file of tasks, `-` for standard input; empty: none
  std::string key;
  bool dry_run{false};
  bool print_request{false};  ///< as it would go to the engine
  bool wait{false};
  bool json{false};
};
/// A data set, one task for each of its parts, and one result.
struct SplitCommand {
  WorkOptions work;  ///< of each part
  SplitOptions split;
};
struct WaitCommand {
  std::vector<std::string> ids;
  std::string name;               ///< of submissions; empty: none
  std::optional<double> timeout;  ///< seconds
  bool any{false};                ///< until one of them has ended
  bool json{false};
};
struct ChangeCommand {
  enum class Change { Cancel, Hold, Release, Retry, Requeue, Update, Signal };
  Change change{Change::Cancel};
  std::vector<std::string> ids;
  std::string name;                   ///< of submissions; empty: none
  bool failed_only{false};            ///< of a retry
  std::vector<std::string> failures;  ///< of a retry: only those that failed so
  WorkOptions needs;                  ///< what a retry or an update says anew
  std::string signal, to;             ///< of a signal
  bool json{false};
};
/// Inside a task over several nodes its pilot's program takes these words (node_run.hpp).
struct NodeRunCommand {
  std::uint32_t processes{0}, nodes{0};
  std::string names;
  bool ends_others{false};
};
struct TimeLeftCommand {
  bool json{false};
};
struct ListCommand {
  std::vector<std::string> ids;  ///< their tasks; empty: submissions
  bool tasks{false};
  std::string state, failure, name, tool, site, client;
  std::optional<std::int64_t> since;   ///< submitted then or later; seconds since 1970
  std::optional<std::uint64_t> limit;  ///< lines
  bool all{false};
  bool json{false};
};
struct ShowCommand {
  std::vector<std::string> ids;
  std::string name;  ///< of submissions; empty: none
  bool json{false};
};
struct LogCommand {
  std::vector<std::string> ids;
  std::string name;                     ///< of submissions; empty: none
  bool failed_only{false};              ///< of a submission
  std::string failure;                  ///< of a submission, only what failed so; empty: however
  bool prefix{false};                   ///< each line with its task's id
  std::optional<std::uint32_t> tail{};  ///< so many lines of each task's streams
  std::optional<std::uint32_t> attempt;
  bool follow{false};
  bool standard_output{true};
  bool standard_error{true};
  bool json{false};
};
struct ExplainCommand {
  std::vector<std::string> ids;
  std::string name;  ///< of submissions; empty: none
  bool json{false};
};
/// Sites, allocations, pilots, tools.
struct InventoryCommand {
  enum class Kind { Sites, Allocations, Pilots, Tools };
  enum class Act { List, Show, Check, Clean, Resume };
  Kind kind{Kind::Sites};
  Act act{Act::List};
  std::string name;
  bool dry_run{false};      ///< of Clean
  bool gpus{false};         ///< of Check: a task to each shape that has some
  double gpus_within{600};  ///< seconds
  bool json{false};
};
/// The file of a tool to start from.
struct NewToolCommand {
  std::string name;
  std::string directory;  ///< absolute
  bool json{false};
};
struct EngineStartCommand {
  std::optional<std::string> config;
  bool until_idle{
      false};  ///< it ends itself after 30 minutes without work, as one that `run` starts
  bool json{false};
};
struct EngineStopCommand {
  enum class Mode { Leave, Drain, Now };
  bool drain{false}, now{false};
  Mode mode() const { return now ? Mode::Now : drain ? Mode::Drain : Mode::Leave; }
};
struct EngineReloadCommand {
  bool or_start{false};  ///< where none runs
  bool json{false};
};
struct EngineStatusCommand {
  bool json{false};
};
struct DoctorCommand {
  bool json{false};
};
struct TopCommand {
  bool once{false};
  bool json{false};
};
struct ReportCommand {
  std::optional<std::int64_t> since;  ///< seconds since 1970; without: a week ago
  std::string by{"kind"};             ///< or site, client, day
  std::string html;                   ///< file; empty: none
  std::string otlp;                   ///< the same, of traces
  bool csv{false};
  bool json{false};
};
struct WaitsCommand {
  std::string shape, site;  ///< empty: all
  bool score{false};        ///< how good the bounds were
  bool json{false};
};
/// `waits train`.
struct TrainCommand {
  std::string site;  ///< empty: the only one
  std::string estimator{"xgboost"};
  std::int64_t days{30};  ///< of accounting
  bool json{false};
};
struct KeepCommand {
  std::string shape;      ///< empty: list those that are kept
  std::string site;       ///< empty: the only one that has the shape
  std::int64_t until{0};  ///< seconds since 1970
  std::uint32_t allocations{1};
  bool end{false};
  bool json{false};
};
struct DropboxCommand {
  std::string directory;  ///< empty: list those that are watched
  std::vector<std::string> allow, templates;
  Assignments variables;
  bool remove{false};
  bool json{false};
};
struct BackupCommand {
  std::string file;  ///< absolute, new
  bool json{false};
};
/// A trace of a cluster that is played.
struct SimCommand {
  std::string trace;  ///< file, gzip'ed or not; `-`: standard input
  std::string partition;
  std::optional<std::int64_t> nodes;     ///< without: as many as the trace had in use
  std::string backfill{"conservative"};  ///< easy, none
  bool json{false};
};
/// `web`: the page of the engine.
struct WebCommand {
  std::uint16_t port{0};  ///< of 127.0.0.1; 0: one that is free
  bool view{false};
  bool stay{false};
  std::string socket;  ///< absolute; of a Unix socket instead, for a proxy that knows the user
  std::string metrics_token;  ///< absolute; the file with what lets a monitoring system in
  bool json{false};
};
/// `metrics`: what monitoring systems keep.
struct MetricsCommand {};
/// Links of Slurm's names, or of PBS's, to be first in PATH.
struct BatchCommandsCommand {
  std::string directory;  ///< absolute
  bool of_pbs{false};
  bool json{false};
};
/// For those who write plugins.
struct PluginCommand {
  std::string verb;          ///< list, new or check
  std::string kind, name;    ///< of a new one
  std::string directory;     ///< of its project; or where a transport that is checked may write
  std::string file, config;  ///< that is checked, and its configuration's file
  bool json{false};
};
/// Help: printed, and that is all.
struct ShowText {
  std::string text;
};

struct ShowVersion {};

using Command = std::variant<
    RunCommand, SubmitCommand, SplitCommand, WaitCommand, ChangeCommand, NodeRunCommand,
    TimeLeftCommand, ListCommand, ShowCommand, LogCommand, ExplainCommand, InventoryCommand,
    EngineStartCommand, EngineStopCommand, EngineReloadCommand, EngineStatusCommand, EngineOptions,
    FsckOptions, SitesAddOptions, DoctorCommand, TopCommand, ReportCommand, DropboxCommand,
    BackupCommand, WaitsCommand, TrainCommand, KeepCommand, SimCommand, NewToolCommand,
    PluginCommand, BatchCommandsCommand, WebCommand, MetricsCommand, ShowText, ShowVersion>;

}  // namespace hpcbatch
