// Results of tasks until the engine has acknowledged them: sent once what they printed is written,
// left in the outbox where the pilot ends before that.
#pragma once

#include "pilot/base/clock.hpp"
#include "pilot/link/engine_link.hpp"
#include "pilot/policy/attempt.hpp"
#include "pilot/processes/surroundings.hpp"
#include "pilot/tasks/pack_file.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/history.hpp"
#include "wire/pilot_file.hpp"
#include "wire/wire.pb.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hpcbatch::pilot {

// Which pilot this process is, for how long its batch job lets it run tasks, and its part of a
// history.

// Which pilot this process is, and for how long its batch job lets it run tasks.

struct Identity {
  wire::PilotFile file;
  wire::PilotName name;
  std::string text;  // "NAME.RANK"
  std::uint64_t incarnation{0};
  std::string work;  // this process's directory, below the workspace
  /// The walltime less the margin; nothing where there is none.
  std::optional<Time> usable_until;
};

/// `incarnation` is drawn: a batch system may start the same script twice.
Identity identity_of(const wire::PilotFile& file, std::uint32_t rank, Time now);

// The pilot's part of a history (wire/history.hpp), for checkers.  Only where its file names a
// folder.

class PilotHistory {
 public:
  PilotHistory(const wire::PilotFile& file, const std::string& pilot, std::uint64_t incarnation);

  void linked() const { add("linked", {}); }
  void link_lost() const { add("link-lost", {}); }
  void fenced() const { add("fenced", {}); }
  /// For so long having nothing to do is no reason to leave.
  void stays(std::uint64_t ms) const { add("stays", {{"ms", std::to_string(ms)}}); }
  void attempt_started(const AttemptId& id) const;
  /// For a task that another pilot runs.
  void room_held(const AttemptId& id) const;
  void room_freed(const AttemptId& id) const;
  /// With all its processes.
  void attempt_ended(const AttemptId& id, const std::string& failure, bool staged) const;
  void published(const AttemptId& id) const;
  /// Its outputs will not be published.
  void discarded(const AttemptId& id) const;
  /// It stays for that, with nothing else to do.
  void outbox_failed() const { add("outbox-failed", {}); }
  /// It stays for them too.
  void services_starting(std::size_t count) const {
    add("services-starting", {{"count", std::to_string(count)}});
  }
  void ended(const std::string& reason) const { add("pilot-ended", {{"reason", reason}}); }

 private:
  void add(std::string what, std::vector<std::pair<std::string, std::string>> facts) const;

  std::optional<wire::HistoryFile> file_;
};

class Results {
 public:
  Results(const Identity& self, PackFile& pack, EngineLink& link)
      : self_(self), pack_(pack), link_(link) {}

  void keep(const AttemptId& id, wire::Result result) { kept_[id] = std::move(result); }
  /// Null: there is none.
  const wire::Result* find(const AttemptId& id) const;
  void forget(const AttemptId& id) { kept_.erase(id); }
  /// Whether all that it says was printed is in the pack.
  bool is_written(const wire::Result& result) const;

  /// What is kept, as soon as it is written; without a link it waits for the next one.
  void send(const AttemptId& id);
  void send_all();
  /// Not before all who follow its output have had that.
  void hold_back(const AttemptId& id) { held_back_.push_back(id); }
  void send_held_back(const std::function<bool(const AttemptId&)>& is_followed);
  /// `urgent`: the engine is told at once.
  void send_written(bool urgent, Time now);
  void link_lost();
  /// Those that are to be sent and wait for the pack.
  const std::vector<AttemptId>& waiting() const { return to_send_; }
  /// For how long the longest of those ran.
  std::chrono::microseconds longest_waiting() const;

  /// All that nobody has acknowledged.
  hpcbatch::Result<void> write_outbox() const;
  /// What an earlier process of the same script left is delivered by this one; `found` hears of each
  /// and of its size.  Text: it cannot be looked at, and would be written over.
  std::string read_outbox(const std::function<void(const AttemptId&, std::size_t)>& found);

 private:
  std::string outbox_path() const;

  const Identity& self_;
  PackFile& pack_;
  EngineLink& link_;
  std::unordered_map<AttemptId, wire::Result, AttemptHash> kept_;
  std::vector<AttemptId> to_send_;
  std::vector<AttemptId> held_back_;
  std::size_t bytes_in_frame_{0};  // of the results that wait for the link to send
};

// Leases that have not started: what their tasks are, and the environments that those name.

struct HeldLease {
  std::shared_ptr<const wire::Start> start;  // its own, or that of its first neighbour
  std::shared_ptr<const BaseEnvironment> base;
  std::shared_ptr<const BaseEnvironment> foreseen_base;
  bool follow{false};  // somebody wants its output from its start on
};

class HeldLeases {
 public:
  /// `setup`, which outlives it, changes each environment.
  explicit HeldLeases(const SetupChanges& setup) : setup_(setup) {}

  /// Of this link, before the leases that name them.
  void keep_environments(const wire::ToPilot& message);
  /// Takes the recipes out of the message.  `is_new`: which of its leases were not held before.
  void keep(wire::ToPilot& message, const std::vector<bool>& is_new);
  /// It must be there.
  HeldLease take(const AttemptId& id);
  void drop(const AttemptId& id) { leases_.erase(id); }
  /// False where it is not held.
  bool follow_from_start(const AttemptId& id);
  void link_lost() { environments_.clear(); }

 private:
  const SetupChanges& setup_;

  std::shared_ptr<const BaseEnvironment> environment(std::uint32_t number) const;

  std::unordered_map<std::uint32_t, std::shared_ptr<const BaseEnvironment>> environments_;
  std::unordered_map<AttemptId, HeldLease, AttemptHash> leases_;
};

}  // namespace hpcbatch::pilot
