#include "runtime/call_lane.hpp"

#include <utility>

namespace hpcbatch {

CallLane::CallLane(asio::io_context& loop, std::chrono::milliseconds grace,
                   std::function<bool()> renew)
    : loop_(loop), grace_(grace), renew_(std::move(renew)), back_(std::make_shared<Back>()) {
  back_->lane = this;
}

CallLane::~CallLane() {
  {
    const std::lock_guard lock(back_->mutex);
    back_->lane = nullptr;
  }
  lane_->leave_behind();
}

void CallLane::call(std::chrono::milliseconds limit, std::function<Work()> begin,
                    std::function<void(bool)> then) {
  waiting_.push_back(std::make_shared<Call>(
      Call{++calls_, limit, std::move(begin), std::move(then), asio::steady_timer(loop_)}));
  begin_next();
}

void CallLane::begin_next() {
  if (running_ || waiting_.empty()) return;
  running_ = std::move(waiting_.front());
  waiting_.pop_front();
  const std::shared_ptr<Call> call = running_;
  const Deadline deadline = std::chrono::steady_clock::now() + call->limit;
  call->watch.expires_at(deadline + grace_);
  call->watch.async_wait([this, call](const boost::system::error_code& error) {
    // A call that has just come back may be on its way here.
    if (error || running_ != call) return;
    if (renew_()) {
      lane_->leave_behind();
      lane_ = std::make_unique<Lane>();
    }
    answer(call, true);
  });
  lane_->run([back = back_, number = call->number, deadline, work = call->begin()] {
    work(deadline);
    const std::lock_guard lock(back->mutex);
    if (!back->lane) return;
    asio::post(back->lane->loop_, [back, number] {
      if (back->lane) back->lane->returned(number);
    });
  });
}

/// One that was given up may come back long after.
void CallLane::returned(std::uint64_t number) {
  if (running_ && running_->number == number) answer(std::shared_ptr(running_), false);
}

void CallLane::answer(const std::shared_ptr<Call>& call, bool given_up) {
  call->watch.cancel();
  running_.reset();
  begin_next();
  call->then(given_up);
}

}  // namespace hpcbatch
