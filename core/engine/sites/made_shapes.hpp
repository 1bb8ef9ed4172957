// Shapes that are made from those of the configuration for what tasks choose of their batch jobs.
#pragma once

#include "engine/sites/site_table.hpp"

#include <map>
#include <vector>

namespace hpcbatch {

/// From each of its configuration's shapes one for these choices.  False: some are too many.
bool make_shapes(SiteState& site, const std::vector<std::string>& choices);

class MadeShapes {
 public:
  MadeShapes(std::vector<SiteState>& sites,
             const std::map<AllocationId, AllocationEntry>& allocations)
      : sites_(sites), allocations_(allocations) {}

  /// Sees that there are shapes with what such tasks choose.  False: some are too many.
  bool make_for(const Needs& needs);
  /// Those stay that one of these or an allocation is for.
  void keep_for(const std::vector<const Needs*>& needs);

 private:
  std::vector<SiteState>& sites_;
  const std::map<AllocationId, AllocationEntry>& allocations_;
};

/// For each shape of the configuration whether it, or what is made from it for what such tasks
/// choose, could run a task of such needs.
std::vector<bool> fits_shapes(const std::vector<SiteState>& sites, const Needs& needs);

}  // namespace hpcbatch
