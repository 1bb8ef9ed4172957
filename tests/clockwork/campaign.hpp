// Many seeds, on all cores.
#pragma once

#include "scenario.hpp"
#include "tally.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hpcbatch::clockwork {

struct Campaign {
  std::uint64_t first{0};
  std::uint64_t seeds{0};
  std::optional<std::chrono::steady_clock::time_point> until;  ///< ends then at the latest
  std::uint64_t tasks{500};                                    ///< of each scenario
  unsigned workers{1};
};

struct Finding {
  std::uint64_t seed{0};
  std::string wrong;
};

struct Outcomes {
  std::uint64_t clean{0};
  std::optional<Finding> finding;  ///< the campaign ends with the first one
  Tally tally;
};

/// `progress` is told now and then how many seeds were clean so far.
Outcomes run(const Campaign& campaign, const std::function<void(std::uint64_t)>& progress);

}  // namespace hpcbatch::clockwork
