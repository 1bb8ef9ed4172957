// What SiteFiles has done on its lanes: an exchange with the program on the site, and large files
// one by one.  All of it blocks.
#pragma once

#include "sites/pilot_program.hpp"
#include "staging/hash_files.hpp"
#include "staging/staged_files.hpp"
#include "wire/wire.pb.h"

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch {

struct ExchangePlan {
  wire::FilesOrder order;                   // without `put`
  std::vector<StagedFiles::Sending> small;  // become `put` where they are still what they were
  std::vector<std::string> take_to;         // where on this machine, as `order.take`
};

struct ExchangeOutcome {
  Result<wire::FilesReport> report{Error{Error::Kind::Transient, "it did not come back in time"}};
  std::vector<std::size_t> put;                  // of `small`, as the report's `put`
  std::vector<std::size_t> changed;              // of `small`
  std::vector<std::optional<StageError>> taken;  // as the report's `take`
};

ExchangeOutcome exchange_files(ExchangeTools& tools, const PilotProgram& program,
                               const std::string& workspace, ExchangePlan plan, Deadline deadline);

/// To where the next exchange adopts it from.
struct LargeSent {
  Result<void> result{Error{Error::Kind::Transient, "it did not come back in time"}};
  bool is_changed{false};  // it was not what it had been hashed as, before or after
};
LargeSent send_large(ExchangeTools& tools, const StagedFiles::Sending& file,
                     const std::string& place, Deadline deadline);

struct LargeFetch {
  std::string there;  // absolute
  std::string here;
  std::uint64_t size{0};
  std::uint32_t mode{0};
};
struct LargeFetched {
  Result<void> result{Error{Error::Kind::Transient, "it did not come back in time"}};
  std::optional<StageError> here;  // why this machine does not take it
};
LargeFetched fetch_large(ExchangeTools& tools, const LargeFetch& file, Deadline deadline);

}  // namespace hpcbatch
