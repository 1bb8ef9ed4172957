// What is said of a GPU's memory and capability -> the kinds that there are and that have it.
#pragma once

#include "api/read/read_task.hpp"
#include "hardware/gpu_kind.hpp"
#include "model/site.hpp"

#include <vector>

namespace hpcbatch {

/// Puts the ways in which it may be run into `needs`, with what it says beside them in each.  Those
/// for which there is no GPU are left out.  Throws BadRequest where none is left.
void choose_ways(const std::vector<AskedWay>& ways, const std::vector<const Site*>& sites,
                 Needs& needs);
/// Replaces the demand for GPUs in `needs`.  Throws BadRequest where no kind will do.
void choose_gpu_kinds(const GpuTerms& terms, const std::vector<const Site*>& sites, Needs& needs);

}  // namespace hpcbatch
