// Results that are saved together, and of which those of neighbours that ended well make one row:
// an array of a million tasks that go well has thousands of rows, not a million.
#pragma once

#include "model/action.hpp"
#include "store/file/sqlite.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::store {

/// Cuts results, elements of one vector in the order in which they came, into runs that may share a
/// row: indices without a gap, all ended well on one pilot.  What did not is a run of its own. Runs
/// are in the order of the first that came of each.
std::vector<std::vector<const SaveResult*>> runs_of(std::vector<const SaveResult*> results);

/// Whether nothing but what `encode_details` tells is to be known of it.
bool ended_well(const Outcome& outcome);

/// Of tasks that ended well: what they do not have in common.
std::string encode_details(const std::vector<const SaveResult*>& run);

/// One task's part of it.
struct OwnDetails {
  std::uint32_t attempt{0};
  std::uint64_t epoch{0};
  Outcome outcome;  ///< times, usage, places in the log
};
/// Throws std::runtime_error where the bytes are damaged.
std::vector<OwnDetails> decode_details(const std::string& bytes);
/// One task's times alone, which is much less than all its details.
struct OwnTimes {
  Time started{}, ended{};
  Duration cpu{};
};
/// Throws std::runtime_error where the bytes are damaged.
std::vector<OwnTimes> decode_times(std::string_view bytes);
/// One task's attempt, times and usage.
struct OwnUse {
  std::uint32_t attempt{0};
  std::uint64_t epoch{0};
  OwnTimes times;
  std::uint64_t peak_memory{0};
  std::uint64_t read_bytes{0}, written_bytes{0};
  Duration staged_in{}, staged_out{};
  std::optional<GpuUse> gpu{};  ///< without its energy
  std::string device{};
};
/// Throws std::runtime_error where the bytes are damaged.
std::vector<OwnUse> decode_use(std::string_view bytes);
/// Those of some of the run's tasks: so many, from a place in it on.
std::string cut_details(const std::string& bytes, std::size_t from, std::size_t count);

}  // namespace hpcbatch::store

// Rows of the table of results, and of what failed attempts share with them.

#define RESULT_COLUMNS                                                                           \
  "sequence,array,first,last,attempt,failure,exit_code,signal,message,started,ended,pilot,node," \
  "peak,cpu,log,last_out,"                                                                       \
  "last_err,out_bytes,err_bytes,truncated,epoch,details"

namespace hpcbatch::store {

constexpr int kDetails = 22;  ///< its column in RESULT_COLUMNS

/// How the column `truncated` says what is missing of an output.
int cut_of(const LogPlace& log);
/// Of six columns from `first` on.
LogPlace read_log_place(sqlite::Statement& row, int first);
/// Of RESULT_COLUMNS.
ResultRow read_result(sqlite::Statement& row);
/// Makes a row of many tasks that of one of them.
void pick(ResultRow& row, const OwnDetails& own, std::uint32_t index);

}  // namespace hpcbatch::store
