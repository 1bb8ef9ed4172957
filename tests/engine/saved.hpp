// What a store would hold after the engine's saves, kept in memory; it complains where they
// contradict each other.
#pragma once

#include "model/action.hpp"
#include "model/snapshot.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace hpcbatch {

class Saved {
 public:
  /// Says what is wrong with it, given all that was saved before; empty: nothing.  Other actions
  /// than saves are looked at too: leases may not be sent, nor results acknowledged, before they
  /// are saved.
  std::string apply(const Action& action);
  /// What an engine that starts now is given.
  Snapshot snapshot() const;
  LiveArrays live_arrays() const;
  void count_start() { ++starts_; }
  std::uint64_t starts() const { return starts_; }
  ArrayId last_array() const { return arrays_.empty() ? ArrayId{} : arrays_.rbegin()->first; }

  std::optional<Outcome> outcome(TaskId task) const;
  std::uint64_t results() const { return outcomes_.size(); }
  std::uint64_t submitted() const { return submitted_; }
  const std::vector<SaveFailedAttempt>& failed_attempts() const { return failed_; }
  bool has_lease(TaskId task) const { return leases_.contains(task); }
  const std::map<AllocationId, Allocation>& allocations() const { return allocations_; }
  const std::set<AllocationId>& forgotten() const { return forgotten_; }

  /// What the door for clients would read back for a retry of these tasks.
  RevivedArray revived(ArrayId id, const IndexSet& indices) const;
  EndedArray ended(ArrayId id) const;
  IndexSet failed(ArrayId id) const;
  bool is_live(ArrayId id) const { return !arrays_.at(id).ended; }
  const NewArray& facts(ArrayId id) const { return arrays_.at(id).facts; }
  const std::string& client(ArrayId id) const { return arrays_.at(id).client; }

 private:
  struct Array {
    NewArray facts;
    std::string client;
    Time submitted{};
    IndexSet held;
    bool ended{false};
    std::optional<ReadBy> read_by{};
  };
  std::string save(const SaveArrays& save);
  std::string save(const SaveHold& save);
  std::string save(const SaveTerms& save);
  std::string save(const SaveLeases& save);
  std::string save(const DropLeases& save);
  std::string save(const SaveCancelled& save);
  std::string save(const SavePermitted& save);
  std::string save(const SaveFailedAttempt& save);
  std::string save(const SaveResult& save);
  std::string save(const SaveResults& save);
  std::string save(const SaveArrayEnded& save);
  std::string save(const SaveRevived& save);
  std::string save(const SaveAllocation& save);
  std::string save(const SaveKeep& save);
  std::string save(const SaveReader& save);
  std::string save(const SendLeases& send);
  std::string save(const AcknowledgeResults& acknowledged);
  std::string save(const ForgetAllocation& forget);
  std::string save(const OpenAllocation& open);
  template <class Other>
  std::string save(const Other&) {
    return {};
  }
  std::string end(TaskId task, const Outcome& outcome);

  std::vector<Keep> keeps_;
  std::uint64_t starts_{0};
  std::uint64_t submitted_{0};
  std::map<ArrayId, Array> arrays_;
  std::map<TaskId, Outcome> outcomes_;
  std::map<TaskId, StoredLease> leases_;
  std::map<TaskId, std::uint32_t> attempts_;  // number of the last that ended
  std::map<TaskId, std::uint64_t> epochs_;    // of the last that was leased
  std::vector<SaveFailedAttempt> failed_;
  std::map<AllocationId, Allocation> allocations_;
  std::set<AllocationId> forgotten_;
  std::set<std::pair<std::string, std::string>> proven_;
  std::vector<StoredKey> keys_;
};

}  // namespace hpcbatch
