// Which pilot this process is, for how long its batch job lets it run tasks, and its part of a
// history.
#pragma once

#include "pilot/base/clock.hpp"
#include "pilot/policy/attempt.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/history.hpp"
#include "wire/pilot_file.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot
