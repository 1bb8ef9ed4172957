// What a batch system has said of our batch jobs, made fit to be kept and shown.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <vector>

namespace hpcbatch {

/// Without those whose name no allocation can have (`AllocationRequest`), and without nodes whose
/// names no node can have; the rest is valid UTF-8, printable, and bounded.
std::vector<BatchJob> plain_jobs(std::vector<BatchJob> jobs);

}  // namespace hpcbatch
