// The small languages of values on the command line: ids, arrays, amounts of GPUs, assignments,
// points in time.
#pragma once

#include "cli/parse/command.hpp"

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

// The small languages of the command line's values: ids, arrays, amounts of GPUs, assignments.

// Each throws std::invalid_argument with one sentence where the text is not well formed.

/// `12`, `12.345`, `12.1-99`, `12.3,7-9`, the same of `last`, or `12-15`; returned as it came.
const std::string& checked_id(const std::string& text);
/// Of `12-15`, several submissions, each; of all else itself.
std::vector<std::string> submissions_in(const std::string& id);
/// The shortest words for all of them, as `12-15 17`.
std::string shortest_words(const std::vector<std::string>& ids);
/// `1-100:5%20`.
ArrayOption parse_array(std::string_view text);
/// `soon,fail=3`, `now,fail=10%`, as GNU parallel's; nothing for `never`.
std::optional<HaltOption> parse_halt(std::string_view text);
/// How many may fail.
HaltOption parse_max_fails(std::string_view text);
/// `NAME=VALUE`; `flag` is named in the message.
std::pair<std::string, std::string> parse_assignment(std::string_view text, std::string_view flag);
/// `512M`, `8G`, bytes; and `90s`, `1h30m`, `01:30:00`, seconds; each returned as it came.
const std::string& checked_size(const std::string& text);
const std::string& checked_duration(const std::string& text);
/// A whole number from `low` to `high`.
std::int64_t parse_whole(std::string_view text, std::int64_t low, std::int64_t high);
/// More than 0.
double parse_cpus(std::string_view text);
/// A finite number that is not negative.
double parse_amount(std::string_view text);

// How far people look back, and ahead.

/// When that was, in seconds since 1970: `2h` ago, `today` and `yesterday` and `monday` from their
/// first minute on, `2026-11-25`, `2026-11-25 14:30`; of local time, and never after `now`.  Throws
/// std::invalid_argument with one sentence.
std::time_t parse_since(const std::string& text, std::time_t now);
/// When that will be: `8h` from now, the next `18:00`, `2026-11-28`, `2026-11-28 18:00`; of local
/// time, and after `now`.  Throws as that.
std::time_t parse_until(const std::string& text, std::time_t now);

}  // namespace hpcbatch

namespace hpcbatch::detail {

// What the command line says of GPUs, and of ways to run a task that differ by them.

/// A value of `--gpus`, into what was said before: of any kind, or by kind.  Throws
/// std::invalid_argument.
template <class Asked>
void add_gpus(const std::string& text, Asked& asked);
/// A value of `--gpus` as it is.  Throws std::invalid_argument.
std::string checked_gpus(const std::string& text);
/// `8.0`.  Throws std::invalid_argument.
std::string checked_capability(const std::string& text);
/// `gpus=a100:2,cpus=4`.  Throws std::invalid_argument.
WayOption parse_way(const std::string& text);

}  // namespace hpcbatch::detail
