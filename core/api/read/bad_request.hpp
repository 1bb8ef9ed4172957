#pragma once

#include <stdexcept>

namespace hpcbatch {

/// The request is wrong; `what()` is the sentence for the client.
struct BadRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace hpcbatch
