#include "pilot/policy/leaving.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kUnregistered = 10min;
// An engine that takes longer to answer has no work to lose here.
constexpr Duration kLongestAnswer = 1min;
// However many answers there are.
constexpr Duration kLongestWait = 2min;

}  // namespace

void Idleness::welcomed(Time now) {
  // An engine that still wants it there says so again.
  if (stays_until_) stays_until(now, now);
  if (welcomed_) return;
  welcomed_ = since_ = worked_ = now;
  answer_took_ = now - started_;
}

void Idleness::owed(bool is_owed, bool is_linked, Time now) {
  if (!is_owed || !is_linked) {
    owed_since_.reset();
  } else if (!owed_since_) {
    owed_since_ = now;
  }
}

void Idleness::answered(Time now) {
  if (owed_since_) answer_took_ = now - *owed_since_;
  owed_since_.reset();
  since_ = now;
}

void Idleness::stays_until(Time until, Time now) {
  // What it was kept for counts as work, also where it is kept no longer than that.
  if (stays_until_ && *stays_until_ > now) worked(now);
  stays_until_ = until > now ? std::optional(until) : std::nullopt;
}

void Idleness::suspended(Duration time) {
  started_ += time;
  since_ += time;
  worked_ += time;
  if (owed_since_) *owed_since_ += time;
}

std::optional<Time> Idleness::ends() const {
  if (limit_ == Duration{}) return std::nullopt;
  if (!welcomed_) return since_ + std::max(limit_, until_found_);
  Time end = since_ + std::max(limit_, std::min(answer_took_, kLongestAnswer));
  if (owed_since_) end = std::max(end, std::max(*owed_since_, worked_) + kLongestAnswer);
  end = std::min(end, worked_ + std::max(limit_, kLongestWait));
  return stays_until_ ? std::max(end, *stays_until_) : end;
}

std::optional<Time> Idleness::unregistered_ends() const {
  if (welcomed_) return std::nullopt;
  return started_ + kUnregistered;
}

namespace {

using namespace std::chrono_literals;

constexpr Duration kOutboxRetry = 1s;
constexpr Duration kOutboxPatience = 5min;
constexpr Duration kOutboxHaste = 20s;  // batch systems kill half a minute after TERM

}  // namespace

void Outbox::owe(std::size_t bytes) {
  ++count_;
  bytes_ += bytes;
  is_current_ = false;
}

void Outbox::acknowledged(std::size_t bytes) {
  --count_;
  bytes_ -= bytes;
  is_current_ = false;
}

bool Outbox::is_due(bool may_be_killed) const {
  return (owes() && (may_be_killed || retry_at_)) || bytes_ > write_at_ || (is_there_ && !owes());
}

bool Outbox::begin(Time now) {
  if (is_current_ || (retry_at_ && now < *retry_at_)) return false;
  if (!retry_at_) failing_since_.reset();
  retry_at_.reset();
  is_current_ = true;
  is_there_ = owes();
  write_at_ = bytes_ + kFrom;
  return true;
}

void Outbox::failed(Time now) {
  is_current_ = false;
  retry_at_ = now + kOutboxRetry;
  if (!failing_since_) failing_since_ = now;
}

std::optional<Time> Outbox::retry_at() const {
  return lacks_results() ? retry_at_ : std::nullopt;
}

bool Outbox::is_hopeless(Time now, bool in_haste) const {
  return retry_at_ && now >= *failing_since_ + (in_haste ? kOutboxHaste : kOutboxPatience);
}

bool Outbox::may_try_once_more(Time now) {
  if (!retry_at_ || now <= *retry_at_ - kOutboxRetry || std::exchange(tried_once_more_, true))
    return false;
  retry_at_ = now;
  return true;
}

}  // namespace hpcbatch::pilot
