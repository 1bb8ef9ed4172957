// What tasks may choose of the batch jobs of a site, between its configuration and its scheduler.
#pragma once

#include "model/site.hpp"

#include "hpcbatch/result.hpp"
#include "hpcbatch/scheduler.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// Makes `site.choices` what the configuration allows and the batch system has a word for. Rejected
/// where the configuration names what there is no word for, or has a choice as a shape's tag, which
/// no batch job would be asked with.
Result<void> settle_choices(Site& site, const Scheduler& scheduler);

/// Adds the options of a shape that was made for choices.  Rejected where that cannot be said:
/// without it somebody else would pay.
Result<void> add_choices(const Scheduler& scheduler, const std::vector<std::string>& choices,
                         AllocationRequest& request);

}  // namespace hpcbatch
