// A history: what engine, pilots and outside observers saw happen, one record a line, for a checker that knows only what
// hpcbatch promises.  docs/formats.md lists the records.
#pragma once

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::wire {

struct HistoryRecord {
  std::int64_t time_us{0};  ///< since 1970, by the clock of whoever recorded it
  std::string by;           ///< "engine/START", "pilot/NAME.RANK/INCARNATION", "outside"
  std::string what;         ///< such as "attempt-started"
  std::vector<std::pair<std::string, std::string>> facts;

  /// Empty where there is none of that name.
  std::string_view get(std::string_view name) const;
};

/// With its line end.  Blanks, '%', '=' and what is not printable ASCII are written as %XX in values.
std::string to_line(const HistoryRecord& record);
/// `line` is without its line end.  An error says what was expected where.
hpcbatch::Result<HistoryRecord> read_history_line(std::string_view line);

}  // namespace hpcbatch::wire
