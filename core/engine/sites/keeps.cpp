#include "engine/sites/keeps.hpp"

#include "engine/sites/site_forecast.hpp"
#include "model/quantities.hpp"
#include "model/site.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace hpcbatch {
namespace {

// What was counted since is lost with the engine.
constexpr Duration kSavedEvery = std::chrono::minutes{10};
// Who cancels often submits again soon, and a place in a queue is dear.
constexpr Duration kPlaceHeld = std::chrono::minutes{5};

bool has_pilots(const AllocationEntry& entry) {
  return entry.facts.state == AllocationState::Running &&
         entry.facts.pilots_seen > entry.pilots_away;
}

bool still_waits(const AllocationEntry& entry) {
  return entry.facts.state == AllocationState::Queued && !entry.facts.cancel_asked;
}

/// Of a kept shape those that have pilots.
std::vector<const AllocationEntry*> present(const SiteTable& table, const std::string& site,
                                            const std::string& shape) {
  std::vector<const AllocationEntry*> found;
  for (const auto& [id, entry] : table.allocations()) {
    if (entry.facts.site == site && entry.facts.shape == shape && has_pilots(entry))
      found.push_back(&entry);
  }
  return found;
}

}  // namespace

std::optional<std::string> Keeps::find(const KeepAsked& event, SiteState*& its_site,
                                       ShapeState*& its_shape) {
  std::size_t found = 0;
  std::vector<std::string> known;
  for (SiteState& site : table_.sites_) {
    for (ShapeState& shape : site.shapes) {
      if (!shape.shape.made_for.empty()) continue;
      known.push_back(site.site.name + "/" + shape.shape.name);
      if (shape.shape.name != event.shape) continue;
      if (!event.site.empty() && event.site != site.site.name) continue;
      ++found;
      its_site = &site;
      its_shape = &shape;
    }
  }
  if (known.empty()) return "there is no site with shapes; name one in the configuration";
  if (found == 0) {
    return fmt::format("there is no shape {}{}{}; the configuration has {}", event.site,
                       event.site.empty() ? "" : "/", event.shape, fmt::join(known, ", "));
  }
  if (found > 1) {
    return fmt::format("the shape {} is there on {} sites; name one of them with --site",
                       event.shape, found);
  }
  return std::nullopt;
}

std::optional<std::string> Keeps::ask(const KeepAsked& event, Time now) {
  SiteState* site = nullptr;
  ShapeState* shape = nullptr;
  if (auto refusal = find(event, site, shape)) return refusal;
  if (event.allocations == 0) {
    if (!shape->keep)
      return fmt::format("no pilots of {}/{} are kept", site->site.name, event.shape);
    end(*site, *shape);
    return std::nullopt;
  }
  if (event.until <= now) return "the time until which pilots are to be kept is over already";
  for (const auto& [limit, word] : {std::pair{shape->shape.max_running, "max_running of the shape"},
                                    std::pair{site->site.max_running, "max_running of the site"}}) {
    if (limit != 0 && event.allocations > limit) {
      return fmt::format("{} allocations of {}/{} cannot be kept: {} is {}", event.allocations,
                         site->site.name, event.shape, word, limit);
    }
  }
  if (shape->keep) count(*site, *shape, now);
  Keep keep = shape->keep.value_or(
      Keep{.site = site->site.name, .shape = event.shape, .until = event.until, .since = now});
  keep.allocations = event.allocations;
  keep.until = event.until;
  shape->keep = keep;
  shape->keep_counted = shape->keep_saved = now;
  table_.actions_.push_back(SaveKeep{keep});
  return std::nullopt;
}

void Keeps::restore(const std::vector<Keep>& keeps, Time now) {
  for (const Keep& keep : keeps) {
    for (SiteState& site : table_.sites_) {
      for (ShapeState& shape : site.shapes) {
        if (site.site.name != keep.site || shape.shape.name != keep.shape) continue;
        shape.keep = keep;
        shape.keep_counted = now;
      }
    }
  }
}

void Keeps::end(SiteState& site, ShapeState& shape) {
  table_.actions_.push_back(
      SaveKeep{{.site = site.site.name, .shape = shape.shape.name, .allocations = 0}});
  shape.keep.reset();
  shape.was_kept = true;
}

void Keeps::end_all() {
  for (SiteState& site : table_.sites_) {
    for (ShapeState& shape : site.shapes)
      if (shape.keep) end(site, shape);
  }
}

void Keeps::count(SiteState& site, ShapeState& shape, Time now) {
  Keep& keep = *shape.keep;
  const Duration time = std::min(now, keep.until) - std::min(shape.keep_counted, keep.until);
  shape.keep_counted = now;
  const auto there =
      static_cast<std::int64_t>(present(table_, site.site.name, shape.shape.name).size());
  const std::int64_t more = there - static_cast<std::int64_t>(keep.allocations);
  keep.missing += std::max<std::int64_t>(0, -more) * time;
  keep.beyond += std::max<std::int64_t>(0, more) * time;
  if (more != shape.keep_more || now - shape.keep_saved >= kSavedEvery) {
    table_.actions_.push_back(SaveKeep{keep});
    shape.keep_saved = now;
  }
  shape.keep_more = more;
}

bool Keeps::is_of_concern() const {
  return keeps_any(table_) || table_.any_told_to_stay_;
}

std::vector<AllocationId> Keeps::left_queued() const {
  std::vector<AllocationId> left;
  for (const auto& [id, entry] : table_.allocations_) {
    const ShapeState* shape = table_.shape_state(entry.facts);
    if (still_waits(entry) && shape && shape->was_kept && !shape->keep) left.push_back(id);
  }
  return left;
}

std::vector<AllocationId> Keeps::unused(Duration without_work) const {
  std::vector<AllocationId> unused;
  for (const auto& [id, entry] : table_.allocations_) {
    const ShapeState* shape = table_.shape_state(entry.facts);
    if (!still_waits(entry) || !shape || shape->keep) continue;
    const Duration idle = table_.site(entry.facts.site)->site.idle_after;
    if (without_work >= std::max(kPlaceHeld, idle)) unused.push_back(id);
  }
  return unused;
}

bool Keeps::on_time(Time now) {
  bool any_ended = false;
  for (SiteState& site : table_.sites_) {
    for (ShapeState& shape : site.shapes) {
      if (!shape.keep) continue;
      count(site, shape, now);
      if (shape.keep->until > now) continue;
      end(site, shape);
      any_ended = true;
    }
  }
  return any_ended;
}

std::map<AllocationId, Time> staying(const SiteTable& table, Time now) {
  std::map<AllocationId, Time> stay;
  const SiteForecast forecast(table, now);
  for (const SiteState& site : table.sites()) {
    for (const ShapeState& shape : site.shapes) {
      if (!shape.keep) continue;
      auto there = present(table, site.site.name, shape.shape.name);
      std::sort(there.begin(), there.end(), [&](const auto* one, const auto* other) {
        return forecast.left(*one) > forecast.left(*other);
      });
      there.resize(std::min<std::size_t>(there.size(), shape.keep->allocations));
      for (const AllocationEntry* entry : there) stay[entry->facts.id] = shape.keep->until;
    }
  }
  return stay;
}

bool keeps_any(const SiteTable& table) {
  return std::any_of(table.sites().begin(), table.sites().end(), [](const SiteState& site) {
    return std::any_of(site.shapes.begin(), site.shapes.end(),
                       [](const ShapeState& shape) { return shape.keep.has_value(); });
  });
}

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
