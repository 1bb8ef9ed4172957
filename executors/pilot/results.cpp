#include "pilot/results.hpp"

#include "pilot/base/log_line.hpp"
#include "pilot/policy/decide.hpp"
#include "pilot/policy/verdict.hpp"
#include "wire/outbox.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

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

void PilotHistory::room_held(const AttemptId& id) const {
  add("room-held", of(id));
}

void PilotHistory::room_freed(const AttemptId& id) const {
  add("room-freed", of(id));
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

namespace {

// So many results make a frame of their own.
constexpr int kResultsInFrame = 4096;
constexpr std::size_t kBytesInFrame = std::size_t{1} << 20;

/// Of a result whose output is lost.  One with outputs is worth having without it.
void drop_log(wire::Result& result) {
  result.mutable_log()->Clear();
  if (result.outputs_staged()) {
    set_log_lost(result);
  } else {
    set_output_lost(result);
  }
}

}  // namespace

const wire::Result* Results::find(const AttemptId& id) const {
  const auto at = kept_.find(id);
  return at == kept_.end() ? nullptr : &at->second;
}

bool Results::is_written(const wire::Result& result) const {
  return result.log().file() != pack_.name() ||
         (pack_.holds(result.log().last_out()) && pack_.holds(result.log().last_err()));
}

void Results::send(const AttemptId& id) {
  if (link_.is_up()) to_send_.push_back(id);
}

void Results::send_all() {
  for (const auto& [id, result] : kept_) send(id);
}

void Results::send_held_back(const std::function<bool(const AttemptId&)>& is_followed) {
  const auto ready = std::stable_partition(held_back_.begin(), held_back_.end(), is_followed);
  for (auto at = ready; at != held_back_.end(); ++at) send(*at);
  held_back_.erase(ready, held_back_.end());
}

/// A result says where the task's output is, so the output is there first.
void Results::send_written(bool urgent, Time now) {
  std::vector<AttemptId> waiting;
  for (const AttemptId& id : std::exchange(to_send_, {})) {
    const auto at = kept_.find(id);
    if (at == kept_.end()) continue;
    wire::Result& result = at->second;
    if (!is_written(result) && !pack_.is_lost()) {
      waiting.push_back(id);
      continue;
    }
    if (!is_written(result)) drop_log(result);
    // Failures may have much to say.
    if (link_.outgoing().results_size() == 0) bytes_in_frame_ = 0;
    bytes_in_frame_ += result.ByteSizeLong();
    *link_.outgoing().add_results() = result;
    link_.added(urgent, now);
    if (link_.outgoing().results_size() >= kResultsInFrame || bytes_in_frame_ >= kBytesInFrame)
      link_.send_now(now);
  }
  to_send_ = std::move(waiting);
}

void Results::link_lost() {
  held_back_.clear();
  to_send_.clear();
}

std::chrono::microseconds Results::longest_waiting() const {
  std::chrono::microseconds longest{};
  for (const AttemptId& id : to_send_) {
    if (const wire::Result* result = find(id))
      longest =
          std::max(longest, std::chrono::microseconds(result->ended_us() - result->started_us()));
  }
  return longest;
}

std::string Results::outbox_path() const {
  return self_.file.workspace + "/" + wire::outbox_name(self_.name);
}

hpcbatch::Result<void> Results::write_outbox() const {
  wire::Outbox box{self_.name, self_.incarnation, {}};
  for (const auto& [id, result] : kept_) {
    if (result.outputs_staged()) continue;
    wire::Result left = result;
    if (!is_written(result)) drop_log(left);
    box.results.push_back(left.SerializeAsString());
  }
  if (!box.results.empty()) return wire::write_outbox(outbox_path(), box);
  ::unlink(outbox_path().c_str());
  return {};
}

std::string Results::read_outbox(const std::function<void(const AttemptId&, std::size_t)>& found) {
  const std::string path = outbox_path();
  if (::access(path.c_str(), F_OK) != 0)
    return errno == ENOENT ? "" : "outbox: cannot look at " + path + ": " + std::strerror(errno);
  const auto box = wire::read_outbox(path);
  if (!box && box.error().kind == Error::Kind::Transient) return "outbox: " + box.error().text;
  if (!box) {
    log_line(box.error().text);
    ::rename(path.c_str(), (path + ".damaged").c_str());
    return {};
  }
  for (const std::string& text : box->results) {
    wire::Result result;
    if (!result.ParseFromString(text)) continue;
    const AttemptId id = from_wire(result.attempt());
    found(id, text.size());
    keep(id, std::move(result));
  }
  return {};
}

void HeldLeases::keep_environments(const wire::ToPilot& message) {
  for (const wire::Environment& environment : message.environments()) {
    auto base = std::make_shared<BaseEnvironment>(base_environment(environment));
    setup_.apply(*base);
    environments_[environment.number()] = std::move(base);
  }
}

std::shared_ptr<const BaseEnvironment> HeldLeases::environment(std::uint32_t number) const {
  const auto at = environments_.find(number);
  return at == environments_.end() ? nullptr : at->second;
}

void HeldLeases::keep(wire::ToPilot& message, const std::vector<bool>& is_new) {
  auto next = is_new.begin();
  for (wire::Start& said : *message.mutable_start()) {
    const auto start = std::make_shared<const wire::Start>(std::move(said));
    const AttemptId first = from_wire(start->attempt());
    for (std::uint32_t i = 0; i < leased_by(*start); ++i) {
      if (!*next++) continue;
      leases_[neighbour(first, i)] = {start, environment(start->environment()),
                                      environment(start->foreseen_environment()), start->follow()};
    }
  }
}

HeldLease HeldLeases::take(const AttemptId& id) {
  const auto at = leases_.find(id);
  HeldLease lease = std::move(at->second);
  leases_.erase(at);
  return lease;
}

bool HeldLeases::follow_from_start(const AttemptId& id) {
  const auto at = leases_.find(id);
  if (at == leases_.end()) return false;
  at->second.follow = true;
  return true;
}

}  // namespace hpcbatch::pilot
