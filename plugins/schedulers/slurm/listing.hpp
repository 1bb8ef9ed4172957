// How the batch jobs of this user are listed, with those that SLURM has already forgotten.
#pragma once

#include "hpcbatch/answer_bounds.hpp"
#include "hpcbatch/scheduler.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::slurm {

/// Takes node lists of one answer apart.  Bounded, for what is printed is short and what it means is
/// not: a list names as many nodes as SLURM can have, all of an answer together
/// `kMostNodesInAnAnswer`.
class NodeLists {
 public:
  /// "n[1-2,07],gpu3" as single names; a text that cannot be taken apart, or means too many, stays
  /// as it is.
  std::vector<std::string> names(std::string_view list);

 private:
  std::size_t left_{kMostNodesInAnAnswer};
};

// What the states and pending reasons of SLURM mean to us (its pages job_state_codes and
// job_reason_codes).

struct Meaning {
  BatchState state{BatchState::Queued};
  EndCause cause{EndCause::None};
};

/// `state` is a long name such as PENDING; sacct's "CANCELLED by 0" is understood too.
Meaning meaning_of(std::string_view state, std::string_view reason);

}  // namespace hpcbatch::slurm
