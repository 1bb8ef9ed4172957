#include "engine/sites/made_shapes.hpp"

#include "model/choices.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace hpcbatch {

bool make_shapes(SiteState& site, const std::vector<std::string>& choices) {
  bool all = true;
  std::set<std::vector<std::string>> sets;
  for (const ShapeState& shape : site.shapes) sets.insert(shape.shape.made_for);
  for (std::size_t i = 0; i < site.site.shapes.size(); ++i) {
    Shape shape = made_for(site.site.shapes[i], choices);
    const bool is_there =
        std::any_of(site.shapes.begin(), site.shapes.end(),
                    [&](const ShapeState& other) { return other.shape.name == shape.name; });
    if (is_there) continue;
    if (!sets.contains(shape.made_for) && sets.size() > kMostChoiceSets) {
      all = false;
      continue;
    }
    sets.insert(shape.made_for);
    // Until it has waits of its own; the configuration's come first.
    site.shapes.push_back({.shape = std::move(shape), .waits = site.shapes[i].waits});
  }
  return all;
}

bool MadeShapes::make_for(const Needs& needs) {
  if (needs.tags.empty()) return true;
  bool all = true;
  for (SiteState& state : sites_) {
    if (!may_run_at(needs, state.site.name)) continue;
    if (const auto choices = choices_of(needs, state.site); !choices.empty())
      all = make_shapes(state, choices) && all;
  }
  return all;
}

void MadeShapes::keep_for(const std::vector<const Needs*>& needs) {
  for (SiteState& state : sites_) {
    std::set<std::vector<std::string>> chosen;
    for (const Needs* one : needs) {
      if (!one->tags.empty() && may_run_at(*one, state.site.name))
        chosen.insert(choices_of(*one, state.site));
    }
    std::set<std::string> in_use;
    for (const auto& [id, entry] : allocations_) {
      if (entry.facts.site == state.site.name) in_use.insert(entry.facts.shape);
    }
    std::erase_if(state.shapes, [&](const ShapeState& shape) {
      return !shape.shape.made_for.empty() && !chosen.contains(shape.shape.made_for) &&
             !in_use.contains(shape.shape.name);
    });
  }
}

std::vector<bool> fits_shapes(const std::vector<SiteState>& sites, const Needs& needs) {
  std::vector<bool> fits;
  for (const SiteState& state : sites) {
    const std::vector<std::string> choices = choices_of(needs, state.site);
    for (const Shape& shape : state.site.shapes) {
      fits.push_back(may_run_at(needs, state.site.name) &&
                     could_run(needs, choices.empty() ? shape : made_for(shape, choices)));
    }
  }
  return fits;
}

}  // namespace hpcbatch
