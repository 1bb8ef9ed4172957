#include "pilot/policy/tree_memory.hpp"

#include "pilot/policy/verdict.hpp"

#include <algorithm>

namespace hpcbatch::pilot {
namespace {

constexpr int kPause = 19;  // of so many times what counting took

}  // namespace

std::vector<MemoryVictim> memory_victims(const std::vector<MemoryUse>& uses,
                                         std::uint64_t capacity) {
  std::vector<MemoryVictim> victims;
  std::uint64_t together = 0;
  const MemoryUse* furthest = nullptr;
  const auto excess = [](const MemoryUse& use) {
    return static_cast<std::int64_t>(use.used) - static_cast<std::int64_t>(use.granted);
  };
  for (const MemoryUse& use : uses) {
    if (use.limit != 0 && use.used > use.limit) {
      victims.push_back({use.id, "it used " + in_words(use.used) + " of memory; the limit is " +
                                     in_words(use.limit)});
      continue;
    }
    together += use.used;
    if (furthest == nullptr || excess(use) > excess(*furthest)) furthest = &use;
  }
  if (capacity != 0 && together > capacity && furthest != nullptr && excess(*furthest) > 0) {
    victims.push_back(
        {furthest->id, "the pilot's memory of " + in_words(capacity) +
                           " was used up and this task was furthest above its share: it used " +
                           in_words(furthest->used) +
                           (furthest->told != 0 && furthest->told < furthest->used
                                ? " of " + in_words(furthest->told)
                                : ", more than its kind did before") +
                           "; ask for more memory with --mem"});
  }
  return victims;
}

std::uint64_t TreeMemory::estimate(std::uint64_t resident) const {
  return static_cast<std::uint64_t>(static_cast<double>(resident) * part_);
}

bool TreeMemory::is_due(std::uint64_t resident, std::uint64_t peak, Time now) const {
  return can_afford(now) && (!exact_ || estimate(resident) > peak);
}

void TreeMemory::counted(std::uint64_t resident, std::uint64_t exact, Time began, Time ended) {
  next_ = ended + kPause * (ended - began);
  next_for_limit_ = ended + (ended - began);
  if (exact == 0 || resident == 0) return;
  exact_ = exact;
  part_ = std::min(1.0, static_cast<double>(exact) / static_cast<double>(resident));
}

}  // namespace hpcbatch::pilot
