// Lines of SLURM's answers taken apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::slurm {

/// Those between `|`: the first `count - 1`, and the rest of the line as the last, which may hold
/// anything; none where there are fewer.
std::vector<std::string> fields(std::string_view line, std::size_t count);
/// All of them; one that is empty where the text is.
std::vector<std::string> split(std::string_view text, char by);

}  // namespace hpcbatch::slurm
