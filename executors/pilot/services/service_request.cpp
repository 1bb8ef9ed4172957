#include "pilot/services/service_request.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace hpcbatch::pilot {

std::string to_bytes(const ServiceRequest& request) {
  std::string bytes;
  const auto add = [&bytes](std::string_view field) {
    bytes += field;
    bytes += '\0';
  };
  add("hpcbatch-request 1");
  add(request.directory);
  char octal[16]{};
  if (request.umask)
    std::snprintf(octal, sizeof octal, "%o", static_cast<unsigned>(*request.umask));
  add(octal);
  std::string cpus;
  for (const unsigned cpu : request.cpus) cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
  add(cpus);
  std::string files;
  if (request.open_files) {
    const auto number = [](rlim_t limit) {
      return limit == RLIM_INFINITY ? std::string("-1") : std::to_string(limit);
    };
    files = number(request.open_files->rlim_cur) + " " + number(request.open_files->rlim_max);
  }
  add(files);
  add(std::to_string(request.argv.size()));
  for (const std::string& argument : request.argv) add(argument);
  for (char* const* line = request.environment; *line != nullptr; ++line) add(*line);
  return bytes;
}

ServiceReply read_reply(const std::string& text) {
  constexpr std::string_view kCannotEnter = "cannot enter ";
  if (text == "here") return Here{};
  if (text.starts_with(kCannotEnter)) {
    const int error = std::atoi(text.c_str() + kCannotEnter.size());
    if (error > 0) return CannotEnter{error};
  }
  return CannotServe{text.empty() ? "it said nothing" : text};
}

}  // namespace hpcbatch::pilot
