// What of a task the pilot alone acts on.
#pragma once

#include "documents/task_keys.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace hpcbatch {

/// Adds the value to the bytes of a `Start` under the key's field there.  Throws BadRequest, which
/// begins with `where`.
void put_for_pilot(const TaskKey& key, const boost::json::value& value, const std::string& where,
                   std::string& message);

}  // namespace hpcbatch
