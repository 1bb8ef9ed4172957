// What the states and pending reasons of SLURM mean to us (its pages job_state_codes and
// job_reason_codes).
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <string_view>

namespace hpcbatch::slurm {

struct Meaning {
  BatchState state{BatchState::Queued};
  EndCause cause{EndCause::None};
};

/// `state` is a long name such as PENDING; sacct's "CANCELLED by 0" is understood too.
Meaning meaning_of(std::string_view state, std::string_view reason);

}  // namespace hpcbatch::slurm
