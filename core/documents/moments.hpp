// Moments as people and batch systems write them, in local time.
#pragma once

#include <optional>
#include <string_view>

namespace hpcbatch {

/// `2026-01-31`, `2026-01-31T12:00[:05]`, `0131`, `01/31/26`, `01/31-12:00`, `12:00[:05]`, `5:30pm`,
/// `today`, `tomorrow`, `midnight`, `noon`, `fika`, `teatime`, `now`, `uts1700000000`, and each of
/// the words with `+` or `-` and a time behind it, as `now+1hour`; of a day and a time of day both, as
/// `tomorrow 10:00`.  Words are in any case.  In seconds since 1970, as `now`.  Nothing where it is
/// none of these.
std::optional<double> parse_moment(std::string_view text, double now);

/// The same of one that is to come (sbatch(1), --begin): a time of day that is over is tomorrow's, a
/// date without a year next year's.
std::optional<double> parse_coming_moment(std::string_view text, double now);

}  // namespace hpcbatch
