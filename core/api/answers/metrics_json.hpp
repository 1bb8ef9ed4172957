// What tasks say of themselves, as JSON.
#pragma once

#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch {

/// `metrics`, or `metrics_error` where the text is no JSON object; nothing of an empty text.
void put_metrics(boost::json::object& object, const std::string& text);

}  // namespace hpcbatch
