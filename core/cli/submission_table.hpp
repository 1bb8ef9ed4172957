// Submissions as lines of a table.
#pragma once

#include "cli/table.hpp"

#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch {

Table submission_table();
/// `submission` is a summary of `GET /v1/arrays`; `now` in seconds since 1970.
void add_submission_row(Table& table, const boost::json::object& submission, double now);

/// How far it is: `#` ended well, `x` failed or cancelled, `>` running, `.` to come; each that
/// there is has a letter at least.  `counts` by state.
std::string progress_bar(const boost::json::object& counts, std::size_t letters);

}  // namespace hpcbatch
