#include "pilot/held_leases.hpp"

#include "pilot/policy/engine_messages.hpp"

#include <utility>

namespace hpcbatch::pilot {

void HeldLeases::keep_environments(const wire::ToPilot& message) {
  for (const wire::Environment& environment : message.environments()) {
    auto base = std::make_shared<BaseEnvironment>(base_environment(environment));
    setup_.apply(*base);
    environments_[environment.number()] = std::move(base);
  }
}

std::shared_ptr<const BaseEnvironment> HeldLeases::environment(std::uint32_t number) const {
  const auto at = environments_.find(number);
  return at == environments_.end() ? nullptr : at->second;
}

void HeldLeases::keep(wire::ToPilot& message, const std::vector<bool>& is_new) {
  auto next = is_new.begin();
  for (wire::Start& said : *message.mutable_start()) {
    const auto start = std::make_shared<const wire::Start>(std::move(said));
    const AttemptId first = from_wire(start->attempt());
    for (std::uint32_t i = 0; i < leased_by(*start); ++i) {
      if (!*next++) continue;
      leases_[neighbour(first, i)] = {start, environment(start->environment()),
                                      environment(start->foreseen_environment()), start->follow()};
    }
  }
}

HeldLease HeldLeases::take(const AttemptId& id) {
  const auto at = leases_.find(id);
  HeldLease lease = std::move(at->second);
  leases_.erase(at);
  return lease;
}

bool HeldLeases::follow_from_start(const AttemptId& id) {
  const auto at = leases_.find(id);
  if (at == leases_.end()) return false;
  at->second.follow = true;
  return true;
}

}  // namespace hpcbatch::pilot
