// Tasks of one file that wait for each other, by name or by place.
#pragma once

#include <boost/json/array.hpp>

#include <string>

namespace hpcbatch {

/// Puts each task behind those that it waits for (else they stay in their order) and names these as
/// the engine takes them, `#3`, wherever the file says their name or place (`fit`, `fit.7`, `#3`);
/// ids of what was submitted before stay.  Throws CommandError where a name is not there, is
/// several tasks', or where tasks wait for each other in a circle.
void order_tasks(boost::json::array& tasks, const std::string& file);

}  // namespace hpcbatch
