// What `hpcbatch sim` finds out, as JSON: the whole trace played, and chains of pilots in it.
#pragma once

#include "cli/parse/sim_command.hpp"
#include "foresight/replay/trace.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <functional>
#include <string>

namespace hpcbatch::sim {

/// What is being done, how much of it, of how much.
using Progress = std::function<void(const std::string&, std::size_t, std::size_t)>;

/// {"jobs", "skipped", "from", "until" (seconds), "nodes", "whole": {"real": {...}, "played": {...},
/// ...}, "episodes": [{"pilot_nodes", "count", "policies": [...], "bounds": {...}}]}; hours and
/// parts of 1.  Throws std::invalid_argument with one sentence.
boost::json::object replay(const SimCommand& command, foresight::Trace trace,
                           const Progress& progress);

// What `hpcbatch sim` found, for people.

/// At most 80 letters wide.
std::string tables(const boost::json::object& found);

// A trace from a file, packed by gzip or not.

/// `-`: standard input.  Throws std::invalid_argument with one sentence that names the file.
foresight::Trace read_trace_file(const std::string& file, const std::string& partition);

}  // namespace hpcbatch::sim
