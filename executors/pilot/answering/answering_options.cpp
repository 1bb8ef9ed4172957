#include "pilot/answering/answering_options.hpp"

#include <charconv>
#include <chrono>
#include <cstdint>

namespace hpcbatch::pilot {
namespace {

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// False where there is no such option.
bool take(const std::string& name, std::uint64_t value, DispatchTerms& terms) {
  const auto milliseconds = std::chrono::milliseconds(value);
  if (name == "--batch") {
    terms.batch = value;
  } else if (name == "--instances") {
    terms.instances = value;
  } else if (name == "--memory") {
    terms.memory = value;
  } else if (name == "--idle-ms") {
    terms.idle = milliseconds;
  } else if (name == "--requests") {
    terms.requests = static_cast<std::uint32_t>(value);
  } else if (name == "--start-ms") {
    terms.start = milliseconds;
  } else if (name == "--devices") {
    terms.waits_for_devices = value != 0;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<AnsweringOptions> read_answering_options(const std::vector<std::string>& arguments) {
  AnsweringOptions options;
  std::size_t at = 0;
  for (; at + 1 < arguments.size() && arguments[at] != "--"; at += 2) {
    const auto value = whole_number(arguments[at + 1]);
    if (!value || !take(arguments[at], *value, options.terms)) return std::nullopt;
  }
  if (at >= arguments.size() || arguments[at] != "--") return std::nullopt;
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1, arguments.end());
  if (options.command.empty()) return std::nullopt;
  return options;
}

}  // namespace hpcbatch::pilot
