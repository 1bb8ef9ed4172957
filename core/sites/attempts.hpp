// Attempts as the wire writes them.
#pragma once

#include "model/ids.hpp"
#include "wire/wire.pb.h"

namespace hpcbatch {

inline AttemptId from_wire(const wire::Attempt& attempt) {
  return {{ArrayId{attempt.array()}, attempt.index()}, attempt.number(), attempt.epoch()};
}

inline void to_wire(const AttemptId& attempt, wire::Attempt* out) {
  out->set_array(attempt.task.array.value);
  out->set_index(attempt.task.index);
  out->set_number(attempt.number);
  out->set_epoch(attempt.epoch);
}

}  // namespace hpcbatch
