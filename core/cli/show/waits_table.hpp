// How long allocations wait, for people.
#pragma once

#include <boost/json/object.hpp>

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>

namespace hpcbatch {

/// Of what `GET /v1/waits` answers.  `room`: letters on a line.
std::string waits_text(const boost::json::object& waits, std::time_t now,
                       std::optional<std::size_t> room);
/// How good the bounds were.
std::string waits_score_text(const boost::json::object& waits, std::optional<std::size_t> room);

}  // namespace hpcbatch
