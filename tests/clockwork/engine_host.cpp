#include "engine_host.hpp"

#include "world.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::clockwork {

using namespace std::chrono_literals;

EngineHost::EngineHost(World& world) : world_(world) {}

std::function<void()> EngineHost::if_alive(std::function<void()> then) {
  return [this, life = life_, then = std::move(then)] {
    if (life == life_ && engine_) then();
  };
}

void EngineHost::start() {
  ++life_;
  sent_.clear();
  configured_ = world_.scenario().sites;
  std::erase_if(configured_, [&](const Site& site) { return site.name == left_out_; });
  left_out_.clear();
  world_.batch.only_these_are_asked(configured_);
  saved_.count_start();
  log_.push_back({true, EngineIdle{}});
  on_disk_ = log_.size();
  const Snapshot snapshot = saved_.snapshot();
  note(noted_at_start(snapshot, configured_));
  const auto noting = [this, next = saved_.live_arrays()] {
    const LiveArray* live = next();
    if (live) note({noted_restored(*live)});
    return live;
  };
  engine_ = std::make_unique<Engine>(configured_, snapshot, noting, world_.scenario().seed,
                                     world_.clock.now());
  note(noted_restored(snapshot));
  world_.observer.engine_started(saved_);
  world_.users.engine_started();
  feed(TimePassed{});
  for (const Site& site : configured_) {
    world_.batch.find_left(
        site.name, [this, life = life_, name = site.name](const std::vector<AllocationId>& left) {
          for (const AllocationId& id : left) {
            if (life == life_ && engine_ && !engine_->sites().find(id))
              world_.batch.forget({id, name});
          }
        });
  }
}

void EngineHost::feed(const Event& event) {
  if (!engine_ || stopping_ || world_.has_failed()) return;
  world_.observer.event(event);
  const Actions actions = engine_->on(event, world_.clock.now());
  for (const Action& action : actions) {
    if (actions_left_ && (*actions_left_)-- == 0) return die();
    world_.observer.action(action);
    note(noted_before(event, action));
    perform(action);
    note(noted_after(action));
  }
  arm_timer();
}

void EngineHost::arm_timer() {
  const auto wake = engine_->next_wake();
  if (wake && timer_at_ == wake) return;
  timer_at_ = wake;
  if (!wake) return;
  world_.clock.at(*wake, if_alive([this, at = *wake] {
    if (timer_at_ != at) return;
    timer_at_.reset();
    feed(TimePassed{});
  }));
}

void EngineHost::kill_after(std::uint64_t actions, Duration down, bool power) {
  if (!engine_) return;
  down_ = down;
  power_ = power;
  if (actions == 0) return die();
  actions_left_ = actions;
}

bool EngineHost::knows_all_sites() const {
  return left_out_.empty() && configured_.size() == world_.scenario().sites.size();
}

void EngineHost::stop(StopAsked::Mode mode, Duration down) {
  if (!engine_ || engine_->is_draining()) return;
  down_ = down;
  power_ = false;
  feed(StopAsked{mode});
}

void EngineHost::die() {
  world_.count(std::exchange(stopping_, false) ? "fault stop_engine"
               : power_                        ? "fault lose_power"
                                               : "fault kill_engine");
  ++life_;
  engine_.reset();
  actions_left_.reset();
  timer_at_.reset();
  for (auto* links : {&links_, &unproven_}) {
    for (auto& [pilot, link] : *links) link->link->vanish(Link::End::Engine);
    links->clear();
  }
  // A commit that was under way is there or it is not.
  Draw draw = world_.draw({'d', life_});
  if (!in_flight_.empty() && draw.chance(50)) apply(in_flight_, false);
  in_flight_.clear();
  shipping_soon_ = waiting_for_company_ = false;
  order_ = {};
  if (power_) {
    restore_what_is_on_disk();
    world_.batch.machine_lost_power();
  }
  world_.users.engine_died();
  world_.clock.after(down_, [this, life = life_] {
    if (life == life_) start();
  });
}

// --- the API ----------------------------------------------------------------------

void EngineHost::submit(TasksSubmitted event) {
  // What it waits for and the engine does not hold is read behind everything that was saved before.
  bool all_held = true;
  for (const NewArray& array : event.arrays) {
    for (const Dependency& on : array.after) all_held = all_held && engine_->tasks().find(on.array);
  }
  if (all_held) return feed(event);
  after(WaitsFor::Written, [this, event = std::move(event)]() mutable {
    for (const NewArray& array : event.arrays) {
      for (const Dependency& on : array.after) {
        if (!engine_->tasks().find(on.array)) event.ended.push_back(saved_.ended(on.array));
      }
    }
    feed(event);
  });
}

void EngineHost::retry(RequestId request, ArrayId array) {
  after(WaitsFor::Written, [this, request, array] {
    // As the real one: what ended while it was looked up has other results than those.
    const auto ended_meanwhile = [this](ArrayId id) {
      return saved_.is_live(id) && !engine_->tasks().find(id);
    };
    const std::vector<Dependency>& after_these = saved_.facts(array).after;
    if (ended_meanwhile(array) ||
        std::any_of(after_these.begin(), after_these.end(),
                    [&](const Dependency& on) { return ended_meanwhile(on.array); })) {
      return retry(request, array);
    }
    RetryAsked event{request, {saved_.revived(array, saved_.facts(array).indices)}, {}};
    if (event.arrays[0].array.indices.empty()) return;
    if (request.value % 3 == 0) {
      // Less fits wherever what there was did.
      Resources& amounts = event.arrays[0].array.needs.amounts;
      amounts.set(kMemory, Amount::of(amounts.get(kMemory).whole() / 2));
      event.arrays[0].has_new_needs = true;
    }
    for (const Dependency& on : after_these) {
      if (!saved_.is_live(on.array)) event.ended.push_back(saved_.ended(on.array));
    }
    feed(event);
  });
}

}  // namespace hpcbatch::clockwork
