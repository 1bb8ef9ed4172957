// Adds up runs by day, kind, site and client, and by kind, until they are kept.
#pragma once

#include "records/usage.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace hpcbatch::records {

/// What sums are kept for.
struct Cell {
  std::int32_t day{0};  ///< since 1970, UTC, on which it ended
  std::string kind, site, client;
  friend auto operator<=>(const Cell&, const Cell&) = default;
};

std::int32_t day_of(Time time);

class Tally {
 public:
  /// Those of one array, at one site: to be asked for again only where one of these changes.
  struct Group {
    const std::string& kind;
    const std::string& site;
    const std::string& client;
    const Needs& needs;
  };
  void add(const Group& group, const Run& run, std::int32_t day);

  const std::map<Cell, Usage>& usage() const { return usage_; }
  const std::map<std::string, Profile>& profiles() const { return profiles_; }

 private:
  std::map<Cell, Usage> usage_;
  std::map<std::string, Profile> profiles_;
  // Neighbours are alike as a rule.
  Cell last_;
  Usage* last_usage_{nullptr};
  Profile* last_profile_{nullptr};
};

/// How much of what was learned so long ago still counts: half of it after 30 days.
double weight_after(Duration age);

}  // namespace hpcbatch::records
