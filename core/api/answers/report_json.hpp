// What runs used, in the words of docs/api.md.
#pragma once

#include "records/report.hpp"

#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch {

/// Hours, and GB-hours of memory (GB is 2^30 bytes).
boost::json::object to_json(const records::Usage& usage);
/// What 50 and 95 of 100 runs took; empty where none was seen.
boost::json::object to_json(const records::Profile& profile);
/// With a sentence; `days`: that the usage is of.
boost::json::object to_json(const records::Advice& advice, double days);

}  // namespace hpcbatch
