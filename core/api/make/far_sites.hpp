// Which sites see the files of a task, by their path_map, and to which these have to be staged in.
#pragma once

#include "engine/engine.hpp"
#include "links/recipe.hpp"
#include "model/needs.hpp"
#include "model/site.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// What of a recipe is each task's own, and the items as the store keeps them.
struct OwnItems {
  Filled filled;
  const std::vector<std::string>& stored;
};

std::vector<const Site*> sites_of(const Engine& engine);

/// Notes in `needs` the sites to which the recipe's files have to be staged in, and excludes those
/// that do not see all of the folders `shared` under the same names.  Throws BadRequest where none
/// is left for that.
void note_far_sites(const std::vector<const Site*>& sites, const wire::Start& start,
                    const OwnItems& items, const std::vector<std::string>& shared, Needs& needs);

}  // namespace hpcbatch
