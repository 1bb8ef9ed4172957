#include "pilot/policy/service_supervisor.hpp"

#include "pilot/policy/verdict.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

// Imports from a busy shared file system have been seen to take minutes.  So long it may say
// nothing.
constexpr Duration kStartTime = 120s;
constexpr Duration kLongestStartTime = 30min;
// A start may take that many times the longest one before.
constexpr int kTimesLongest = 3;
// And with signs of life that many times what it may be silent.
constexpr int kTimesSilent = 10;
// Shorter than this, it costs less to wait for it than to give leases back.
constexpr Duration kShortStart = 2s;
constexpr Duration kAskForTurn = 500ms;
// Whoever has the turn may be suspended.
constexpr Duration kLongestWaitForTurn = 5min;
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
void ServiceSupervisor::go_down() {
  state_ = State::Down;
  served_ = 0;
  too_large_ = false;
  takes_long_ = false;
  is_awaited_ = false;
  is_working_ = false;
  turn_at_.reset();
}

void ServiceSupervisor::wanted(const AttemptId& id) {
  waiting_.push_back({id});
}

void ServiceSupervisor::forget(const AttemptId& id) {
  std::erase_if(waiting_, [&](const Request& request) { return request.id == id; });
  // Whether the service does anything of it is still to be told.
  if (asked_ && asked_->id == id) asked_->is_wanted = false;
}

void ServiceSupervisor::foreseen(const AttemptId& id) {
  foreseen_.insert(id);
}

void ServiceSupervisor::foreseen_no_more(const AttemptId& id, Time now) {
  // What was foreseen is about to come.
  if (foreseen_.erase(id) != 0 && state_ == State::Ready && !asked_) since_ = now;
}

void ServiceSupervisor::not_started(const std::string& why, Time now) {
  go_down();
  give_up("it cannot be started: " + why, now);
}

void ServiceSupervisor::begin_start(Time now) {
  state_ = State::Starting;
  since_ = begun_ = first_begun_ = now;
}

void ServiceSupervisor::not_yet(Time now) {
  since_ = now;
  turn_at_ = now + kAskForTurn;
}

bool ServiceSupervisor::may_wait_for_turn(Time now) const {
  return now < first_begun_ + kLongestWaitForTurn;
}

void ServiceSupervisor::lives(Time now) {
  if (state_ == State::Starting) since_ = now;
}

void ServiceSupervisor::works(bool is_working, Time now) {
  is_working_ = is_working;
  if (state_ == State::Ready && !asked_) since_ = now;
}

void ServiceSupervisor::ready(Time now) {
  if (state_ != State::Starting) return;
  longest_start_ = std::max(longest_start_, now - begun_);
  state_ = State::Ready;
  since_ = now;
  takes_long_ = false;
  is_awaited_ = false;
}

void ServiceSupervisor::renewing(Time now) {
  if (state_ != State::Ready) return;
  begin_start(now);
  served_ = 0;
  // It reads the request once it is ready.
}

void ServiceSupervisor::served(Time now) {
  asked_.reset();
  since_ = now;
  ++served_;
  failures_in_a_row_ = 0;
  pause_ = {};
}

void ServiceSupervisor::unserved(const std::string& why, Time now) {
  failed("it gave a request up: " + why, now);
}

void ServiceSupervisor::died(const std::string& why, Time now) {
  const bool was_ready = state_ == State::Ready;
  go_down();
  if (was_ready) {
    failed(why, now);
  } else {
    give_up(why + " before it was ready", now);
  }
}

void ServiceSupervisor::uses(std::uint64_t memory, Time now) {
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

void ServiceSupervisor::end_asked() {
  if (state_ == State::Down || asked_ || is_working_ || !waiting_.empty()) return;
  actions_.push_back(End{"its room is wanted"});
  go_down();
  foreseen_.clear();  // else it came again at once
}

void ServiceSupervisor::suspended(Duration time) {
  since_ += time;
  begun_ += time;
  first_begun_ += time;
  if (turn_at_) *turn_at_ += time;
  if (not_before_) *not_before_ += time;
}

/// The request that it was asked for has come to nothing.
void ServiceSupervisor::failed(const std::string& why, Time now) {
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
void ServiceSupervisor::give_up(const std::string& why, Time now) {
  if (state_ != State::Down) actions_.push_back(End{why});
  go_down();
  failures_in_a_row_ = 0;
  if (asked_ && asked_->is_wanted) waiting_.push_front(*asked_);
  asked_.reset();
  pause_ = std::clamp(pause_ * 2, kFirstStartPause, kLongestStartPause);
  not_before_ = now + pause_;
  given_up_ = why;
}

/// What waits for a start that takes long waits elsewhere, but for what has seen it fail: that is
/// counted here.
void ServiceSupervisor::hand_back(Time now) {
  takes_long_ = takes_long_ || now >= first_begun_ + kShortStart;
  if (!takes_long_) return;
  std::erase_if(waiting_, [this](const Request& request) {
    if (request.failures != 0) return false;
    actions_.push_back(HandBack{request.id});
    is_awaited_ = true;
    return true;
  });
}

/// For so long it may say nothing while it starts.
Duration ServiceSupervisor::patience() const {
  const Duration said = terms_.start > Duration{} ? terms_.start : kStartTime;
  return std::max(said, std::min(kLongestStartTime, kTimesLongest * longest_start_));
}

Time ServiceSupervisor::start_deadline() const {
  return std::min(since_ + patience(), begun_ + kTimesSilent * patience());
}

void ServiceSupervisor::watch_start(Time now) {
  if (turn_at_) {
    if (now < *turn_at_) return;
    turn_at_.reset();
    // Its time runs from when it has its turn.
    since_ = begun_ = now;
    actions_.emplace_back(std::in_place_type<Start>);
  } else if (now >= start_deadline()) {
    longest_start_ = std::max(longest_start_, now - begun_);
    give_up("it was not ready after " + seconds_in(now - begun_), now);
  }
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::vector<ServiceSupervisor::Action> ServiceSupervisor::decide(Time now) {
  if (state_ == State::Starting) watch_start(now);
  if (state_ == State::Ready && asked_ && now >= since_ + kAnswerTime) {
    actions_.push_back(End{"it does not answer"});
    died("it did not answer for " + seconds_in(kAnswerTime), now);
  }
  if (state_ == State::Ready && !asked_) {
    const bool is_used_up = terms_.requests != 0 && served_ >= terms_.requests;
    const bool is_idle = waiting_.empty() && foreseen_.empty() && !is_working_ &&
                         terms_.idle > Duration{} && now >= since_ + terms_.idle;
    if (is_used_up || too_large_ || is_idle) {
      actions_.push_back(End{is_idle ? "nobody wants it" : "it is renewed"});
      go_down();
    }
  }
  if (not_before_ && now >= *not_before_) not_before_.reset();
  if (state_ == State::Down && not_before_) {
    for (const Request& request : std::exchange(waiting_, {}))
      actions_.push_back(Plain{request.id, given_up_});
  } else if (state_ == State::Down && !(waiting_.empty() && foreseen_.empty())) {
    begin_start(now);
    actions_.emplace_back(std::in_place_type<Start>);
  }
  if (state_ == State::Starting) hand_back(now);
  if (state_ == State::Ready && !asked_ && !waiting_.empty()) {
    asked_ = waiting_.front();
    waiting_.pop_front();
    since_ = now;
    actions_.push_back(Ask{asked_->id});
  }
  return std::exchange(actions_, {});
}

std::optional<Time> ServiceSupervisor::next() const {
  if (!actions_.empty()) return Time{};
  if (state_ == State::Starting) {
    const Time deadline = turn_at_ ? *turn_at_ : start_deadline();
    return takes_long_ ? deadline : std::min(deadline, first_begun_ + kShortStart);
  }
  if (state_ == State::Ready && asked_) return since_ + kAnswerTime;
  if (state_ == State::Ready && terms_.idle > Duration{} && foreseen_.empty() && !is_working_)
    return since_ + terms_.idle;
  if (state_ == State::Down && !foreseen_.empty()) return not_before_;
  return std::nullopt;
}

bool ServiceSupervisor::is_forgettable(Time now) const {
  return is_down() && waiting_.empty() && foreseen_.empty() && actions_.empty() &&
         (!not_before_ || now >= *not_before_);
}

}  // namespace hpcbatch::pilot
