// Files of tasks on their way to sites and back: they arrive in parts, late, or cannot be had.
#pragma once

#include "draw.hpp"
#include "model/action.hpp"
#include "model/event.hpp"

#include <functional>

namespace hpcbatch::clockwork {

class World;

class FarFiles {
 public:
  using Answer = std::function<void(const Event&)>;
  explicit FarFiles(World& world) : world_(world) {}

  void bring(const BringFiles& asked, const Answer& answer);
  /// What the pilot says has ended well and has outputs that are fetched first is told to the
  /// engine by `answer` when they are here; what is left goes to it at once.
  AttemptsEnded fetch(AttemptsEnded ended, const std::function<bool(const AttemptEnd&)>& is_far,
                      const Answer& answer);
  /// All that is asked for from now on can be had.
  void make_peace() { peace_ = true; }

 private:
  World& world_;
  std::uint64_t asked_{0};
  bool peace_{false};
};

}  // namespace hpcbatch::clockwork
