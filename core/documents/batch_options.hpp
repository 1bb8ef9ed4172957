// Options that a site hands to its batch system with every batch job.
#pragma once

#include "documents/view.hpp"
#include "model/site.hpp"

namespace hpcbatch {

/// Throws DocumentError for one that another cluster, a shape or hpcbatch itself has to do with.
void check_batch_options(const View& options, const Site& site);

}  // namespace hpcbatch
