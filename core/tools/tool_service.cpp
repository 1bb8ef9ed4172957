#include "tools/tool_service.hpp"

#include "tools/placeholders.hpp"

#include <chrono>

namespace hpcbatch {
namespace {

std::chrono::milliseconds milliseconds_of(const View& view) {
  return std::chrono::ceil<std::chrono::milliseconds>(view.duration());
}

std::uint32_t count_of(const View& view, std::uint32_t most) {
  return static_cast<std::uint32_t>(view.integer(1, most));
}

}  // namespace

TaskService parse_service(const View& view, const std::string& tool) {
  MapView map = view.map();
  TaskService service;
  service.name = tool;
  if (const auto kind = map.find("kind")) {
    if (kind->one_of({"fork", "answer"}) == "answer") service.kind = TaskService::Kind::Answer;
  }
  const View command = map.get("command");
  service.argv = command.texts();
  if (service.argv.empty() || service.argv.front().empty()) command.fail("it names no program");
  if (const auto env = map.find("env")) service.variables = env->text_map();
  if (const auto memory = map.find("memory")) service.memory = memory->size();
  if (const auto idle = map.find("idle")) service.idle = milliseconds_of(*idle);
  if (const auto start = map.find("start")) service.start = milliseconds_of(*start);
  if (const auto requests = map.find("requests"))
    service.requests = count_of(*requests, kMostServiceRequests);
  const auto of_answers = [&](const char* key) {
    auto found = map.find(key);
    if (found && service.kind != TaskService::Kind::Answer)
      found->fail("it is for a service of 'kind: answer'");
    return found;
  };
  if (const auto batch = of_answers("batch"))
    service.batch = count_of(*batch, kLargestServiceBatch);
  if (const auto instances = of_answers("instances"))
    service.instances = count_of(*instances, kMostServiceInstances);
  map.finish();
  return service;
}

TaskService filled_service(TaskService service, const std::map<std::string, std::string>& values) {
  for (std::string& word : service.argv) word = fill_placeholders(word, values);
  return service;
}

}  // namespace hpcbatch
