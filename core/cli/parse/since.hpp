// How far people look back, and ahead.
#pragma once

#include <ctime>
#include <string>

namespace hpcbatch {

/// When that was, in seconds since 1970: `2h` ago, `today` and `yesterday` and `monday` from their
/// first minute on, `2026-11-25`, `2026-11-25 14:30`; of local time, and never after `now`.  Throws
/// std::invalid_argument with one sentence.
std::time_t parse_since(const std::string& text, std::time_t now);
/// When that will be: `8h` from now, the next `18:00`, `2026-11-28`, `2026-11-28 18:00`; of local
/// time, and after `now`.  Throws as that.
std::time_t parse_until(const std::string& text, std::time_t now);

}  // namespace hpcbatch
