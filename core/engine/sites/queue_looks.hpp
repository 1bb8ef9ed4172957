// When to look at what others have in the queues, and what that said.
#pragma once

#include "engine/sites/site_table.hpp"

#include <optional>

namespace hpcbatch {

class QueueLooks {
 public:
  explicit QueueLooks(SiteTable& table) : table_(table) {}

  /// Asks for those that are due: of sites where something waits or is kept.
  void on_time(Time now);
  void foreseen(const QueueForeseen& event, Time now);
  static std::optional<Time> next_wake(const SiteTable& table);

 private:
  SiteTable& table_;
};

}  // namespace hpcbatch
