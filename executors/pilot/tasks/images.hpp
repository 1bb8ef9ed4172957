// The images that a pilot's tasks run in: each brought to its runtime once, while the tasks that
// want it wait.
#pragma once

#include "pilot/base/clock.hpp"
#include "pilot/base/files.hpp"
#include "pilot/images/image_cache.hpp"
#include "pilot/policy/attempt.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

class Images {
 public:
  using Answered = std::function<void(const AttemptId&, const ImageAnswer&)>;
  Images(Helpers& helpers, Answered answered) : helpers_(helpers), answered_(std::move(answered)) {}

  /// The answer where it is known; else `answered` follows.
  std::optional<ImageAnswer> want(const AttemptId& id, const ImageOrder& order, Time now);
  void forget(const AttemptId& id);
  /// Says what is used still.
  void tick(Time now);

 private:
  struct Wanted {
    std::vector<AttemptId> waiting;
    std::optional<ImageAnswer> answer;
    Time answered_at{};
  };
  static bool holds(const Wanted& wanted, Time now);
  void take_answer(const std::string& key, const ImageAnswer& answer);

  Helpers& helpers_;
  Answered answered_;
  std::map<std::string, Wanted> wanted_;  // by runtime and image
  Time say_at_{};
};

}  // namespace hpcbatch::pilot
