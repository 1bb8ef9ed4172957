// Which try at which task: the pilot's key for everything that it holds.
#pragma once

#include "wire/wire.pb.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <sys/types.h>

namespace hpcbatch::pilot {

struct AttemptId {
  std::uint64_t array{};
  std::uint32_t index{};
  std::uint32_t number{};
  std::uint64_t epoch{};
  friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
};

inline AttemptId from_wire(const wire::Attempt& a) {
  return {a.array(), a.index(), a.number(), a.epoch()};
}

inline void to_wire(const AttemptId& id, wire::Attempt* out) {
  out->set_array(id.array);
  out->set_index(id.index);
  out->set_number(id.number);
  out->set_epoch(id.epoch);
}

/// Of neighbours that are leased alike: index and epoch count on.
inline AttemptId neighbour(AttemptId first, std::uint32_t place) {
  first.index += place;
  first.epoch += place;
  return first;
}

struct AttemptHash {
  std::size_t operator()(const AttemptId& id) const {
    std::uint64_t value = id.array * 0x9E3779B97F4A7C15U;
    value ^= (std::uint64_t{id.index} << 32) + id.number + (value >> 29);
    value *= 0xBF58476D1CE4E5B9U;
    value ^= id.epoch + (value >> 32);
    return value;
  }
};

// What came of starting a process.

struct Spawned {
  enum class Step { None, Start, ControlGroup, Directory, Program };
  pid_t pid{-1};  // -1: nothing was started
  Step failed_at{Step::None};
  int error{0};  // errno of that
};

}  // namespace hpcbatch::pilot
