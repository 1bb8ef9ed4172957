// What `hpcbatch sim` found, for people.
#pragma once

#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch::sim {

/// At most 80 letters wide.
std::string tables(const boost::json::object& found);

}  // namespace hpcbatch::sim
