// What `hpcbatch-estimate` found, for people.
#pragma once

#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch::estimate {

std::string tables(const boost::json::object& found);

}  // namespace hpcbatch::estimate
