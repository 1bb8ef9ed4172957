#include "api/make/far_sites.hpp"

#include "api/read/bad_request.hpp"
#include "model/placeholders.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hpcbatch {
namespace {

/// Everything the task reads or writes that may have to be staged in or out.
std::vector<std::string> files_of(const Recipe& recipe) {
  std::vector<std::string> files = recipe.inputs;
  for (const RecipeOutput& output : recipe.outputs) files.push_back(output.destination);
  for (const std::string* path : {&recipe.standard_input, &recipe.standard_output,
                                  &recipe.standard_error, &recipe.container}) {
    if (path->starts_with('/')) files.push_back(*path);
  }
  return files;
}

struct Items {
  Filled filled;
  const std::vector<std::string>& stored;
  Item first() const { return stored.empty() ? Item() : item_of(filled, stored.front()); }
};

bool sees(const Site& site, const std::string& path, const Items& items) {
  // An index or an id says nothing of the folder.
  if (items.stored.empty() || !has_item(path, items.first()))
    return seen_as(site.path_map, path).has_value();
  return std::all_of(items.stored.begin(), items.stored.end(), [&](const std::string& stored) {
    return seen_as(site.path_map, with_item(path, item_of(items.filled, stored))).has_value();
  });
}

}  // namespace

std::vector<const Site*> sites_of(const Engine& engine) {
  std::vector<const Site*> sites;
  for (const SiteState& state : engine.sites().sites()) sites.push_back(&state.site);
  return sites;
}

void note_far_sites(const std::vector<const Site*>& sites, const Recipe& recipe,
                    const std::vector<std::string>& items, const std::vector<std::string>& shared,
                    Needs& needs) {
  const std::vector<std::string> files = files_of(recipe);
  std::vector<std::string> excluded;
  const Items own{recipe.filled, items};
  bool any_left = sites.empty();
  for (const Site* site : sites) {
    if (!may_run_at(needs, site->name)) continue;
    const auto is_seen = [&](const std::string& path) { return sees(*site, path, own); };
    const auto is_the_same = [&](const std::string& folder) {
      return seen_as(site->path_map, folder) == folder;
    };
    if (!std::all_of(shared.begin(), shared.end(), is_the_same)) {
      excluded.push_back(site->name);
      continue;
    }
    any_left = true;
    if (!std::all_of(files.begin(), files.end(), is_seen)) needs.staged_to.push_back(site->name);
  }
  if (!any_left && !shared.empty()) {
    throw BadRequest(fmt::format(
        "no site that the task may run on sees {}; a site's 'path_map' says what it sees",
        fmt::join(shared, " and ")));
  }
  needs.not_on.insert(needs.not_on.end(), excluded.begin(), excluded.end());
  std::sort(needs.not_on.begin(), needs.not_on.end());
  std::sort(needs.staged_to.begin(), needs.staged_to.end());
  needs.own_files = !needs.staged_to.empty() && recipe.filled != Filled::Nothing &&
                    std::any_of(recipe.inputs.begin(), recipe.inputs.end(),
                                [first = own.first()](const std::string& path) {
                                  return has_place(path, first);
                                });
}

}  // namespace hpcbatch
