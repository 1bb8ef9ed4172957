#include "pilot/fake_runner.hpp"

#include "pilot/base/clock.hpp"
#include "wire/outbox.hpp"

#include <chrono>
#include <cstdlib>

namespace hpcbatch::pilot {
namespace {

Duration time_of(const wire::Start& start) {
  if (start.argv_size() != 2 || start.argv(0) != "sleep") return {};
  const double seconds = std::strtod(start.argv(1).c_str(), nullptr);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

bool FakeRunner::is_asked_for(const std::string& workspace) {
  const char* asked = std::getenv("HPCBATCH_PILOT_RUNS_NOTHING");
  return asked != nullptr && workspace == asked;
}

void FakeRunner::launch(const AttemptId& id, const wire::Start& start, Time now) {
  const std::int64_t started_us = wall_clock_us();
  const Duration time = time_of(start);
  if (start.holds_room()) {
    going_[id] = {started_us, Time::max()};
    return;
  }
  if (time <= Duration{}) return end(id, started_us, Failure::Ok, "");
  going_[id] = {started_us, now + time};
  ends_.emplace(now + time, id);
}

void FakeRunner::stop(const AttemptId& id, Failure failure, const std::string& message) {
  const auto at = going_.find(id);
  if (at == going_.end()) return;
  const Going going = at->second;
  ends_.erase({going.until, id});
  going_.erase(at);
  end(id, going.started_us, failure, message);
}

void FakeRunner::tick(Time now) {
  while (!ends_.empty() && ends_.begin()->first <= now) {
    const AttemptId id = ends_.begin()->second;
    ends_.erase(ends_.begin());
    const std::int64_t started_us = going_.at(id).started_us;
    going_.erase(id);
    end(id, started_us, Failure::Ok, "");
  }
}

std::optional<Time> FakeRunner::next() const {
  return ends_.empty() ? std::nullopt : std::optional(ends_.begin()->first);
}

void FakeRunner::end(const AttemptId& id, std::int64_t started_us, Failure failure,
                     const std::string& message) {
  wire::Result result;
  to_wire(id, result.mutable_attempt());
  set_failure(result, failure);
  result.set_message(message);
  result.set_started_us(started_us);
  result.set_ended_us(wall_clock_us());
  ended_(id, std::move(result));
}

}  // namespace hpcbatch::pilot
