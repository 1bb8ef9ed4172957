// Exhaustive visits of closed sets: a new alternative breaks the compile wherever it matters.
#pragma once

#include <utility>
#include <variant>

namespace hpcbatch {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;

template <class Variant, class... Cases>
decltype(auto) match(Variant&& variant, Cases&&... cases) {
  return std::visit(Overload{std::forward<Cases>(cases)...}, std::forward<Variant>(variant));
}

}  // namespace hpcbatch
