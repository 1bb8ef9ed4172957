// Which changes of what people ask for would save most.
#pragma once

#include "records/usage.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::records {

/// Fewer runs say nothing.
inline constexpr double kFewestRuns = 10;

/// One kind, over the time that a report is about.
struct KindUse {
  std::string kind;
  Usage usage;
  Profile profile;
};

struct Advice {
  enum class What : std::uint8_t { Memory, Cpus, Gpus };
  std::string kind;
  What what{};
  double asked{0};  ///< bytes, cpus or GPUs of one task, on the average
  double enough{0};
  double saves{0};  ///< byte-seconds, cpu-seconds or GPU-seconds of the usage
  double runs{0};   ///< that say so
};

/// What saves most first.  Memory, cpus and GPUs are compared as shares of all that was asked for of
/// them.
std::vector<Advice> advice_for(const std::vector<KindUse>& kinds, std::size_t most);

/// Bytes that do for all runs of that kind that were seen, with a fifth more, rounded up so that it reads
/// well; 0 where too few have been seen.
double memory_enough(const Profile& profile);
/// The same for 95 of 100.
double memory_for_most(const Profile& profile);
/// What 95 of 100 kept busy: whole cpus, or halves and quarters below one.
double cpus_enough(const Profile& profile);
/// Which part of a GPU, a half, a quarter or an eighth, is expected to do more beside others than
/// alone, by how busy 95 of 100 kept it, and had memory for all; 0 where that is not known, or none
/// is.
double gpus_enough(const Profile& profile);

// Sums of usage, put together as a report wants them.

enum class By : std::uint8_t { Kind, Site, Client, Day };
std::optional<By> parse_by(std::string_view word);

using UsageRows = std::vector<std::pair<Cell, Usage>>;

Usage sum_of(const UsageRows& rows);
/// One for each kind, site, client or day; days in their order as `2026-11-26`, of the others what
/// asked for most cpu time first.
std::vector<std::pair<std::string, Usage>> put_together(const UsageRows& rows, By by);
/// Each kind with its usage and its profile, where there is one.
std::vector<KindUse> kinds_of(const UsageRows& rows,
                              const std::vector<std::pair<std::string, Profile>>& profiles);

/// `2026-11-26`.
std::string show_day(std::int32_t day);

}  // namespace hpcbatch::records
