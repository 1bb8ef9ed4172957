// What is known of a kind of GPU by its name alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

struct GpuKind {
  std::uint64_t memory{0};  ///< bytes, as its maker gives them
  unsigned capability{0};   ///< of CUDA, times ten: 80 is 8.0
  friend bool operator==(const GpuKind&, const GpuKind&) = default;
};

/// By the name under which a batch system or its driver has it: `a100`, `a100_80gb`,
/// `NVIDIA A100-SXM4-40GB`, `tesla_v100`.  Nothing for one that is not known.  Sources: NVIDIA, "CUDA
/// GPUs - Compute Capability", and the data sheets.
std::optional<GpuKind> gpu_kind(std::string_view name);

/// Whether what a driver calls a GPU is of what a site calls a kind: `NVIDIA A100-SXM4-40GB` is of
/// `a100` and `a100_40gb`, an `L40` of no `l4`.
bool is_gpu_called(std::string_view name, std::string_view kind);

/// What a task asks of a GPU beside its kind.
struct GpuTerms {
  std::uint64_t memory{0};  ///< bytes, at least
  unsigned capability{0};   ///< at least
  bool any() const { return memory != 0 || capability != 0; }
  friend bool operator==(const GpuTerms&, const GpuTerms&) = default;
};
bool meets(const GpuKind& kind, const GpuTerms& terms);

/// `8.0` -> 80; nothing where it is no such number.
std::optional<unsigned> parse_capability(std::string_view text);
std::string show_capability(unsigned capability);

}  // namespace hpcbatch
