#include "service_care.hpp"

#include "verdict.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

// Imports from a busy shared file system have been seen to take half a minute.
constexpr Duration kStartTime = 120s;
// A fork takes milliseconds.
constexpr Duration kAnswerTime = 20s;
// A request that has failed so often is not sent again.
constexpr unsigned kTries = 2;
// So many failures, none of them on a start, and the service itself is not trusted.
constexpr unsigned kFailuresInARow = 3;
constexpr Duration kFirstStartPause = 10s;
constexpr Duration kLongestStartPause = 10min;

std::string seconds_in(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

/// There is no process of it any more.
void ServiceCare::go_down() {
  state_ = State::Down;
  served_ = 0;
  too_large_ = false;
}

void ServiceCare::wanted(const AttemptId& id) {
  waiting_.push_back({id});
}

void ServiceCare::forget(const AttemptId& id) {
  std::erase_if(waiting_, [&](const Request& request) { return request.id == id; });
  // Whether the service does anything of it is still to be told.
  if (asked_ && asked_->id == id) asked_->is_wanted = false;
}

void ServiceCare::not_started(const std::string& why, Time now) {
  go_down();
  give_up("it cannot be started: " + why, now);
}

void ServiceCare::ready(Time now) {
  if (state_ != State::Starting) return;
  state_ = State::Ready;
  since_ = now;
}

void ServiceCare::renewing(Time now) {
  if (state_ != State::Ready) return;
  state_ = State::Starting;
  since_ = now;
  served_ = 0;
  // It reads the request once it is ready.
}

void ServiceCare::served(Time now) {
  asked_.reset();
  since_ = now;
  ++served_;
  failures_in_a_row_ = 0;
  pause_ = {};
}

void ServiceCare::unserved(const std::string& why, Time now) {
  failed("it gave a request up: " + why, now);
}

void ServiceCare::died(const std::string& why, Time now) {
  const bool was_ready = state_ == State::Ready;
  go_down();
  if (was_ready) {
    failed(why, now);
  } else {
    give_up(why + " before it was ready", now);
  }
}

void ServiceCare::uses(std::uint64_t memory, Time now) {
  if (terms_.memory == 0 || memory <= terms_.memory || is_down()) return;
  if (state_ == State::Ready && !asked_) {
    too_large_ = true;  // it is renewed between two requests
    return;
  }
  actions_.push_back(End{"it used " + in_words(memory) + " of " + in_words(terms_.memory)});
  died(
      "it used " + in_words(memory) + ", more than the " + in_words(terms_.memory) + " that it may",
      now);
}

void ServiceCare::end_asked() {
  if (state_ == State::Down || asked_ || !waiting_.empty()) return;
  actions_.push_back(End{"its room is wanted"});
  go_down();
}

void ServiceCare::suspended(Duration time) {
  since_ += time;
  if (not_before_) *not_before_ += time;
}

/// The request that it was asked for has come to nothing.
void ServiceCare::failed(const std::string& why, Time now) {
  ++failures_in_a_row_;
  if (asked_) {
    Request request = *asked_;
    asked_.reset();
    if (!request.is_wanted) {
      // Nobody has to hear of it.
    } else if (++request.failures >= kTries) {
      actions_.push_back(Plain{request.id, why});
    } else {
      waiting_.push_front(request);
    }
  }
  if (failures_in_a_row_ >= kFailuresInARow) give_up(why, now);
}

/// For a while its tasks do without it.
void ServiceCare::give_up(const std::string& why, Time now) {
  if (state_ != State::Down) actions_.push_back(End{why});
  go_down();
  failures_in_a_row_ = 0;
  if (asked_ && asked_->is_wanted) waiting_.push_front(*asked_);
  asked_.reset();
  pause_ = std::clamp(pause_ * 2, kFirstStartPause, kLongestStartPause);
  not_before_ = now + pause_;
  given_up_ = why;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::vector<ServiceCare::Action> ServiceCare::decide(Time now) {
  if (state_ == State::Starting && now >= since_ + kStartTime) {
    give_up("it was not ready after " + seconds_in(kStartTime), now);
  }
  if (state_ == State::Ready && asked_ && now >= since_ + kAnswerTime) {
    actions_.push_back(End{"it does not answer"});
    died("it did not answer for " + seconds_in(kAnswerTime), now);
  }
  if (state_ == State::Ready && !asked_) {
    const bool is_used_up = terms_.requests != 0 && served_ >= terms_.requests;
    const bool is_idle =
        waiting_.empty() && terms_.idle > Duration{} && now >= since_ + terms_.idle;
    if (is_used_up || too_large_ || is_idle) {
      actions_.push_back(End{is_idle ? "nobody wants it" : "it is renewed"});
      go_down();
    }
  }
  if (not_before_ && now >= *not_before_) not_before_.reset();
  if (state_ == State::Down && !waiting_.empty()) {
    if (not_before_) {
      for (const Request& request : std::exchange(waiting_, {}))
        actions_.push_back(Plain{request.id, given_up_});
    } else {
      state_ = State::Starting;
      since_ = now;
      actions_.emplace_back(std::in_place_type<Start>);
    }
  }
  if (state_ == State::Ready && !asked_ && !waiting_.empty()) {
    asked_ = waiting_.front();
    waiting_.pop_front();
    since_ = now;
    actions_.push_back(Ask{asked_->id});
  }
  return std::exchange(actions_, {});
}

std::optional<Time> ServiceCare::next() const {
  if (!actions_.empty()) return Time{};
  if (state_ == State::Starting) return since_ + kStartTime;
  if (state_ == State::Ready && asked_) return since_ + kAnswerTime;
  if (state_ == State::Ready && terms_.idle > Duration{}) return since_ + terms_.idle;
  return std::nullopt;
}

bool ServiceCare::is_forgettable(Time now) const {
  return is_down() && waiting_.empty() && actions_.empty() && (!not_before_ || now >= *not_before_);
}

}  // namespace hpcbatch::pilot
