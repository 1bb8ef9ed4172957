// Arrays of which more tasks fail than their user wants to see.
#include "engine/engine.hpp"

#include <fmt/format.h>

namespace hpcbatch {

void TaskTable::count_failures(ArrayState& array, const IndexSet& indices, Failure failure) {
  const std::uint32_t bound = array.terms->give_up_at;
  if (bound == 0 || !is_a_failure_of_its_own(failure)) return;
  IndexSet& failed = array.make_rare().failed;
  failed.add(indices);
  if (failed.size() >= bound) to_give_up_.push_back(array.id);
}

std::optional<std::string> ArrayState::why_given_up() const {
  const std::uint32_t bound = terms->give_up_at;
  if (bound == 0 || !rare || rare->failed.size() < bound) return std::nullopt;
  return fmt::format("{} of submission {} failed, and at most {} may", rare->failed.size(),
                     id.value, bound - 1);
}

IndexSet Engine::started(const ArrayState& array) const {
  IndexSet running;
  for (const IndexRange& range : array.tasks.leased().ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const auto index = static_cast<std::uint32_t>(i);
      if (pilots_.lease({array.id, index})->state != Lease::State::Sent)
        running.add(IndexRange{index, index});
    }
  }
  return running;
}

std::string Engine::why_cancelled(TaskId task) const {
  const ArrayState* array = tasks_.find(task.array);
  if (array && array->rare && array->rare->unread_for) return why_unread(*array->rare->unread_for);
  const auto why = array ? array->why_given_up() : std::nullopt;
  return why ? "cancelled, because " + *why : "cancelled by user";
}

void Engine::give_up_arrays(Time now) {
  for (const ArrayId id : tasks_.to_give_up()) {
    const ArrayState* array = tasks_.find(id);
    const auto why = array ? array->why_given_up() : std::nullopt;
    if (!why) continue;
    IndexSet rest = array->tasks.open();
    if (!array->terms->gives_up_running) rest.remove(started(*array));
    cancel_tasks({{id, rest}}, "cancelled, because " + *why, now);
  }
}

}  // namespace hpcbatch
