// What waiting tasks are told anew.
#pragma once

#include "model/event.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace hpcbatch {

/// Whether tasks that wait may be told that key anew.
bool can_be_updated(const std::string& key);

/// Of a map of such keys with the values that a submit has; throws BadRequest.
TermsChange read_terms_change(const boost::json::value& value);

}  // namespace hpcbatch
