#include "api/read_request.hpp"

#include "api/own_paths.hpp"

#include "api/json_words.hpp"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>

#include <fmt/format.h>

namespace hpcbatch {

namespace json = boost::json;

json::value parse_body(const std::string& body) {
  boost::system::error_code error;
  // It is read once and goes as a whole.
  json::value value = json::parse(body.empty() ? "{}" : body, error,
                                  json::make_shared_resource<json::monotonic_resource>());
  if (error) throw BadRequest("the body is no JSON: " + error.message());
  if (!value.is_object()) throw BadRequest("the body must be a JSON object");
  return value;
}

SubmitRequest read_submit(const json::value& body) {
  SubmitRequest request;
  bool has_tasks = false;
  for (const auto& [key, value] : body.get_object()) {
    const std::string where(key);
    if (key == "client") {
      request.client = text_of(value, where);
    } else if (key == "key") {
      request.key = text_of(value, where);
    } else if (key == "directory") {
      request.directory = path_of(value, where);
    } else if (key == "environment") {
      request.environment = text_map_of(value, where);
    } else if (key == "umask") {
      request.umask = umask_of(value, where);
    } else if (key == "tasks") {
      if (!value.is_array() || value.get_array().empty())
        throw BadRequest("'tasks' must be a list of at least one task");
      has_tasks = true;
      const bool one = value.get_array().size() == 1;
      std::size_t number = 0;
      request.tasks.reserve(value.get_array().size());
      for (const json::value& task : value.get_array()) {
        ++number;
        request.tasks.push_back(read_task(task, one ? "task" : fmt::format("task {}", number)));
      }
    } else {
      throw BadRequest(fmt::format("'{}' is no key of a submit; docs/api.md lists them", where));
    }
  }
  if (!has_tasks) throw BadRequest("'tasks' is missing");
  if (request.client.empty())
    throw BadRequest("'client' is missing: a name for whoever submits, for example shell:alice");
  check_written_once(request);
  return request;
}

}  // namespace hpcbatch
