// What a task waits for, and when it may run.
#pragma once

#include "model/task.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace hpcbatch {

// Each throws BadRequest, which begins with `what` or `where`.

/// Of a list of ids, of Start with a time behind each: `12+10m`.
void add_dependencies(const boost::json::value& value, const std::string& what,
                      Dependency::Kind kind, NewArray& array);
/// Seconds since 1970.
Time moment_of(const boost::json::value& value, const std::string& where);
/// In hundredths.
std::uint32_t factor_of(const boost::json::value& value, const std::string& where);
/// The name that a singleton waits by.
const std::string& singleton_of(const std::string& name, const std::string& what);
/// What does not go together.
void check_course(const NewArray& array, const std::string& what);

}  // namespace hpcbatch
