// One object of the engine's JSON in full, for people: each key on a line, in the form that its
// name calls for.
#pragma once

#include <boost/json/object.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

/// A value on one line: times and durations, sizes, commands and amounts by the name of the key.
std::string value_on_a_line(std::string_view key, const boost::json::value& value);

/// The same, with times as short as they can be.
std::string value_in_a_table(std::string_view key, const boost::json::value& value);

/// Lists of objects (attempts, shapes) follow as tables.  Keys that are not there do not show.
/// `room`: letters on a line, beyond which sentences and rows break.
std::string describe(const boost::json::object& object, std::optional<std::size_t> room = {});

}  // namespace hpcbatch
