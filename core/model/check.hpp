// What the compiler and the running program hold: no mistake of ours spreads, and no case of a
// closed set is forgotten.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

// What is done when we ourselves are wrong: say where, and stop before the mistake spreads.

#define HPCBATCH_CHECK(condition)                                                              \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      std::fprintf(stderr, "hpcbatch: internal error: %s does not hold (%s:%d)\n", #condition, \
                   __FILE__, __LINE__);                                                        \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)

namespace hpcbatch {

// Exhaustive visits of closed sets: a new alternative breaks the compile wherever it matters.

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
