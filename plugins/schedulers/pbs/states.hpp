// What a batch job's record says of its state and end.
#pragma once

#include "records.hpp"

#include "hpcbatch/scheduler.hpp"

namespace hpcbatch::pbs {

struct Meaning {
  BatchState state{BatchState::Queued};
  EndCause cause{EndCause::None};
};

Meaning meaning_of(const Record& job);

}  // namespace hpcbatch::pbs
