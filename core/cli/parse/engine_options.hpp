// What the programs behind the verbs are told: an engine, which tells the client that started it how
// the start went, `fsck` and `sites add`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

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

}  // namespace hpcbatch
