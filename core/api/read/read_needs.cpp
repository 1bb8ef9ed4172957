#include "api/read/read_needs.hpp"

#include "api/read/json_values.hpp"
#include "documents/texts.hpp"
#include "hardware/gpu_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hpcbatch {
namespace {

namespace json = boost::json;

void read_binds(const json::value& value, const std::string& where, ContainerTerms& terms) {
  for (const std::string& text : texts_of(value, where)) {
    const auto bind = parse_container_bind(text);
    if (!bind || bind->from.front() != '/' || bind->to.front() != '/')
      throw BadRequest(fmt::format(
          "{}: '{}' is no bind; write /FOLDER, /FOLDER:/THERE or /FOLDER:/THERE:ro", where, text));
    terms.binds.push_back(*bind);
  }
}

std::string word_of(const json::value& value, const std::string& where) {
  if (value.is_bool()) return value.get_bool() ? "true" : "false";
  return text_of(value, where);
}

}  // namespace

ContainerRequest read_container(const json::value& value, const std::string& what) {
  if (value.is_string()) return {text_of(value, what), {}};
  if (!value.is_object())
    throw BadRequest(what + " must be the name of an image, or an object with 'image'");
  ContainerRequest container;
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = fmt::format("{}.{}", what, std::string_view(key));
    if (key == "image") {
      container.image = text_of(entry, where);
    } else if (key == "binds") {
      read_binds(entry, where, container.terms);
    } else if (key == "environment") {
      container.terms.variables = text_map_of(entry, where);
    } else if (const std::string complaint = take_container_word(
                   container.terms, std::string_view(key), word_of(entry, where));
               !complaint.empty()) {
      throw BadRequest(fmt::format("{} {}", where, complaint));
    }
  }
  if (container.image.empty()) throw BadRequest(what + ".image is missing");
  return container;
}

namespace {

namespace json = boost::json;

/// One or several with | between; empty: any.
std::string gpu_kinds_of(const json::value& value, const std::string& where) {
  std::string kinds = text_of(value, where);
  if (const auto why = wrong_gpu_kinds(kinds))
    throw BadRequest(fmt::format("{} '{}': {}", where, kinds, *why));
  return kinds == "any" ? std::string() : kinds;
}

Amount gpu_count_of(const json::value& value, const std::string& where) {
  const double count = number_of(value, where);
  if (const auto why = wrong_gpu_count(count))
    throw BadRequest(fmt::format("{} {:g}: {}", where, count, *why));
  return Amount::of_fraction(count);
}

std::string gpus_named(const std::string& kinds) {
  return kinds.empty() ? std::string(kAnyGpu) : std::string(kGpuPrefix) + kinds;
}

}  // namespace

std::uint64_t gpu_memory_of(const json::value& value, const std::string& where) {
  const Amount memory = size_of(value, where);
  if (memory < kLeastMemory)
    throw BadRequest(
        fmt::format("{}: no GPU has {} bytes; write for example 40G", where, memory.whole()));
  return static_cast<std::uint64_t>(memory.whole());
}

unsigned gpu_capability_of(const json::value& value, const std::string& where) {
  const auto capability =
      parse_capability(value.is_string() ? std::string(value.get_string())
                                         : fmt::format("{:g}", number_of(value, where)));
  if (!capability) throw BadRequest(where + " must be a compute capability of CUDA, as 8.0");
  return *capability;
}

namespace {

/// How many, and what each of them must be.
void read_gpu_terms(Resources& amounts, GpuTerms& terms, const json::object& said,
                    const std::string& where) {
  std::string kind;
  Amount count = Amount::of(1);
  for (const auto& [key, value] : said) {
    const std::string what = where + "." + std::string(key);
    if (key == "count") {
      count = gpu_count_of(value, what);
    } else if (key == "kind") {
      kind = gpu_kinds_of(value, what);
    } else if (key == "memory") {
      terms.memory = gpu_memory_of(value, what);
    } else if (key == "capability") {
      terms.capability = gpu_capability_of(value, what);
    } else {
      throw BadRequest(what + " is unknown" + spelling_hint(std::string_view(key), kGpuTerms));
    }
  }
  amounts.set(gpus_named(kind), count);
}

bool are_gpu_terms(const json::object& said) {
  return std::any_of(said.begin(), said.end(),
                     [](const auto& entry) { return is_gpu_term(entry.key()); });
}

}  // namespace

void read_gpus_into(Resources& amounts, GpuTerms& terms, const json::value& value,
                    const std::string& where) {
  if (value.is_number()) {
    amounts.set(kAnyGpu, gpu_count_of(value, where));
    return;
  }
  if (!value.is_object())
    throw BadRequest(where + " must be a number, a text as a100:2, or a map of kinds to numbers");
  if (are_gpu_terms(value.get_object()))
    return read_gpu_terms(amounts, terms, value.get_object(), where);
  check_amounts(value.get_object(), where);
  int open = 0;
  for (const auto& [kind, count] : value.get_object()) {
    const std::string name = gpus_named(gpu_kinds_of(json::value(kind), where));
    amounts.set(name, gpu_count_of(count, where));
    open += names_several_gpus(name) ? 1 : 0;
  }
  if (open > 1)
    throw BadRequest(where +
                     " leaves open more than once which kind it gets; say one of a|b alone");
}

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
