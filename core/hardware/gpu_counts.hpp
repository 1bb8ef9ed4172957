// How many GPUs of which kinds, as people write it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

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
