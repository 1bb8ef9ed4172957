// Files of tasks on their way to sites and back: they arrive in parts, late, or cannot be had.
#pragma once

#include "draw.hpp"
#include "model/action.hpp"
#include "model/event.hpp"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace hpcbatch::clockwork {

class World;

class FarFiles {
 public:
  using Answer = std::function<void(const Event&)>;
  explicit FarFiles(World& world) : world_(world) {}

  void bring(const StageIn& asked, const Answer& answer);
  using PilotOf = std::function<std::optional<PilotId>(const AttemptEnd&)>;
  /// Of the ends those that are good and of which `far` names the pilot are taken out, because
  /// their outputs are fetched first: `answer` tells of them when they are here.
  std::vector<AttemptId> fetch(std::vector<AttemptEnd>& ends, const PilotOf& far,
                               const Answer& answer);
  /// What is being staged out is cancelled instead.
  void stop(const AttemptId& attempt, const Answer& answer);
  /// All that is asked for from now on can be had.
  void make_peace() { peace_ = true; }

 private:
  World& world_;
  std::map<AttemptId, PilotId> fetched_;
  std::uint64_t asked_{0};
  bool peace_{false};
};

}  // namespace hpcbatch::clockwork
