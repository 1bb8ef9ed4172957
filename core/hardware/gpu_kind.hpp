// What is known of a kind of GPU by its name alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// How many GPUs of which kinds, as people write it.

/// `2`, `0.25`, `a100`, `a100:2`, `a100|v100:2`: the kinds (empty: any) and how many.  Throws
/// std::invalid_argument that says what is wrong.
std::pair<std::string, double> parse_gpus(std::string_view text);

/// What may stand in a map that says what GPUs must be.
extern const std::vector<std::string> kGpuTerms;
bool is_gpu_term(std::string_view word);

/// Why these are no kinds of GPU, one or several with `|` between; nothing where they may be some.
std::optional<std::string> wrong_gpu_kinds(std::string_view kinds);

/// Why so many cannot be one task's: it has whole ones, or a part of one.
std::optional<std::string> wrong_gpu_count(double count);

}  // namespace hpcbatch
