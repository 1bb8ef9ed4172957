#include "pilot/identity.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace hpcbatch::pilot {
namespace {

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, number);
  return text;
}

/// The batch system knows best when its job ends: a job that was started late by a slow prolog, or
/// that was started again, is not as long as its file says.
std::optional<Time> usable_until(const wire::PilotFile& file, Time now) {
  std::optional<Duration> left;
  if (file.walltime.count() > 0) left = file.walltime;
  if (const char* end = std::getenv("SLURM_JOB_END_TIME")) {
    const auto there =
        std::chrono::system_clock::time_point(std::chrono::seconds(std::strtoll(end, nullptr, 10)));
    const Duration batch = there - std::chrono::system_clock::now();
    if (batch > Duration{} && left) left = std::min(*left, batch);
  }
  if (!left) return std::nullopt;
  return now + *left - file.margin;
}

}  // namespace

Identity identity_of(const wire::PilotFile& file, std::uint32_t rank, Time now) {
  Identity self{file, {file.allocation, rank}, {}, wire::random_number(), {}, {}};
  self.text = self.name.allocation + "." + std::to_string(rank);
  self.work = file.workspace + "/work/" + self.text + "." + hex(self.incarnation);
  self.usable_until = usable_until(file, now);
  return self;
}

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
