// How a pilot ends: it starts nothing more, writes down what nobody has acknowledged, and goes when
// it is empty.
#include "pilot/policy/decide.hpp"

#include <algorithm>
#include <variant>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFarewell = 5s;       // for acknowledgements, and leases that cross our leaving
constexpr Duration kTellRefusals = 30s;  // for a link to tell the engine why we start nothing
constexpr Duration kOutboxRetry = 1s;
constexpr Duration kOutboxPatience = 5min;
constexpr Duration kOutboxHaste = 20s;  // batch systems kill half a minute after TERM

}  // namespace

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
  if (outbox_is_current_ || (outbox_retry_at_ && now < *outbox_retry_at_)) return;
  if (!outbox_retry_at_) outbox_failing_since_.reset();
  outbox_retry_at_.reset();
  actions_.push_back(WriteOutbox{});
  outbox_is_current_ = true;
  has_outbox_ = unacknowledged_ > 0;
  outbox_at_ = unacknowledged_bytes_ + kOutboxFrom;
}

void Decide::outbox_failed(Time now) {
  outbox_is_current_ = false;
  outbox_retry_at_ = now + kOutboxRetry;
  if (!outbox_failing_since_) outbox_failing_since_ = now;
}

bool Decide::outbox_is_hopeless(Time now) const {
  if (!outbox_retry_at_) return false;
  const bool no_time = terms_.usable_until && now >= *terms_.usable_until + terms_.margin;
  return no_time || now >= *outbox_failing_since_ + (haste_since_ ? kOutboxHaste : kOutboxPatience);
}

void Decide::leave_if_done(Time now) {
  if (phase_ == Phase::Draining && is_empty()) {
    phase_ = Phase::Leaving;
    empty_since_ = now;
    if (unacknowledged_ > 0) write_outbox(now);
  }
  if (phase_ != Phase::Leaving) return;
  const bool nothing_owed = haste_since_ && unacknowledged_ == 0;
  const bool somebody_listens = linked_ || (checks_failed_ && !idleness_.welcomed_at());
  if (!no_engine_ && !nothing_owed && somebody_listens && now < farewell_ends()) return;
  if (unacknowledged_ > 0 && !outbox_is_current_) {
    const bool hopeless = outbox_is_hopeless(now);
    // It may have become possible since it was tried last.
    const bool once_more = hopeless && now > *outbox_retry_at_ - kOutboxRetry &&
                           !std::exchange(tried_once_more_, true);
    if (once_more) outbox_retry_at_ = now;
    if (!hopeless || once_more) {
      write_outbox(now);
      return;
    }
  }
  // Whether it can be written is to be known before we go.
  const auto is_outbox = [](const Action& action) {
    return std::holds_alternative<WriteOutbox>(action);
  };
  if (unacknowledged_ > 0 && std::any_of(actions_.begin(), actions_.end(), is_outbox)) return;
  actions_.push_back(Exit{exit_code_});
  phase_ = Phase::Gone;
}

Time Decide::farewell_ends() const {
  if (!checks_failed_) return *empty_since_ + kFarewell;
  const auto welcomed = idleness_.welcomed_at();
  return welcomed ? *welcomed + kFarewell : *empty_since_ + kTellRefusals;
}

}  // namespace hpcbatch::pilot
