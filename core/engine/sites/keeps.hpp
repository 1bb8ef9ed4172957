// Shapes of which pilots are kept, and shapes that are made for what tasks choose of their batch
// jobs.
#pragma once

#include "engine/sites/site_table.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

// Shapes of which pilots are kept, whatever there is for them to do.

class Keeps {
 public:
  explicit Keeps(SiteTable& table) : table_(table) {}

  /// Why it cannot be done, in one sentence; nothing: it is so from now on.
  std::optional<std::string> ask(const KeepAsked& event, Time now);
  void restore(const std::vector<Keep>& keeps, Time now);
  /// Counts the time in which too few or too many were there, and ends what is over; true: something
  /// was.
  bool on_time(Time now);
  void end_all();
  /// Whether pilots are to stay, or have been told to.
  bool is_of_concern() const;
  /// Allocations that wait for pilots of shapes that are kept no more.
  std::vector<AllocationId> left_queued() const;
  /// Those that wait for nobody, after so long without any work.
  std::vector<AllocationId> unused(Duration without_work) const;

  void told(bool any_stays) { table_.any_told_to_stay_ = any_stays; }

 private:
  /// Why there is none to be found; nothing: there they are.
  std::optional<std::string> find(const KeepAsked& event, SiteState*& its_site,
                                  ShapeState*& its_shape);
  void end(SiteState& site, ShapeState& shape);
  void count(SiteState& site, ShapeState& shape, Time now);

  SiteTable& table_;
};

/// Allocations of which a pilot is there that is to stay, with the time until which; of a kept shape
/// those that end last.
std::map<AllocationId, Time> staying(const SiteTable& table, Time now);
/// Whether any shape is kept.
bool keeps_any(const SiteTable& table);

// Shapes that are made from those of the configuration for what tasks choose of their batch jobs.

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
