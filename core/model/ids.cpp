#include "model/ids.hpp"

#include <hpcbatch/text.hpp>

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
  const auto rank = number_in<decltype(PilotId::rank)>(text.substr(dot + 1));
  if (!rank) return std::nullopt;
  return PilotId{AllocationId{std::string(text.substr(0, dot))}, *rank};
}

}  // namespace hpcbatch
