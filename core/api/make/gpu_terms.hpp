// What is said of a GPU's memory and capability -> the kinds that there are and that have it.
#pragma once

#include "hardware/gpu_kind.hpp"
#include "model/site.hpp"

#include <vector>

namespace hpcbatch {

/// Replaces the demand for GPUs in `needs`.  Throws BadRequest where no kind will do.
void choose_gpu_kinds(const GpuTerms& terms, const std::vector<const Site*>& sites, Needs& needs);

}  // namespace hpcbatch
