#include "cli/parse/ending_words.hpp"

#include "documents/spelling.hpp"
#include "failure/failure_choice.hpp"
#include "model/task.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>
#include <vector>

namespace hpcbatch {
namespace {

/// Of squeue, sacct, qstat, hq and Galaxy.
constexpr std::array kStatesElsewhere{
    NamedElsewhere{"waiting", "pending queued pd q new submitted ready idle blocked"},
    NamedElsewhere{"held", "hold h paused"},
    NamedElsewhere{"running", "r active started"},
    NamedElsewhere{"finishing", "completing cg e"},
    NamedElsewhere{"done", "completed complete success successful succeeded ok finished cd ended"},
    NamedElsewhere{"failed", "f error errors failure timeout oom out_of_memory node_fail"},
    NamedElsewhere{"cancelled", "canceled ca aborted killed deleted"},
};

constexpr std::array kFailuresElsewhere{
    NamedElsewhere{"oom_task", "oom memory out_of_memory oom_kill oom_killed mem"},
    NamedElsewhere{"time_task", "timeout time time_limit timelimit to"},
    NamedElsewhere{"disk_task", "disk"},
    NamedElsewhere{"tool_failed", "exit exit_code error failed tool nonzero"},
    NamedElsewhere{"tool_signal", "signal crash segfault"},
    NamedElsewhere{"node_lost", "node_fail node nf"},
    NamedElsewhere{"pilot_preempted", "preempted pr"},
    NamedElsewhere{"cancelled", "canceled ca"},
    NamedElsewhere{"gpu_error", "gpu xid"},
    NamedElsewhere{"oom_gpu", "gpu_oom cuda_oom oom_cuda"},
};

const std::vector<std::string> kStates{"waiting", "held", "running", "finishing",
                                       "unknown", "done", "failed",  "cancelled"};

std::string meant(const std::string& theirs, const std::string& text,
                  const std::vector<std::string>& known) {
  return theirs.empty() ? spelling_hint(text, known) : "; did you mean '" + theirs + "'?";
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

const std::string& checked_state(const std::string& text) {
  if (parse_task_state(text)) return text;
  const std::string theirs = meant_elsewhere(kStatesElsewhere, lower_case(text));
  throw std::invalid_argument("'" + text + "' is not a state" + meant(theirs, text, kStates));
}

const std::string& checked_failure(const std::string& text) {
  if (parse_failure_choice(text)) return text;
  const std::string code = text.substr(std::min(text.find_first_of("0123456789"), text.size()));
  if (lower_case(text).starts_with("exit") && parse_failure_choice("exit:" + code))
    throw std::invalid_argument("'" + text + "' is not a failure; did you mean 'exit:" + code +
                                "'?");
  const std::vector<std::string> known(kFailureWords.begin() + 1, kFailureWords.end());
  throw std::invalid_argument(
      "'" + text + "' is not a failure" +
      meant(meant_elsewhere(kFailuresElsewhere, lower_case(text)), text, known));
}

}  // namespace hpcbatch
