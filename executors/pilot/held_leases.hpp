// Leases that have not started: what their tasks are, and the environments that those name.
#pragma once

#include "pilot/policy/attempt.hpp"
#include "pilot/processes/setup_changes.hpp"
#include "pilot/processes/surroundings.hpp"
#include "wire/wire.pb.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace hpcbatch::pilot {

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
