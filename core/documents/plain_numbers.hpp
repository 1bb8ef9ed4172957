// JSON whose numbers people and simple tools can read.
#pragma once

#include <boost/json/value.hpp>

#include <string>
#include <string_view>

namespace hpcbatch {

/// The same JSON text with numbers such as `4E0` and `1.5E-3` written as `4` and `0.0015`; very
/// large and very small ones keep an exponent.
std::string with_plain_numbers(std::string_view json);

/// Whether one of its numbers was larger than a double holds (1.8e308): it was read as infinite, which
/// JSON cannot say, and would be written as the word Infinity.
bool holds_infinity(const boost::json::value& value);

}  // namespace hpcbatch
