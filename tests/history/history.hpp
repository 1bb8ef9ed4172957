// Records of a run in the order in which they happened, and what is wrong with them.
#pragma once

#include "wire/history.hpp"

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::history {

using Record = wire::HistoryRecord;
using History = std::vector<Record>;

/// A promise that is broken, and by which records: positions in the history.
struct Breach {
  std::string promise;  ///< "G1" to "G6"
  std::string text;
  std::vector<std::size_t> records;
};

struct Options {
  std::int64_t slack_us{10'000'000};  ///< what an idle pilot may take longer than its limit
  bool ended{false};  ///< the run is over: what has no result and no reason to wait is lost
};

/// Empty where there is none of that name.
std::string_view fact_of(const Record& record, std::string_view name);
/// `line` is without its line end.  An error says what was expected where.
hpcbatch::Result<Record> read_history_line(std::string_view line);

/// Every line of the files, and of the files named *.history in the folders, by time; those of one
/// file keep their order. An error names file and line.
hpcbatch::Result<History> read_history(const std::vector<std::string>& paths);

std::vector<Breach> check(const History& history, const Options& options = {});

/// One breach with its records in full.
std::string to_text(const Breach& breach, const History& history);

}  // namespace hpcbatch::history
