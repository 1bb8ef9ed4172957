// The failure of a result as the closed list has it: on the link it is the list's word.
#pragma once

#include "failure/failure.hpp"
#include "wire/wire.pb.h"

#include <string>

namespace hpcbatch::wire {

/// A word that this program does not know is a later program's.
inline Failure failure_of(const Result& result) {
  return parse_failure(result.failure()).value_or(Failure::EngineError);
}
inline void set_failure(Result& result, Failure failure) {
  result.set_failure(std::string(to_string(failure)));
}

}  // namespace hpcbatch::wire
