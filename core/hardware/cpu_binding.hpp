// Which of a node's cpus a task is bound to, where whole ones are.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hpcbatch {

enum class CpuBind : std::uint8_t {
  Compact,  ///< close together: one node of memory where they fit into one
  Scatter,  ///< over nodes of memory and cores, as far as there are
  Numa,     ///< one node of memory, or not now
  None,     ///< any
};
inline constexpr std::array<std::string_view, 4> kCpuBindWords{"compact", "scatter", "numa",
                                                               "none"};

struct CpuBinding {
  CpuBind bind{CpuBind::Compact};
  std::uint32_t threads_per_core{0};  ///< of those it has at most so many are used; 0: all
  friend bool operator==(const CpuBinding&, const CpuBinding&) = default;
};

/// As it is kept and sent; what a newer program says is as if nothing were said.
constexpr CpuBind cpu_bind_of(std::uint32_t number) {
  return number < kCpuBindWords.size() ? static_cast<CpuBind>(number) : CpuBind::Compact;
}

}  // namespace hpcbatch
