// What a client says in JSON, checked key by key.
#pragma once

#include "api/bad_request.hpp"
#include "api/read_task.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

boost::json::value parse_body(const std::string& body);

struct SubmitRequest {
  std::string client;
  std::string key;
  std::string directory;
  std::map<std::string, std::string> environment;
  std::optional<std::uint32_t> umask;
  std::vector<TaskRequest> tasks;
};

/// Throws BadRequest that names the task and the key.
SubmitRequest read_submit(const boost::json::value& body);

}  // namespace hpcbatch
