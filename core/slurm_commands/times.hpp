// Times and amounts as Slurm's commands write and read them.
#pragma once

#include <cstdint>
#include <string>

namespace hpcbatch::slurm_commands {

/// `2026-01-31T12:00:05`, or as SLURM_TIME_FORMAT says (a format of strftime(3)); local time.
std::string moment(double seconds, const std::string& format);
/// As squeue has it: `0:05`, `1:02:03`, `2-01:02:03`.
std::string short_duration(double seconds);
/// As sacct has it: `00:00:05`, `2-01:02:03`.
std::string long_duration(double seconds);
/// `500M`, `4G`, `1.50G` of bytes: in megabytes, or in gigabytes where it is a whole number of them.
std::string memory_text(std::uint64_t bytes);

}  // namespace hpcbatch::slurm_commands
