// Whether the batch system would take what the shapes of a site ask for, by its own test.
#pragma once

#include "model/site.hpp"
#include "sites/site_check.hpp"

#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/transport.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// A line for each shape; none where the plugin knows of no such test.  Scripts are written below
/// `folder`, which exists on the site.  On a lane: the calls block.
std::vector<SiteCheck> try_shapes(const Site& site, const Scheduler& scheduler,
                                  Transport& transport, const std::string& folder,
                                  Deadline deadline);

}  // namespace hpcbatch
