// Values of the model in the words of docs/api.md.
#pragma once

#include "engine/engine.hpp"
#include "model/task.hpp"
#include "store/store.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch {

/// Seconds since 1970.
double seconds(Time time);
double seconds(Duration duration);
boost::json::object to_json(const Needs& needs);
boost::json::object gpus_json(const Resources& resources);
/// `12` for a task or all of an array, `12.1-99` for a range.
std::string id_of(ArrayId array, IndexRange range);

/// The ids of what is waited for.
boost::json::array to_json(const std::vector<Dependency>& after);

}  // namespace hpcbatch
