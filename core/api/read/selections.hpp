// Which tasks a client means.
#pragma once

#include "api/read/bad_request.hpp"
#include "model/task.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace hpcbatch {

/// `12`, `12.345`, `12.1-99`.  Throws BadRequest.
Selection parse_selection(const std::string& text);
TaskId parse_task(const std::string& text);
/// The list `ids` of a request.
std::vector<Selection> read_selections(const boost::json::value& body);

}  // namespace hpcbatch
