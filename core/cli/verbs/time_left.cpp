// `time-left`: inside a task, how long it may still run.
#include "cli/process/exit.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

namespace hpcbatch {

int show_time_left(const TimeLeftCommand& command, const Session&) {
  const char* said = std::getenv("HPCBATCH_DEADLINE");
  const std::string_view text = said == nullptr ? "" : said;
  std::int64_t deadline = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), deadline);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw CommandError(
        kExitTaskFailed,
        std::getenv("HPCBATCH_TASK_ID") == nullptr
            ? "this is no task of hpcbatch: time-left is for the commands that tasks run"
            : "this task has no end: neither it nor its pilot has a time limit");
  }
  const std::int64_t left = std::max<std::int64_t>(0, deadline - std::time(nullptr));
  if (command.json)
    print_json({{"seconds", left}, {"deadline", deadline}});
  else
    print(std::to_string(left) + "\n");
  return kExitDone;
}

}  // namespace hpcbatch
