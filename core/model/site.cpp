#include "model/site.hpp"

#include "model/choices.hpp"

#include <algorithm>
#include <array>

namespace hpcbatch {
namespace {

constexpr std::array<std::string_view, 3> kEstimateWords{"off", "advise", "use"};

}  // namespace

std::string_view to_string(EstimateMode mode) {
  return kEstimateWords.at(static_cast<std::size_t>(mode));
}

std::optional<EstimateMode> parse_estimate_mode(std::string_view word) {
  const auto at = std::find(kEstimateWords.begin(), kEstimateWords.end(), word);
  if (at == kEstimateWords.end()) return std::nullopt;
  return static_cast<EstimateMode>(at - kEstimateWords.begin());
}

std::int64_t pilots_own_memory(std::int64_t bytes) {
  return std::min(bytes, std::max<std::int64_t>(bytes / 50, std::int64_t{100} << 20));
}

Resources usable(const Shape& shape) {
  Resources left = shape.capacity;
  if (const Amount memory = left.get(kMemory); memory != Amount{}) {
    left.set(kMemory, Amount::of(memory.whole() - pilots_own_memory(memory.whole())));
  }
  return left;
}

Duration end_margin(Duration walltime) {
  using namespace std::chrono_literals;
  // Short allocations keep most of their time: a tenth of it, at most 90 s (what SLURM was seen to
  // need).
  return std::min<Duration>(90s, walltime / 10);
}

Duration start_allowance(Duration walltime) {
  using namespace std::chrono_literals;
  return std::min<Duration>(30s, walltime / 50);
}

std::optional<Duration> longest_task(const Shape& shape) {
  if (shape.walltime == Duration{}) return std::nullopt;
  return shape.walltime - end_margin(shape.walltime) - start_allowance(shape.walltime);
}

bool could_run(const Needs& needs, const Shape& shape) {
  const auto longest = longest_task(shape);
  return needs.nodes <= shape.nodes && way_into(needs, usable(shape)) &&
         (!needs.time || !longest || *needs.time <= *longest) &&
         has_tags(shape.tags, shape.made_for, needs);
}

std::vector<LinkKind> link_ways(const Site& site) {
  if (site.link != LinkKind::Auto) return {site.link};
  // Where the engine itself is on the login node a relay there is no nearer to the pilots.
  if (site.transport == "shared_fs") return {LinkKind::Direct, LinkKind::Spool};
  return {LinkKind::Direct, LinkKind::Relay, LinkKind::Spool};
}

bool has_way(const Site& site, LinkKind way) {
  const auto ways = link_ways(site);
  return std::find(ways.begin(), ways.end(), way) != ways.end();
}

}  // namespace hpcbatch
