#include "api/read/read_service.hpp"

#include "api/read/json_values.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

TaskService::Kind kind_in(const json::value& entry, const std::string& where) {
  const std::string kind = text_of(entry, where);
  if (kind == "answer") return TaskService::Kind::Answer;
  if (kind != "fork") throw BadRequest(where + " must be 'fork' or 'answer'");
  return TaskService::Kind::Fork;
}

}  // namespace

TaskService read_service(const json::value& value, const std::string& what) {
  if (!value.is_object()) throw BadRequest(what + " must be an object with 'name' and 'command'");
  TaskService service;
  bool has_batch = false;
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = what + "." + std::string(key);
    if (key == "name") {
      service.name = plain_word(entry, where);
    } else if (key == "kind") {
      service.kind = kind_in(entry, where);
    } else if (key == "command") {
      service.argv = list_of_bytes(entry, where);
      if (service.argv.empty() || service.argv.front().empty())
        throw BadRequest(where + " must name a program");
    } else if (key == "env") {
      service.variables = text_map_of(entry, where);
    } else if (key == "memory") {
      service.memory = static_cast<std::uint64_t>(size_of(entry, where).whole());
    } else if (key == "idle") {
      service.idle = std::chrono::ceil<std::chrono::milliseconds>(duration_of(entry, where));
    } else if (key == "start") {
      service.start = std::chrono::ceil<std::chrono::milliseconds>(duration_of(entry, where));
    } else if (key == "requests") {
      service.requests =
          static_cast<std::uint32_t>(whole_of(entry, where, 1, kMostServiceRequests));
    } else if (key == "batch") {
      service.batch = static_cast<std::uint32_t>(whole_of(entry, where, 1, kLargestServiceBatch));
      has_batch = true;
    } else if (key == "instances") {
      service.instances =
          static_cast<std::uint32_t>(whole_of(entry, where, 1, kMostServiceInstances));
      has_batch = true;
    } else {
      throw BadRequest(where + " is no key of a service; docs/api.md lists them");
    }
  }
  if (service.name.empty()) throw BadRequest(what + ".name is missing");
  if (service.argv.empty()) throw BadRequest(what + ".command is missing: what starts the service");
  if (has_batch && service.kind != TaskService::Kind::Answer)
    throw BadRequest(what + ": 'batch' and 'instances' are for a service with 'kind': 'answer'");
  return service;
}

}  // namespace hpcbatch
