// Which pilot this process is, and for how long its batch job lets it run tasks.
#pragma once

#include "pilot/base/time.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/pilot_file.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace hpcbatch::pilot {

struct Identity {
  wire::PilotFile file;
  wire::PilotName name;
  std::string text;  // "NAME.RANK"
  std::uint64_t incarnation{0};
  std::string work;  // this process's directory, below the workspace
  /// The walltime less the margin; nothing where there is none.
  std::optional<Time> usable_until;
};

/// `incarnation` is drawn: a batch system may start the same script twice.
Identity identity_of(const wire::PilotFile& file, std::uint32_t rank, Time now);

}  // namespace hpcbatch::pilot
