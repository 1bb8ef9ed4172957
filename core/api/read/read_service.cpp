#include "api/read/read_service.hpp"

#include "api/read/json_words.hpp"

#include <chrono>
#include <cstdint>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// Bounds that nobody had to think of, where the client names none.
constexpr std::uint64_t kServiceMemory = std::uint64_t{2} << 30;
constexpr std::chrono::minutes kServiceIdle{5};
constexpr std::uint32_t kServiceRequests = 10'000;

}  // namespace

RecipeService read_service(const json::value& value, const std::string& what) {
  if (!value.is_object()) throw BadRequest(what + " must be an object with 'name' and 'command'");
  RecipeService service;
  service.memory = kServiceMemory;
  service.idle = kServiceIdle;
  service.requests = kServiceRequests;
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = what + "." + std::string(key);
    if (key == "name") {
      service.name = plain_word(entry, where);
    } else if (key == "kind") {
      if (text_of(entry, where) != "fork")
        throw BadRequest(where + " must be 'fork', the one kind of service that there is");
    } else if (key == "command") {
      service.argv = texts_of(entry, where);
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
      service.requests = static_cast<std::uint32_t>(whole_of(entry, where, 1, 1'000'000'000));
    } else {
      throw BadRequest(where + " is no key of a service; docs/api.md lists them");
    }
  }
  if (service.name.empty()) throw BadRequest(what + ".name is missing");
  if (service.argv.empty()) throw BadRequest(what + ".command is missing: what starts the service");
  return service;
}

}  // namespace hpcbatch
