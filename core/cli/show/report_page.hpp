// What runs used as one page that needs nothing beside it: it can be sent in a mail.
#pragma once

#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch {

/// HTML with its plots as SVG in it; of two answers of `GET /v1/report`.  No script, nothing that is
/// loaded from elsewhere; whatever names tasks have, it stays text.
std::string report_page(const boost::json::object& by_kind, const boost::json::object& by_day);

}  // namespace hpcbatch
