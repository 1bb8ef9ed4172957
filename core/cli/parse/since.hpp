// How far back people look.
#pragma once

#include <ctime>
#include <string>

namespace hpcbatch {

/// When that was, in seconds since 1970: `2h` ago, `today` and `yesterday` and `monday` from their
/// first minute on, `2026-11-25`, `2026-11-25 14:30`; of local time, and never after `now`.  Throws
/// std::invalid_argument with one sentence.
std::time_t parse_since(const std::string& text, std::time_t now);

}  // namespace hpcbatch
