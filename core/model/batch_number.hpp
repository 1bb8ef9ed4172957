// Numbers of tasks as batch systems have them: for scripts that read SLURM_JOB_ID, and for commands
// that are asked for such a number.
#pragma once

#include "model/ids.hpp"
#include "model/index_set.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace hpcbatch {

/// A range of our own, which no cluster's counter has reached: 2,000,000,000 and the id.  An array
/// that is numbered takes as many ids as it has tasks, so that each of them has a number.
inline constexpr std::uint32_t kBatchNumbers = 2'000'000'000;
/// The two above it mean "none" and "all" to SLURM.
inline constexpr std::uint32_t kLastBatchNumber = 0xFFFF'FFFD;

/// Of the task at that position, from 0; the first has its array's.  None: there are no more.
std::optional<std::uint32_t> batch_number(ArrayId array, std::uint64_t position = 0);

/// The id that stands behind a number: an array's, or one of those that a numbered array has taken
/// besides, and then the array is the one with the highest id that is not above it.  None: the number
/// is a batch system's own.
std::optional<ArrayId> id_of_batch_number(std::uint64_t number);

/// How many ids an array takes.
std::uint64_t ids_taken(bool is_numbered, const IndexSet& indices);

/// Every `step`th index from the first to the last, which belongs to it.
struct IndexSteps {
  std::uint32_t first{0}, last{0}, step{1};
  friend bool operator==(const IndexSteps&, const IndexSteps&) = default;
};

/// Indices in their order, `0-9:3` as one of them however long it is.
std::vector<IndexSteps> steps_of(const IndexSet& indices);
/// Where an index stands among all of them, from 0; none: it is not there.
std::optional<std::uint64_t> position_of(const std::vector<IndexSteps>& all, std::uint32_t index);
/// The index at that position; none: there are not so many.
std::optional<std::uint32_t> index_at(const std::vector<IndexSteps>& all, std::uint64_t position);

}  // namespace hpcbatch
