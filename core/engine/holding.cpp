// Tasks that their user holds, those too that wait at pilots already.
#include "engine/engine.hpp"

#include <utility>

namespace hpcbatch {

void Engine::handle(const HoldAsked& event, Time now) {
  std::uint64_t changed = 0;
  std::uint64_t at_pilots = 0;
  for (const Selection& selection : event.tasks) {
    changed += tasks_.hold(selection, event.hold);
    const ArrayState* array = tasks_.find(selection.array);
    if (!array) continue;
    const IndexSet there =
        array->tasks.leased().intersection(selection.indices.value_or(array->tasks.all()));
    if (there.empty()) continue;
    if (event.hold) at_pilots += there.size();
    hold_at_pilots(selection.array, there, event.hold, now);
  }
  actions_.push_back(AnswerCount{event.request, changed, at_pilots});
  work_changed_ = true;
}

void Engine::hold_at_pilots(ArrayId array, const IndexSet& indices, bool hold, Time now) {
  for (auto& [id, pilot] : pilots_.all()) {
    bool any = false;
    for (const TaskId task : pilot.leases) {
      if (task.array != array || !indices.contains(task.index)) continue;
      Lease& lease = *pilots_.lease(task);
      lease.to_hold = hold && lease.state == Lease::State::Sent && !lease.has_left;
      any = any || (lease.to_hold && !lease.counted);
    }
    if (any) recall_backlog(pilot, now);
  }
}

/// Its pilot gave it back, or never had it.
void Engine::hold_what_came_back() {
  for (const auto& [array, indices] : std::exchange(came_back_held_, {}))
    tasks_.hold({array, indices}, true);
}

}  // namespace hpcbatch
