// A shape of a site as a scheduler plugin is asked for it.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/scheduler.hpp"
#include "model/site.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// `name` is that of the allocation, `pilot` the command that runs on each of its nodes.
AllocationRequest allocation_request(const Site& site, const Shape& shape, const std::string& name,
                                     std::vector<std::string> pilot);

// What tasks may choose of the batch jobs of a site, between its configuration and its scheduler.

/// Makes `site.choices` what the configuration allows and the batch system has a word for. Rejected
/// where the configuration names what there is no word for, or has a choice as a shape's tag, which
/// no batch job would be asked with.
Result<void> settle_choices(Site& site, const Scheduler& scheduler);

/// Adds the options of a shape that was made for choices.  Rejected where that cannot be said:
/// without it somebody else would pay.
Result<void> add_choices(const Scheduler& scheduler, const std::vector<std::string>& choices,
                         AllocationRequest& request);

// What a batch system has said of our batch jobs, made fit to be kept and shown.

/// Without those whose name no allocation can have (`AllocationRequest`), and without nodes whose
/// names no node can have; the rest is valid UTF-8, printable, and bounded.
std::vector<BatchJob> plain_jobs(std::vector<BatchJob> jobs);

}  // namespace hpcbatch
