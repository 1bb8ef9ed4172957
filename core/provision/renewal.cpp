#include "provision/renewal.hpp"

#include <algorithm>

namespace hpcbatch::provision {
namespace {

// From the submit command to the pilot's registration, where the batch system starts it at once.
constexpr Duration kSubmitAndStart = std::chrono::seconds{5};

foresight::Seconds seconds_in(Duration duration) {
  return std::chrono::round<std::chrono::seconds>(duration).count();
}

}  // namespace

std::uint32_t renewals(Kept kept, const foresight::AskingCosts& costs) {
  const auto there = static_cast<std::uint32_t>(kept.left.size());
  // What would come when nobody wants it any more is not asked for.
  const Duration soon = kept.waits.empty() ? Duration{} : kept.waits[kept.waits.size() / 2];
  if (kept.until <= soon) return 0;
  if (there < kept.wanted) return kept.wanted - there;
  std::sort(kept.left.begin(), kept.left.end());
  std::vector<foresight::Seconds> starts;
  starts.reserve(kept.waits.size());
  for (const Duration wait : kept.waits) starts.push_back(seconds_in(wait + kSubmitAndStart));
  std::uint32_t count = 0;
  // Those that are there beyond what is wanted follow the ones that end first.
  for (std::size_t next = there - kept.wanted; next < kept.left.size(); ++next) {
    if (kept.left[next] >= kept.until) break;
    if (!foresight::is_time_to_ask(starts, seconds_in(kept.left[next]), costs)) break;
    ++count;
  }
  return count;
}

}  // namespace hpcbatch::provision
