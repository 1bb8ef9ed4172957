#include "api/make/far_sites.hpp"

#include "api/read/bad_request.hpp"
#include "model/placeholders.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hpcbatch {
namespace {

/// Everything the task reads or writes that may have to be staged in or out.
std::vector<std::string> files_of(const wire::Start& start) {
  std::vector<std::string> files(start.inputs().begin(), start.inputs().end());
  for (const wire::Output& output : start.outputs()) files.push_back(output.destination());
  for (const std::string* path : {&start.standard_input(), &start.standard_output(),
                                  &start.standard_error(), &start.container()}) {
    if (path->starts_with('/')) files.push_back(*path);
  }
  return files;
}

Item first_of(const OwnItems& items) {
  return items.stored.empty() ? Item() : item_of(items.filled, items.stored.front());
}

bool sees(const Site& site, const std::string& path, const OwnItems& items) {
  // An index or an id says nothing of the folder.
  if (items.stored.empty() || !has_item(path, first_of(items)))
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

void note_far_sites(const std::vector<const Site*>& sites, const wire::Start& start,
                    const OwnItems& items, const std::vector<std::string>& shared, Needs& needs) {
  const std::vector<std::string> files = files_of(start);
  std::vector<std::string> excluded;
  bool any_left = sites.empty();
  for (const Site* site : sites) {
    if (!may_run_at(needs, site->name)) continue;
    const auto is_seen = [&](const std::string& path) { return sees(*site, path, items); };
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
  needs.own_files = !needs.staged_to.empty() && items.filled != Filled::Nothing &&
                    std::any_of(start.inputs().begin(), start.inputs().end(),
                                [first = first_of(items)](const std::string& path) {
                                  return has_place(path, first);
                                });
}

}  // namespace hpcbatch
