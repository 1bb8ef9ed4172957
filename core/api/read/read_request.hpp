// What a client says in JSON, checked key by key.
#pragma once

#include "api/read/json_values.hpp"
#include "api/read/read_task.hpp"
#include "model/ids.hpp"
#include "model/task.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

boost::json::value parse_body(const std::string& body);
/// One with submits in it, some of whose texts may hold any bytes: of each of the others it is
/// checked where it is read that it is UTF-8.
boost::json::value parse_body_of_submits(const std::string& body);

/// The task in which a client runs, by the names that its pilot gave it.
struct Within {
  TaskId task;
  PilotId pilot;
};

struct SubmitRequest {
  std::string client;
  std::string key;
  std::string directory;
  std::map<std::string, std::string> environment;
  std::optional<std::uint32_t> umask;
  std::optional<Within> within;
  std::string reader;
  std::optional<Duration> lease;
  std::deque<TaskRequest> tasks;  ///< large, so that each is freed as soon as it is done with
};

/// Throws BadRequest that names the task and the key.
SubmitRequest read_submit(const boost::json::value& body);

struct SubmitWithContent {
  SubmitRequest request;
  std::uint64_t content{0};
};
/// The same of a whole body, whose tasks are read one by one while it is parsed: there may be
/// hundreds of thousands.
SubmitWithContent read_submit_body(std::string body);

// Which tasks a client means.

/// `12`, `12.345`, `12.1-99`.  Throws BadRequest.
Selection parse_selection(const std::string& text);
TaskId parse_task(const std::string& text);
/// The list `ids` of a request.
std::vector<Selection> read_selections(const boost::json::value& body);

}  // namespace hpcbatch
