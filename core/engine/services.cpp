// Services of pilots: which live, which are about to, and for which tasks they will be wanted.
#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {

void Engine::handle(const ServicesWarm& event, Time /*now*/) {
  PilotState* pilot = pilots_.find(event.pilot);
  if (!pilot) return;
  pilot->warm = {event.services.begin(), event.services.end()};
  pilot->starting = {event.starting.begin(), event.starting.end()};
  // What waited for one of them may fit now.
  pilot->nothing_fits.reset();
}

/// Its tasks wait without a lease: what it has room for, others may have meanwhile.
bool Engine::waits_for_service(const PilotState& pilot, ClassId id) const {
  return !pilot.starting.empty() && pilot.starting.contains(tasks_.queue().get(id).needs.service);
}

std::optional<ArrayId> Engine::served_after(ArrayId before) const {
  const ArrayState* first = tasks_.find(before);
  const std::vector<ArrayId>* dependants = tasks_.dependants(before);
  if (!first || !dependants) return std::nullopt;
  const bool is_alone = first->tasks.all().size() == 1;
  for (const ArrayId id : *dependants) {
    const ArrayState* next = tasks_.find(id);
    if (!next || next->terms->needs.service.empty() || next->tasks.blocked().empty()) continue;
    // One task behind thousands is not worth a service at each of their pilots.
    const auto [open, end] = next->open().equal_range(before);
    const bool is_in_pairs = std::any_of(open, end, [](const auto& entry) {
      return entry.second.on.kind == Dependency::Kind::EachSuccess;
    });
    if (is_alone || is_in_pairs) return id;
  }
  return std::nullopt;
}

}  // namespace hpcbatch
