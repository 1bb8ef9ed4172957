// Durations, sizes and counts as people write them, and back.
#pragma once

#include "model/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

/// `90`, `90s`, `1.5h`, `1h30m`, `2d`, `500ms`, `HH:MM:SS`, `D-HH:MM:SS`; a bare number is seconds.
std::optional<Duration> parse_duration(std::string_view text);
/// `512M`, `8G`, `1.5TiB`, `100`, `100B`; powers of 1024, as the batch systems count; a bare number
/// is bytes.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// How many seconds, or bytes, one of a unit has: `ms`, `s`, `min`, `h`; `K`, `GB`, `MiB`.  Nothing
/// where it is none.
std::optional<double> seconds_in(std::string_view unit);
std::optional<double> bytes_in(std::string_view unit);

/// Short, for people: `1h30m`, `250ms`.
std::string show_duration(Duration duration);
/// Short, for people: `1.5G`.
std::string show_size(std::uint64_t bytes);
/// "1 task", "2 tasks": of a noun that takes an s.
std::string show_count(std::uint64_t count, std::string_view noun);

}  // namespace hpcbatch
