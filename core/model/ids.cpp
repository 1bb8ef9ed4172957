#include "model/ids.hpp"

#include <charconv>

namespace hpcbatch {

std::string to_string(TaskId task) {
  std::string text = std::to_string(task.array.value);
  if (task.index != 0) text += '.' + std::to_string(task.index);
  return text;
}

std::string to_string(const PilotId& pilot) {
  return pilot.allocation.name + '.' + std::to_string(pilot.rank);
}

std::optional<PilotId> parse_pilot(std::string_view text) {
  const auto dot = text.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  PilotId pilot{AllocationId{std::string(text.substr(0, dot))}, 0};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + dot + 1, end, pilot.rank);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return pilot;
}

}  // namespace hpcbatch
