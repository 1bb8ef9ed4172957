// When to look at what others have in the queues, and what that said.
#pragma once

#include "engine/sites/site_book.hpp"

#include <optional>

namespace hpcbatch {

class QueueLooks {
 public:
  explicit QueueLooks(SiteBook& book) : book_(book) {}

  /// Asks for those that are due: of sites where something waits or is kept.
  void on_time(Time now);
  void foreseen(const QueueForeseen& event, Time now);
  static std::optional<Time> next_wake(const SiteBook& book);

 private:
  SiteBook& book_;
};

}  // namespace hpcbatch
