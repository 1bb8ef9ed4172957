#include "cli/client/engine_revival.hpp"

#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/table.hpp"

#include <algorithm>
#include <cstdio>

namespace hpcbatch {

void EngineRevival::tried(EngineClient& client, const Answer& answer) {
  if (answer.outcome != Exchange::NoEngine || !engine_that_died(session_.places.home)) {
    dead_since_.reset();
    return;
  }
  const Clock::time_point now = Clock::now();
  if (!dead_since_) dead_since_ = now;
  if (now - *dead_since_ < kOthers || now < next_) return;
  start(client);
}

void EngineRevival::start(EngineClient& client) {
  std::string said;
  try {
    if (connect_or_start(client, session_.places, session_.interrupt, Lifetime::UntilIdle))
      said = "the engine had died and was started again; its log is " + session_.places.home +
             "/engine.log";
    dead_since_.reset();
    told_ = false;
  } catch (const CommandError& error) {
    if (!told_) said = std::string(error.what()) + "; it is tried again";
    told_ = true;
  }
  // One that dies again and again is not started without end.
  next_ = Clock::now() + pause_;
  pause_ = std::min(kLongestPause, 2 * pause_);
  if (said.empty()) return;
  status_.clear();
  std::fprintf(stderr, "hpcbatch: %s\n", one_line(said).c_str());
}

}  // namespace hpcbatch
