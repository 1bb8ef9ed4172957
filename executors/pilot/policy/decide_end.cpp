// How a pilot ends: it starts nothing more, writes down what nobody has acknowledged, and goes when
// it is empty.
#include "pilot/policy/decide.hpp"

#include "planted/planted.hpp"

#include <algorithm>
#include <iterator>
#include <variant>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFarewell = 5s;       // for acknowledgements, and leases that cross our leaving
constexpr Duration kTellRefusals = 30s;  // for a link to tell the engine why we start nothing

}  // namespace

void Decide::must_leave(LeaveCause cause, Time now) {
  switch (cause) {
    case LeaveCause::EngineEnds:
      return engine_ends(now);
    case LeaveCause::Fenced:
      return fenced(now);
    case LeaveCause::GivenUp:
      return given_up();
    case LeaveCause::ChecksFailed:
      checks_failed_ = true;
      exit_code_ = 4;
      return leave("failed checks");
    case LeaveCause::WorkspaceFailed:
      return leave("workspace failed");
    case LeaveCause::GpusFailed:
      return leave("its GPUs failed");
    case LeaveCause::Terminated:
      return terminated(now);
    case LeaveCause::KeeperDied:
      return keeper_died(now);
  }
}

void Decide::engine_ends(Time now) {
  leave("drained");
  no_engine_ = true;
  stop_running(Failure::PilotKilled, "the engine ended the pilot", false, now);
  fail_staged(Failure::PilotKilled, "the engine ended the pilot before the outputs were published");
}

void Decide::fenced(Time now) {
  if (HPCBATCH_PLANTED(fence_not_heard)) return;
  results_wanted_ = false;
  no_engine_ = true;
  for (auto& [id, held] : held_) {
    held.silent = true;
    if (held.state == State::Staged) {
      actions_.push_back(Discard{id});
      held.state = State::Delivered;
      --counts_.staged;
      outbox_.owe(0);
    }
  }
  stop_running(Failure::Cancelled, "", true, now);
  leave("fenced");
  // What lies in the outbox may be an earlier process's, and the engine has yet to read it.
  outbox_.leave_alone();
  for (auto at = held_.begin(); at != held_.end();) {
    const auto next = std::next(at);
    if (at->second.state == State::Delivered) forget(at);
    at = next;
  }
}

void Decide::given_up() {
  leave("given up");
  no_engine_ = true;
  fail_staged(Failure::PilotKilled,
              "the engine gave the pilot up before the outputs were published");
}

void Decide::terminated(Time now) {
  const bool at_end = time_is_up(now);
  leave(at_end ? "walltime" : "terminated");
  if (!haste_since_) haste_since_ = now;
  stop_running(
      at_end ? Failure::PilotWalltime : Failure::PilotKilled,
      at_end ? "the pilot's time was used up" : "the batch system or a person ended the pilot",
      false, now);
}

void Decide::keeper_died(Time now) {
  leave("terminated");
  no_engine_ = true;
  stop_running(Failure::PilotKilled, "the pilot was killed", true, now);
}

void Decide::leave(const std::string& reason) {
  if (phase_ != Phase::Working) {
    return_waiting();
    return;
  }
  phase_ = Phase::Draining;
  return_waiting();
  actions_.push_back(SayLeaving{reason});
}

void Decide::write_outbox(Time now) {
  if (outbox_.begin(now)) actions_.push_back(WriteOutbox{});
}

bool Decide::outbox_is_hopeless(Time now) const {
  const bool no_time = terms_.usable_until && now >= *terms_.usable_until + terms_.margin;
  return outbox_.has_failed() && (no_time || outbox_.is_hopeless(now, haste_since_.has_value()));
}

void Decide::leave_if_done(Time now) {
  if (phase_ == Phase::Draining && is_empty()) {
    phase_ = Phase::Leaving;
    empty_since_ = now;
    if (outbox_.owes()) write_outbox(now);
  }
  if (phase_ != Phase::Leaving) return;
  const bool nothing_owed = haste_since_ && !outbox_.owes();
  const bool somebody_listens = linked_ || (checks_failed_ && !idleness_.welcomed_at());
  if (!no_engine_ && !nothing_owed && somebody_listens && now < farewell_ends()) return;
  if (outbox_.lacks_results()) {
    const bool hopeless = outbox_is_hopeless(now);
    if (!hopeless || outbox_.may_try_once_more(now)) {
      write_outbox(now);
      return;
    }
  }
  // Whether it can be written is to be known before we go.
  const auto is_outbox = [](const Action& action) {
    return std::holds_alternative<WriteOutbox>(action);
  };
  if (outbox_.owes() && std::any_of(actions_.begin(), actions_.end(), is_outbox)) return;
  actions_.push_back(Exit{exit_code_});
  phase_ = Phase::Gone;
}

Time Decide::farewell_ends() const {
  if (!checks_failed_) return *empty_since_ + kFarewell;
  const auto welcomed = idleness_.welcomed_at();
  return welcomed ? *welcomed + kFarewell : *empty_since_ + kTellRefusals;
}

}  // namespace hpcbatch::pilot
