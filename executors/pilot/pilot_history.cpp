#include "pilot/pilot_history.hpp"

#include <chrono>

namespace hpcbatch::pilot {
namespace {

std::vector<std::pair<std::string, std::string>> of(const AttemptId& id) {
  const std::string array = std::to_string(id.array);
  return {{"task", id.index == 0 ? array : array + "." + std::to_string(id.index)},
          {"attempt", std::to_string(id.number)},
          {"epoch", std::to_string(id.epoch)}};
}

}  // namespace

PilotHistory::PilotHistory(const wire::PilotFile& file, const std::string& pilot,
                           std::uint64_t incarnation) {
  if (file.history.empty()) return;
  const std::string process = std::to_string(incarnation);
  file_.emplace(file.history, "pilot-" + pilot + "-" + process, "pilot/" + pilot + "/" + process);
  const auto idle = std::chrono::duration_cast<std::chrono::microseconds>(file.idle);
  add("pilot-started", {{"idle_us", std::to_string(idle.count())}});
}

void PilotHistory::attempt_started(const AttemptId& id) const {
  add("attempt-started", of(id));
}

void PilotHistory::attempt_ended(const AttemptId& id, const std::string& failure,
                                 bool staged) const {
  auto facts = of(id);
  facts.emplace_back("failure", failure);
  if (staged) facts.emplace_back("staged", "1");
  add("attempt-ended", std::move(facts));
}

void PilotHistory::published(const AttemptId& id) const {
  add("published", of(id));
}

void PilotHistory::discarded(const AttemptId& id) const {
  add("discarded", of(id));
}

void PilotHistory::add(std::string what,
                       std::vector<std::pair<std::string, std::string>> facts) const {
  if (file_) file_->add(std::move(what), std::move(facts));
}

}  // namespace hpcbatch::pilot
