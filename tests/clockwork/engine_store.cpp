// What the engine saves, in the order of the real writer, and what waits for it.
#include "engine_host.hpp"
#include "world.hpp"

#include <utility>

namespace hpcbatch::clockwork {

using namespace std::chrono_literals;

void EngineHost::after(WaitsFor what, std::function<void()> then) {
  switch (what) {
    case WaitsFor::Nothing:
      return then();
    case WaitsFor::Written:
    case WaitsFor::WrittenToDisk:
      order_.after_written({}, std::move(then), what == WaitsFor::WrittenToDisk);
      break;
    case WaitsFor::Disk:
    case WaitsFor::DiskAtOnce:
      order_.after_durable(std::move(then), what == WaitsFor::DiskAtOnce);
      break;
  }
  look();
}

void EngineHost::look() {
  switch (order_.due()) {
    case Order::Due::Never:
      return;
    case Order::Due::Now:
      if (!std::exchange(shipping_soon_, true)) {
        world_.clock.after(0us, if_alive([this] {
                             shipping_soon_ = false;
                             ship();
                           }));
      }
      return;
    case Order::Due::Soon:
      if (waiting_for_company_ || shipping_soon_) return;
      waiting_for_company_ = true;
      world_.clock.after(Order::kCompany, if_alive([this] {
                           waiting_for_company_ = false;
                           ship();
                         }));
  }
}

void EngineHost::ship() {
  if (order_.due() == Order::Due::Never) return;
  auto batch = std::make_shared<Order::Batch>(order_.take());
  const bool two_steps = batch->in_two_steps();
  const auto written = [this, batch, two_steps] {
    for (auto& [no_read, then] : batch->written) {
      then();
      if (!engine_) return;
    }
    const auto done = [this, batch] {
      order_.done();
      for (auto& then : batch->durable) {
        then();
        if (!engine_) return;
      }
      look();
    };
    two_steps ? commit({}, true, done) : done();
  };
  if (batch->needs_commit()) {
    commit(std::move(batch->writes), batch->needs_disk() && !two_steps, written);
  } else {
    written();
  }
}

void EngineHost::commit(std::vector<Action> writes, bool durable, std::function<void()> then) {
  Draw draw = world_.draw({'c', ++commits_});
  const bool slow = world_.clock.now() < commits_slow_until_;
  const Duration takes = slow      ? draw.between(100ms, 3s)
                         : durable ? draw.between(200us, 5ms)
                                   : draw.between(20us, 500us);
  if (slow) world_.count("fault slow_commits");
  in_flight_ = writes;
  world_.clock.after(
      takes, if_alive([this, writes = std::move(writes), durable, then = std::move(then)] {
        if (world_.clock.now() < commits_fail_until_) {
          world_.count("fault fail_commits");
          world_.clock.after(500ms, if_alive([=, this] { commit(writes, durable, then); }));
          return;
        }
        in_flight_.clear();
        apply(writes, durable);
        then();
      }));
}

void EngineHost::apply(const std::vector<Action>& writes, bool durable) {
  for (const Action& write : writes) {
    must(saved_.apply(write));
    log_.push_back({false, write});
  }
  if (durable) on_disk_ = log_.size();
}

void EngineHost::restore_what_is_on_disk() {
  // Leases do not wait for the disk: they survive the engine, not its machine.
  for (std::size_t i = on_disk_; i < log_.size(); ++i) {
    const auto* leases = std::get_if<SaveLeases>(&log_[i].action);
    if (!leases) continue;
    for (const AttemptId& attempt : leases->attempts) {
      world_.observer.lease_lost(attempt);
      world_.record("outside", "lease-lost",
                    {{"task", to_string(attempt.task)}, {"epoch", std::to_string(attempt.epoch)}});
    }
  }
  log_.resize(on_disk_);
  saved_ = {};
  for (const Entry& entry : log_) {
    entry.start ? saved_.count_start() : must(saved_.apply(entry.action));
  }
}

void EngineHost::fail_commits(Duration length) {
  commits_fail_until_ = world_.clock.now() + length;
}

void EngineHost::slow_commits(Duration length) {
  commits_slow_until_ = world_.clock.now() + length;
}

}  // namespace hpcbatch::clockwork
