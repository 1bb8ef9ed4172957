#include "pilot/policy/outbox.hpp"

#include <utility>

namespace hpcbatch::pilot {
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
