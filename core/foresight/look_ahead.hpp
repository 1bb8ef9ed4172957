// When would a job that is submitted now start?  Drawn from what the queue shows.
#pragma once

#include "foresight/cluster.hpp"
#include "foresight/wait_history.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hpcbatch::foresight {

// Whether to submit the next of a chain of pilots now.

/// What an hour costs in which work waits for a pilot, against one in which a pilot waits for work
/// (the newsvendor's rule: with costs a and b it is time when the a/(a+b) quantile of the start
/// meets the end of the supply).  What is far ahead will be known better later: more than so many
/// idle pilot-hours are never risked, whatever work is worth.
struct AskingCosts {
  double waiting{19};
  double idle{1};
  Seconds most_idle{105 * kMinute};

  double quantile() const { return waiting / (waiting + idle); }
};

/// `starts`: drawn, in order, for one submitted now.
bool is_time_to_ask(const std::vector<Seconds>& starts, Seconds supply_ends,
                    const AskingCosts& costs);

/// What can be seen of a queue.
struct QueueView {
  Seconds now{0};
  std::int32_t nodes{0};  ///< all that run something or may
  /// How many these are from later moments on.
  std::vector<std::pair<Seconds, std::int32_t>> later{};
  struct Running {
    Job job;
    Seconds started{0};
  };
  std::vector<Running> running;
  std::vector<Job> waiting;  ///< in the order of their priorities
};

struct Draws {
  std::size_t count{31};
  double alike{0.3};  ///< see RunTimeDraw
  std::uint32_t seed{1};
  Seconds horizon{7 * kDay};  ///< later starts count as if they were then
};

/// A start for each draw of how long all others run, in order.
struct DrawnStarts {
  std::vector<Seconds> next;                  ///< of the job that is submitted now
  std::vector<std::vector<Seconds>> waiting;  ///< of those that were asked for
};

/// Those that wait keep their order.  `asked`: places in `view.waiting`.  `times`: null where all
/// are to run to their limits.  Nobody comes later in it.  Takes milliseconds: never on a thread
/// that has other duties.
DrawnStarts draw_starts(const QueueView& view, ClusterModel model, const RunTimes* times,
                        const Job& job, const std::vector<std::size_t>& asked, const Draws& draws);
/// Of the one that is submitted now alone.
inline std::vector<Seconds> draw_starts(const QueueView& view, const ClusterModel& model,
                                        const RunTimes* times, const Job& job, const Draws& draws) {
  return draw_starts(view, model, times, job, {}, draws).next;
}

/// Between values in order, of which there is one at least.
Seconds quantile(const std::vector<Seconds>& sorted, double q);

}  // namespace hpcbatch::foresight
