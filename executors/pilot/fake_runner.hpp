// In place of the runner, for benchmarks of all the rest: no process is started.  A task `sleep
// SECONDS` ends after that time, every other at once, and all of them well.
#pragma once

#include "pilot/policy/attempt.hpp"
#include "pilot/policy/decide.hpp"
#include "wire/wire.pb.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace hpcbatch::pilot {

class FakeRunner {
 public:
  /// Told from within `launch`, `stop` and `tick`.
  using Ended = std::function<void(const AttemptId&, wire::Result)>;
  explicit FakeRunner(Ended ended) : ended_(std::move(ended)) {}

  /// HPCBATCH_PILOT_RUNS_NOTHING in the pilot's environment names its workspace: batch systems hand
  /// environments on, and no other site's tasks must be said to have run.
  static bool is_asked_for(const std::string& workspace);

  void launch(const AttemptId& id, const wire::Start& start, Time now);
  void stop(const AttemptId& id, Failure failure, const std::string& message);
  void tick(Time now);
  std::optional<Time> next() const;

 private:
  struct Going {
    std::int64_t started_us{};
    Time until{};
  };
  void end(const AttemptId& id, std::int64_t started_us, Failure failure,
           const std::string& message);

  Ended ended_;
  std::unordered_map<AttemptId, Going, AttemptHash> going_;
  std::set<std::pair<Time, AttemptId>> ends_;
};

}  // namespace hpcbatch::pilot
