// Submissions as lines of a table.
#pragma once

#include "cli/show/table.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <vector>

namespace hpcbatch {

/// Of summaries as `GET /v1/arrays` gives them; `now` in seconds since 1970.  Whose they are is a
/// column where they are not all one's.
Table submission_table(std::vector<boost::json::object> submissions, double now);

/// How far it is: `#` ended well, `x` failed or cancelled, `>` running, `.` to come; each that
/// there is has a letter at least.  `counts` by state.
std::string progress_bar(const boost::json::object& counts, std::size_t letters);

}  // namespace hpcbatch
