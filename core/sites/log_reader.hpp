// Reads captured output of ended tasks out of the logs that pilots keep in a site's workspace.
#pragma once

#include "hpcbatch/result.hpp"
#include "model/ids.hpp"
#include "model/task.hpp"
#include "sites/site_client.hpp"
#include "wire/wire.pb.h"

#include <cstdint>
#include <functional>
#include <string>

namespace hpcbatch {

/// Whether a log's name, which a pilot said, leads to a file in the workspace.
bool lies_in_workspace(const std::string& file);

/// Up to `limit` bytes of a stream (1 stdout, 2 stderr) from its offset `from`, none behind its
/// end; answers on the loop.  The file is read on the site's lane.
void read_log(SiteClient& site, const LogPlace& log, const AttemptId& attempt, std::uint32_t stream,
              std::uint64_t from, std::size_t limit,
              std::function<void(Result<std::string>)> answer);

// Attempts as the wire writes them.

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
