#include "loop/lane.hpp"

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

}  // namespace hpcbatch
