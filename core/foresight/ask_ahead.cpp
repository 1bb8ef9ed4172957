#include "foresight/ask_ahead.hpp"

#include "foresight/look_ahead.hpp"

#include <algorithm>

namespace hpcbatch::foresight {

bool is_time_to_ask(const std::vector<Seconds>& starts, Seconds supply_ends,
                    const AskingCosts& costs) {
  if (starts.empty() || quantile(starts, costs.quantile()) < supply_ends) return false;
  Seconds idle = 0;
  for (const Seconds start : starts) idle += std::max<Seconds>(0, supply_ends - start);
  return idle <= costs.most_idle * static_cast<Seconds>(starts.size());
}

}  // namespace hpcbatch::foresight
