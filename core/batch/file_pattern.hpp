// Names of files with signs that a batch system fills in: `out.%A_%4a`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch::batch {

/// Begins a word of Terms::options that is such a name, and not a path of ours.
inline constexpr char kPatternMark = '\x01';

/// What is known of a job where it is submitted.
struct PatternNames {
  std::string name, user;
  bool is_array{false};
};

/// sbatch(1), "filename pattern": the path with places of ours, {number}, {array_number}, {index}
/// and {node}; its own braces stand for themselves.  Nothing where it asks for what nobody knows here.
std::optional<std::string> slurm_file(std::string_view pattern, const PatternNames& names);

/// Whether slurm_file knows all that it asks for.
bool is_slurm_file(std::string_view pattern);

}  // namespace hpcbatch::batch
