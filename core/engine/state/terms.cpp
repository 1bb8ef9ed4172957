#include "engine/state/terms.hpp"

#include <tuple>

namespace hpcbatch {
namespace {

template <class Has>
auto said(const Has& a) {
  return std::tie(a.priority, a.retries, a.max_running, a.give_up_at, a.gives_up_running,
                  a.streams_input, a.within, a.needs);
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
                        .in_class = queue_.class_for(with_files_at(array.needs, {}))}))
              .first;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is one of those that are counted
void TermsPool::release(std::shared_ptr<const Terms> terms) {
  // The pool's own and this one.
  if (terms.use_count() == 2) pool_.erase(terms);
}

}  // namespace hpcbatch
