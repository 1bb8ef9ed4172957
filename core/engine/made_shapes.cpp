// Shapes that are made from those of the configuration for what tasks choose of their batch jobs.
#include "engine/site_book.hpp"

#include "model/choices.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace hpcbatch {

bool SiteBook::make_shapes(SiteState& site, const std::vector<std::string>& choices) {
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

bool SiteBook::make_shapes_for(const Needs& needs) {
  if (needs.tags.empty()) return true;
  bool all = true;
  for (SiteState& state : sites_) {
    if (!may_run_at(needs, state.site.name)) continue;
    if (const auto choices = choices_of(needs, state.site); !choices.empty())
      all = make_shapes(state, choices) && all;
  }
  return all;
}

void SiteBook::keep_shapes_for(const std::vector<const Needs*>& needs) {
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

std::vector<bool> SiteBook::fits_shapes(const Needs& needs) const {
  std::vector<bool> fits;
  for (const SiteState& state : sites_) {
    const std::vector<std::string> choices = choices_of(needs, state.site);
    for (const Shape& shape : state.site.shapes) {
      fits.push_back(may_run_at(needs, state.site.name) &&
                     could_run(needs, choices.empty() ? shape : made_for(shape, choices)));
    }
  }
  return fits;
}

/// One that was made for what may not be chosen any more still counts for the shape that it was
/// made from.
bool SiteBook::counts_for(const Allocation& facts, const ShapeState& shape) const {
  if (facts.shape == shape.shape.name) return true;
  return shape.shape.made_for.empty() && configured_name(facts.shape) == shape.shape.name &&
         !shape_state(facts);
}

}  // namespace hpcbatch
