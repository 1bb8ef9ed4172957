#include "pilot/services/service_request.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace hpcbatch::pilot {
namespace {

constexpr std::string_view kVersion = "hpcbatch-request 1";

}  // namespace

std::string to_bytes(const ServiceRequest& request) {
  std::string bytes;
  const auto add = [&bytes](std::string_view field) {
    bytes += field;
    bytes += '\0';
  };
  add(kVersion);
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

std::optional<ReadRequest> read_request(const std::string& bytes) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = bytes.find('\0', begin);
    if (end == std::string::npos) return std::nullopt;
    fields.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  constexpr std::size_t kBeforeArguments = 6;
  if (fields.size() < kBeforeArguments || fields[0] != kVersion) return std::nullopt;
  const std::size_t arguments = std::strtoul(fields[5].c_str(), nullptr, 10);
  if (arguments == 0 || arguments > fields.size() - kBeforeArguments) return std::nullopt;
  ReadRequest read;
  read.request.directory = fields[1];
  if (!fields[2].empty())
    read.request.umask = static_cast<mode_t>(std::strtoul(fields[2].c_str(), nullptr, 8));
  for (const char* at = fields[3].c_str(); *at != '\0';) {
    char* end = nullptr;
    read.request.cpus.push_back(static_cast<unsigned>(std::strtoul(at, &end, 10)));
    if (end == at) return std::nullopt;
    at = *end == ',' ? end + 1 : end;
  }
  if (!fields[4].empty()) {
    char* end = nullptr;
    const auto limit = [&end](const char* text) {
      return static_cast<rlim_t>(std::strtoll(text, &end, 10));  // -1 is infinity
    };
    const rlim_t soft = limit(fields[4].c_str());
    read.request.open_files = rlimit{soft, limit(end)};
  }
  const auto first = fields.begin() + kBeforeArguments;
  const auto variables = first + static_cast<std::ptrdiff_t>(arguments);
  read.request.argv.assign(first, variables);
  read.environment.assign(variables, fields.end());
  return read;
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
