#include "engine/state/terms.hpp"

#include <algorithm>
#include <tuple>

namespace hpcbatch {
namespace {

template <class Has>
auto said(const Has& a) {
  return std::tie(a.priority, a.retries, a.max_running, a.give_up_at, a.gives_up_running,
                  a.streams_input, a.within, a.course, a.needs);
}

auto said(const std::shared_ptr<const Terms>& terms) {
  return said(*terms);
}

}  // namespace

template <class A, class B>
bool TermsPool::Less::operator()(const A& a, const B& b) const {
  return said(a) < said(b);
}

std::shared_ptr<const Terms> TermsPool::of(const NewArray& array) {
  const auto at = pool_.find(array);
  if (at != pool_.end()) return *at;
  return *pool_
              .insert(std::make_shared<const Terms>(
                  Terms{.needs = array.needs,
                        .priority = array.priority,
                        .retries = array.retries,
                        .max_running = array.max_running,
                        .give_up_at = array.give_up_at,
                        .gives_up_running = array.gives_up_running,
                        .streams_input = array.streams_input,
                        .within = array.within,
                        .course = array.course,
                        .in_class = queue_.class_for(with_files_at(array.needs, {}))}))
              .first;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is one of those that are counted
void TermsPool::release(std::shared_ptr<const Terms> terms) {
  // The pool's own and this one.
  if (terms.use_count() == 2) pool_.erase(terms);
}

namespace {

// Each class has a budget of its own, so that a bad day of the site does not eat what is meant for
// another.
constexpr std::uint8_t kFreeRetriesPerClass = 20;
constexpr std::uint32_t kUnexplainedDeaths = 3;
// Nodes that are in doubt.
constexpr std::uint8_t kFreeRetriesElsewhere = 3;

}  // namespace

Verdict judge(const Ending& ending, const TaskHistory& history, std::uint32_t retries,
              bool streams_input, std::optional<Duration> longest) {
  if (ending.failure == Failure::Ok || ending.failure == Failure::Cancelled ||
      ending.failure == Failure::DeadlineMissed)
    return Verdict::Final;
  if (streams_input) return Verdict::Final;
  if (ending.failure == Failure::Requeued) return Verdict::RetryFree;
  if (ending.runs_once) {
    const bool is_its_own = !is_not_the_tasks_fault(ending.failure);
    return is_its_own && history.charged < retries ? Verdict::RetryCharged : Verdict::Final;
  }
  if (ending.guess_failed && !history.guess_failed) return Verdict::RetryFree;
  if (ending.doubted && history.elsewhere < kFreeRetriesElsewhere &&
      !is_not_the_tasks_fault(ending.failure)) {
    return Verdict::RetryFree;
  }
  if (!is_not_the_tasks_fault(ending.failure)) {
    return history.charged < retries ? Verdict::RetryCharged : Verdict::Final;
  }
  if (ending.unexplained && ending.alone && history.unexplained_deaths + 1 >= kUnexplainedDeaths)
    return Verdict::SetAside;
  if (ending.failure == Failure::PilotWalltime && ending.had && longest &&
      more_than(*ending.had) > *longest) {
    // With as much time again it may go on from what it has saved.
    return history.charged < retries ? Verdict::RetryCharged : Verdict::Final;
  }
  const std::uint8_t used = history.free[static_cast<std::size_t>(ending.failure)];
  return used < kFreeRetriesPerClass ? Verdict::RetryFree : Verdict::Final;
}

void note_longest(TaskHistory& history, Duration longest) {
  if (history.needs_more_than)
    history.needs_more_than = std::min(*history.needs_more_than, longest - longest / 50);
}

}  // namespace hpcbatch
