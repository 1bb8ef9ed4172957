#include "api/answers/ways_of_failing.hpp"

#include "api/answers/to_json.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string name_of(const store::FailureGroup& group) {
  const std::string failure(to_string(group.failure));
  if (group.signal != 0) return fmt::format("{} (signal {})", failure, group.signal);
  if (group.failure == Failure::ToolFailed) return fmt::format("exit code {}", group.exit_code);
  return failure;
}

/// "--mem 8G"; without a number where nothing was asked for.
std::string twice_the_size(std::string_view flag, Amount before) {
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(before.whole(), 0));
  return fmt::format("{} {}", flag, bytes == 0 ? "SIZE" : show_size(2 * bytes));
}

}  // namespace

std::string in_words(ArrayId id, const WayOfFailing& way) {
  std::string text = fmt::format("{} {}: first {}", way.group.tasks, name_of(way.group),
                                 to_string(TaskId{id, way.group.first}));
  if (!way.item.empty()) text += fmt::format(" (item {})", way.item);
  if (!way.first) return text;
  if (!way.first->node.empty()) text += " on " + way.first->node;
  if (!way.first->outcome.message.empty()) text += ": " + way.first->outcome.message;
  return text;
}

json::object to_json(ArrayId id, const WayOfFailing& way) {
  const store::FailureGroup& group = way.group;
  json::object one{{"failure", std::string(to_string(group.failure))},
                   {"tasks", group.tasks},
                   {"first", to_string(TaskId{id, group.first})}};
  if (group.failure == Failure::ToolFailed && group.exit_code >= 0)
    one["exit_code"] = group.exit_code;
  if (group.signal != 0) one["signal"] = group.signal;
  if (!way.item.empty()) one["item"] = valid_utf8(way.item);
  if (!way.first) return one;
  if (!way.first->node.empty()) one["node"] = way.first->node;
  if (!way.first->outcome.message.empty()) one["message"] = valid_utf8(way.first->outcome.message);
  return one;
}

std::optional<std::string> retry_with_more(Failure failure, const Needs& needs,
                                           std::string_view what) {
  std::string more;
  if (failure == Failure::OomTask) {
    more = twice_the_size("--mem", needs.amounts.get(kMemory));
  } else if (failure == Failure::DiskTask) {
    more = twice_the_size("--disk", needs.amounts.get(kDisk));
  } else if (failure == Failure::TimeTask && needs.time) {
    const auto twice = std::chrono::ceil<std::chrono::seconds>(2 * *needs.time);
    more = "--time " + show_duration(twice);
  } else {
    return std::nullopt;
  }
  return fmt::format("'hpcbatch retry {} {}' runs again with more", what, more);
}

}  // namespace hpcbatch
