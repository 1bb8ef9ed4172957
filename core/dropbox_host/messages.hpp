// What an engine and the process of one of its drop boxes say to each other: lines of JSON over a pair
// of sockets, each an object with one key.
//
//   engine   open: settings        first, and once
//            end: how a task ended
//            close                 finish what is at work, and end
//   process  opened | refused: why
//            submit: a task | cancel: its key | warn: a line for the engine's log
//
// The process ends at once where its engine is gone.  All of it is found again by the next one on the
// same folder, which submits the same keys again.
#pragma once

#include "dropbox/dropbox.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <string_view>

namespace hpcbatch {

/// With its line end.  Texts are bytes.
std::string message(std::string_view key, boost::json::value value);
/// The one key and what it holds.  These throw std::exception for what no process of ours says.
boost::json::key_value_pair read_message(std::string_view line);

/// Without what is a function or has to do with tests.
boost::json::object to_json(const DropboxOptions& options);
DropboxOptions read_box_options(const boost::json::value& value);
boost::json::object to_json(const DropboxTask& task);
DropboxTask read_box_task(const boost::json::value& value);
boost::json::object to_json(const DropboxTaskEnd& end);
DropboxTaskEnd read_box_task_end(const boost::json::value& value);

}  // namespace hpcbatch
