// Tasks whose choices (account, QOS, constraint, reservation) every batch system that they may go to
// refuses for good: they end with its words, instead of waiting for what only a person can mend.
#include "engine/engine.hpp"

namespace hpcbatch {

void Engine::end_refused_tasks(Time now) {
  if (!sites_.refuses_any_for_good()) return;
  ReadyQueue& queue = tasks_.queue();
  const std::vector<ClassId> waiting(queue.waiting().begin(), queue.waiting().end());
  for (const ClassId id : waiting) {
    if (queue.get(id).needs.tags.empty()) continue;
    const auto why = sites_.refusal_for_good(queue.get(id).needs);
    if (!why) continue;
    while (queue.get(id).ready != 0) tasks_.end_queued(queue.head_of(id), *why, now);
  }
  tasks_.tell_ended();
}

}  // namespace hpcbatch
