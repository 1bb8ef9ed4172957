// What a client says of a service that its tasks share.
#pragma once

#include "api/read/bad_request.hpp"
#include "model/task_service.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace hpcbatch {

/// `what` names the key for the reader of a refusal.  Throws BadRequest.
TaskService read_service(const boost::json::value& value, const std::string& what);

}  // namespace hpcbatch
