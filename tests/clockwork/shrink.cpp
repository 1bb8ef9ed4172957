#include "shrink.hpp"

#include <algorithm>

namespace hpcbatch::clockwork {

Scenario shrink(Scenario scenario, const Verdict& verdict,
                const std::function<void(std::size_t)>& progress) {
  const std::string kind = kind_of(verdict.wrong);
  std::size_t chunk = std::max<std::size_t>(1, scenario.incidents.size() / 2);
  while (true) {
    bool any = false;
    for (std::size_t at = 0; at < scenario.incidents.size();) {
      Scenario without = scenario;
      const auto first = without.incidents.begin() + static_cast<std::ptrdiff_t>(at);
      without.incidents.erase(first, first + static_cast<std::ptrdiff_t>(
                                                 std::min(chunk, scenario.incidents.size() - at)));
      if (kind_of(run_apart(without).wrong) == kind) {
        scenario = std::move(without);
        any = true;
        progress(scenario.incidents.size());
      } else {
        at += chunk;
      }
    }
    if (chunk == 1 && !any) return scenario;
    if (!any) chunk = std::max<std::size_t>(1, chunk / 2);
  }
}

}  // namespace hpcbatch::clockwork
