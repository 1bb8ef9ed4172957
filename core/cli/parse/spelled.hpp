// The small languages of values on the command line: ids, arrays, assignments, points in time.  Those
// of a task's keys are read by documents/task_values.hpp.
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

// How far people look back, and ahead.

/// When that was, in seconds since 1970: `2h` ago, `today` and `yesterday` and `monday` from their
/// first minute on, `2026-11-25`, `2026-11-25 14:30`; of local time, and never after `now`.  Throws
/// std::invalid_argument with one sentence.
std::time_t parse_since(const std::string& text, std::time_t now);
std::time_t since_now(const std::string& text);
/// Seconds, more than 0.  Throws as that.
double seconds_of(const std::string& text);
/// When that will be: `8h` from now, the next `18:00`, `2026-11-28`, `2026-11-28 18:00`; of local
/// time, and after `now`.  Throws as that.
std::time_t parse_until(const std::string& text, std::time_t now);

}  // namespace hpcbatch
