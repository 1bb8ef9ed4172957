#include "runtime/call_lane.hpp"

#include <utility>

namespace hpcbatch {

CallLane::CallLane(asio::io_context& loop, std::chrono::milliseconds grace,
                   std::function<bool()> renew)
    : loop_(loop), grace_(grace), renew_(std::move(renew)) {}

CallLane::~CallLane() {
  lane_->leave_behind();
}

void CallLane::call(std::chrono::milliseconds limit, std::function<Work()> begin,
                    std::function<void(bool)> then) {
  waiting_.push_back(std::make_shared<Call>(
      Call{limit, std::move(begin), std::move(then), asio::steady_timer(loop_)}));
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
  lane_->run([this, &loop = loop_, call, deadline, work = call->begin()] {
    work(deadline);
    asio::post(loop, [this, call] {
      if (running_ == call) answer(call, false);
    });
  });
}

void CallLane::answer(const std::shared_ptr<Call>& call, bool given_up) {
  call->watch.cancel();
  running_.reset();
  begin_next();
  call->then(given_up);
}

}  // namespace hpcbatch
