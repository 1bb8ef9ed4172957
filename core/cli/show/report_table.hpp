// What runs used, as people read it: at 80 columns, and as CSV.
#pragma once

#include <boost/json/object.hpp>

#include <optional>
#include <string>

namespace hpcbatch {

/// Of an answer of `GET /v1/report`.  `by`: kind, site, client, day.  `room`: letters on a line.
std::string report_text(const boost::json::object& report, const std::string& by,
                        std::optional<std::size_t> room);
/// RFC 4180: a line of titles, then one for each row.
std::string report_csv(const boost::json::object& report, const std::string& by);

/// `1.5`, `120`, `31000`: hours with as many digits as say something.
std::string few_digits(double value);

// What runs used as one page that needs nothing beside it: it can be sent in a mail.

/// HTML with its plots as SVG in it; of two answers of `GET /v1/report`.  No script, nothing that is
/// loaded from elsewhere; whatever names tasks have, it stays text.
std::string report_page(const boost::json::object& by_kind, const boost::json::object& by_day);

}  // namespace hpcbatch
