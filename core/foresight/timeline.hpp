// Free nodes over the time to come, in slots of one length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hpcbatch::foresight {

/// Nodes are only ever taken between two resets, so where so many are free for the first time is
/// never before where it was.
class Timeline {
 public:
  Timeline(std::size_t slots, std::int32_t most_nodes);

  void reset(std::int32_t free_now);
  /// More nodes are free from that slot on; said in any order, before the first `settle`.
  void frees(std::size_t slot, std::int32_t nodes);
  void settle();

  /// The first slot from which so many are free for so long; what is beyond the last slot counts
  /// as free.  Nothing where not even the last slot has them.
  std::optional<std::size_t> earliest(std::int32_t nodes, std::size_t slots);
  void take(std::size_t from, std::size_t slots, std::int32_t nodes);

  std::size_t size() const { return free_.size(); }
  std::int32_t free_at(std::size_t slot) const { return free_[slot]; }

 private:
  std::vector<std::int32_t> free_;
  std::vector<std::uint32_t> not_before_;  ///< by nodes
};

}  // namespace hpcbatch::foresight
