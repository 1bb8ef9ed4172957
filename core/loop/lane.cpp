#include "loop/lane.hpp"

#include <system_error>
#include <utility>

namespace hpcbatch {

Lane::Lane() : state_(std::make_shared<State>()), thread_([state = state_] { serve(state); }) {}

Lane::~Lane() {
  if (!thread_.joinable()) return;
  end();
  thread_.join();
}

void Lane::run(Work work) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->work.push_back(std::move(work));
  }
  state_->changed.notify_one();
}

void Lane::end() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_one();
}

void Lane::leave_behind() {
  if (!thread_.joinable()) return;
  end();
  thread_.detach();
}

void Lane::serve(const std::shared_ptr<State>& state) {
  while (true) {
    Work next;
    {
      std::unique_lock lock(state->mutex);
      state->changed.wait(lock, [&] { return state->ending || !state->work.empty(); });
      if (state->ending) return;
      next = std::move(state->work.front());
      state->work.pop_front();
    }
    next();
  }
}

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
    go_on_elsewhere(call->number);
    answer(call, true);
  });
  lane_->run([back = back_, number = call->number, deadline, work = call->begin()] {
    work(deadline);
    const std::lock_guard lock(back->mutex);
    back->left_behind.erase(number);
    if (!back->lane) return;
    asio::post(back->lane->loop_, [back, number] {
      if (back->lane) back->lane->returned(number);
    });
  });
}

/// Threads that hang are not made without end: a process may only have so many.
void CallLane::go_on_elsewhere(std::uint64_t number) {
  {
    const std::lock_guard lock(back_->mutex);
    if (back_->left_behind.size() >= kMostLeftBehind) return;
  }
  try {
    auto fresh = std::make_unique<Lane>();
    if (!renew_()) return;
    lane_->leave_behind();
    lane_ = std::move(fresh);
  } catch (const std::system_error&) {
    return;  // there are no more threads to be had
  }
  const std::lock_guard lock(back_->mutex);
  back_->left_behind.insert(number);
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
