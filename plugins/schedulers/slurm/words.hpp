// Lines of SLURM's answers taken apart.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::slurm {

/// Those between `|`: the first `count - 1`, and the rest of the line as the last, which may hold
/// anything; none where there are fewer.
std::vector<std::string> fields(std::string_view line, std::size_t count);
/// All of them; one that is empty where the text is.
std::vector<std::string> split(std::string_view text, char by);
/// Seconds since 1970, which SLURM_TIME_FORMAT=%s asks for; nothing for "Unknown", "None" and the
/// words of versions that know nothing of that.
std::optional<std::chrono::seconds> read_moment(std::string_view text);

}  // namespace hpcbatch::slurm
