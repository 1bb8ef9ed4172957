// The file in which a pilot leaves results that the engine has not acknowledged, for the engine to
// find when the pilot is gone.  Its layout is frozen: any later engine reads the outbox of any
// pilot.
#pragma once

#include "failure/failure.hpp"
#include "hpcbatch/result.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/wire.pb.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::wire {

/// `results` are serialized `wire::Result`s, so that a field added later passes through an older
/// program.
struct Outbox {
  PilotName pilot;
  std::uint64_t incarnation{};
  std::vector<std::string> results;
};

/// "outbox/NAME.RANK", relative to the workspace.
std::string outbox_name(const PilotName& pilot);

std::string encode(const Outbox& outbox);
hpcbatch::Result<Outbox> decode_outbox(std::string_view bytes);

/// Transient: it is not there or cannot be read now.  Rejected: it is damaged.
hpcbatch::Result<Outbox> read_outbox(const std::string& path);

/// Written aside, synced and renamed.
hpcbatch::Result<void> write_outbox(const std::string& path, const Outbox& outbox);

// The failure of a result as the closed list has it: on the link it is the list's word.

/// A word that this program does not know is a later program's.
inline Failure failure_of(const Result& result) {
  return parse_failure(result.failure()).value_or(Failure::EngineError);
}
inline void set_failure(Result& result, Failure failure) {
  result.set_failure(std::string(to_string(failure)));
}

}  // namespace hpcbatch::wire
