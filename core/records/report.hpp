// Sums of usage, put together as a report wants them.
#pragma once

#include "records/advice.hpp"
#include "records/tally.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::records {

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
