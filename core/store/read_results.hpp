// Rows of the table of results, and of what failed attempts share with them.
#pragma once

#include "store/file/sqlite.hpp"
#include "store/result_run.hpp"
#include "store/store.hpp"

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
