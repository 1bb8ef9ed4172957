// A simulated pilot's link: it connects, says what it has, hears, falls silent.
#include "pilot/policy/decide.hpp"
#include "pilot_process.hpp"
#include "world.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::clockwork {

using namespace std::chrono_literals;

namespace {

constexpr Duration kHeartbeat = 10s;   // as the real one (pilot.cpp)
constexpr Duration kMissingFor = 10s;  // as the real one (engine_link.cpp)

}  // namespace

void PilotProcess::connect() {
  if (gone_) return;
  if (tries_ > 0) {
    if (world_.workspace.pilot_files.contains(id_.allocation.name)) {
      missing_since_.reset();
    } else if (!missing_since_) {
      missing_since_ = world_.clock.now();
    } else if (world_.clock.now() >= *missing_since_ + kMissingFor) {
      hears([self = shared_from_this()] {
        self->decide_->must_leave(pilot::LeaveCause::GivenUp, self->now_);
      });
      return;
    }
  }
  ++tries_;
  const auto link = std::make_shared<Link>(world_.clock, draw_.of({'l', draw_.next()}));
  const auto again = [self = shared_from_this()] {
    const Duration pause = std::min<Duration>(50ms * (1U << std::min(self->tries_, 10U)), 2s);
    self->world_.clock.after(pause / 2 + self->draw_.between(0us, pause),
                             [self] { self->connect(); });
  };
  world_.clock.after(draw_.between(1ms, 20ms), [self = shared_from_this(), link, again] {
    if (self->gone_ || self->frozen_since_ || !self->world_.engine.accept(self->id_, link)) {
      if (!self->gone_) again();
      return;
    }
    self->link_ = link;
    link->begin();
    link->attach(Link::End::Pilot, {[self, link](const std::string& bytes) {
                                      self->hears([self, link, bytes] {
                                        if (self->link_ == link) self->heard(bytes);
                                      });
                                    },
                                    [self, link, again] {
                                      self->hears([self, link, again] {
                                        if (self->link_ != link) return;
                                        self->link_down();
                                        again();
                                      });
                                    }});
    self->tries_ = 1;
    self->hears([self] { self->link_up(); });
  });
}

void PilotProcess::put_capacity(google::protobuf::RepeatedPtrField<wire::Amount>& into) const {
  into.Clear();
  for (const auto& [name, amount] : decide_->capacity()) {
    wire::Amount* thing = into.Add();
    thing->set_name(name);
    thing->set_value(amount);
  }
}

void PilotProcess::link_up() {
  up_ = true;
  outgoing_.Clear();
  wire::Register& registration = *outgoing_.mutable_registration();
  registration.set_node(node_.name);
  put_capacity(*registration.mutable_capacity());
  std::int64_t left = -1;
  if (usable_until_) {
    using std::chrono::milliseconds;
    left = std::max<std::int64_t>(
        0, std::chrono::duration_cast<milliseconds>(*usable_until_ - steady()).count());
  }
  registration.set_time_left_ms(left);
  say_held(*decide_, registration);
  registration.set_batch_number(number_);
  registration.set_incarnation(incarnation_);
  if (node_.unfit) registration.add_refusals("its disk is full");
  if (!leaving_.empty()) {
    outgoing_.set_leaving(true);
    outgoing_.set_leaving_reason(leaving_);
  }
  // Some have the service of every task, others of none; nothing is forked here.
  if (world_.draw({'w', incarnation_}).chance(40))
    outgoing_.mutable_warm()->add_services(kSharedService);
  started_.clear();  // it is in what it holds
  say_results();
  added(true);
  beat(link_);
}

/// A sign of life where nothing else was said: what was lost before it is missed then.
void PilotProcess::beat(const std::shared_ptr<Link>& link) {
  world_.clock.after(kHeartbeat, [self = shared_from_this(), link] {
    if (self->gone_ || self->link_ != link || !self->up_) return;
    self->hears([self, link] {
      if (self->link_ != link) return;
      if (self->world_.clock.now() - self->last_sent_ >= kHeartbeat) {
        self->outgoing_.set_heartbeat(1);
        self->added(true);
      }
      self->beat(link);
    });
  });
}

void PilotProcess::say_results() {
  if (!up_) return;
  outgoing_.clear_results();
  for (const auto& [id, result] : results_) *outgoing_.add_results() = result;
  any_outgoing_ = any_outgoing_ || outgoing_.results_size() != 0;
}

void PilotProcess::link_down() {
  link_.reset();
  if (!std::exchange(up_, false)) return;
  outgoing_.Clear();
  any_outgoing_ = false;
  decide_->link_lost();
  record("link-lost");
}

void PilotProcess::heard(const std::string& bytes) {
  wire::ToPilot message;
  if (!message.ParseFromString(bytes)) return world_.fail("a frame cannot be read");
  pilot::apply_message(*decide_, message, now_);
  for (const wire::Start& start : message.start())
    if (start.holds_room()) claims_.insert(pilot::from_wire(start.attempt()));
  if (message.welcome()) record("linked");
  if (message.has_stay_ms()) record("stays", {{"ms", std::to_string(message.stay_ms())}});
  if (message.fenced()) {
    record("fenced");
    world_.observer.fenced(*this);
  }
}

void PilotProcess::added(bool urgent) {
  any_outgoing_ = true;
  if (!urgent && flushing_) return;
  flushing_ = true;
  world_.clock.after(urgent ? 0ms : 20ms, [self = shared_from_this()] {
    if (self->gone_) return;
    // A process that stands still sends nothing.
    if (self->frozen_since_) {
      self->while_frozen_.push_back([self] { self->send_now(); });
    } else {
      self->send_now();
    }
  });
}

void PilotProcess::send_now() {
  flushing_ = false;
  if (!up_ || !any_outgoing_ || !link_) return;
  for (const pilot::AttemptId& id : started_) {
    if (decide_->state_of(id) == pilot::Decide::State::Running)
      pilot::to_wire(id, outgoing_.add_started());
  }
  started_.clear();
  last_sent_ = world_.clock.now();
  link_->send(Link::End::Pilot, outgoing_.SerializeAsString());
  outgoing_.Clear();
  any_outgoing_ = false;
}

}  // namespace hpcbatch::clockwork
