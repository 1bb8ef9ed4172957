// Who needs files on a site, and why they could not be staged in or out.
#pragma once

#include "failure/failure.hpp"
#include "model/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace hpcbatch {

/// An array for what all its tasks share, or one of its tasks.
struct StageOwner {
  ArrayId array;
  std::optional<std::uint32_t> index;
  friend auto operator<=>(const StageOwner&, const StageOwner&) = default;
};

struct StageError {
  bool can_be_tried_again{false};
  Failure failure{
      Failure::EngineError};  ///< of input or output; OutputMissing where nothing lies at the place
  std::string text;           ///< what was tried, what happened, what to do
  friend bool operator==(const StageError&, const StageError&) = default;
};

}  // namespace hpcbatch
