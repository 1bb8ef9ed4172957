// The engine's ends of the links to its pilots.
#include "engine_host.hpp"
#include "links/pilot_messages.hpp"
#include "world.hpp"

namespace hpcbatch::clockwork {

using namespace std::chrono_literals;

bool EngineHost::accept(const PilotId& pilot, const std::shared_ptr<Link>& link) {
  if (!engine_ || !engine_->sites().find(pilot.allocation)) return false;
  auto held = std::make_shared<PilotLink>(PilotLink{link, pilot});
  const std::weak_ptr<PilotLink> weak = held;
  const auto alive = [this, life = life_, weak](auto then) {
    const auto here = weak.lock();
    if (life == life_ && engine_ && here) then(here);
  };
  link->attach(
      Link::End::Engine,
      {[this, held, alive](const std::string& bytes) {
         alive([&](const std::shared_ptr<PilotLink>& here) { received(here, bytes); });
       },
       [this, alive] { alive([&](const std::shared_ptr<PilotLink>& here) { closed(here); }); }});
  return true;
}

void EngineHost::received(const std::shared_ptr<PilotLink>& link, const std::string& bytes) {
  wire::ToEngine message;
  if (!message.ParseFromString(bytes)) return world_.fail("a frame cannot be read");
  // Each of these pilots is honest, whatever happens to it and to the engine.
  const auto said_too_much = beyond_limits(link->pilot, message);
  if (said_too_much) return world_.fail(*said_too_much);
  const auto overstep = engine_->overstep(claims_of(link->pilot, message));
  if (overstep && (message.has_registration() || link_of(link->pilot) == link))
    return world_.fail(to_string(link->pilot) + " is said to be no honest pilot: " + *overstep);
  if (message.has_registration()) {
    link->incarnation = message.registration().incarnation();
    unproven_[link->pilot] = link;
    feed(registration_of(link->pilot, message));
    unproven_.erase(link->pilot);
    if (!engine_) return;
    measure(link);
  }
  if (message.heartbeat() != 0 && link_of(link->pilot) == link)
    outgoing(link).set_heartbeat(message.heartbeat());
  for (const Event& event : events_of(link->pilot, message, world_.clock.now())) {
    if (!engine_ || link_of(link->pilot) != link)
      return;  // not welcomed, or replaced by a newer one
    if (const auto* ended = std::get_if<AttemptsEnded>(&event)) {
      feed_ends(*ended);
    } else {
      feed(event);
    }
  }
}

void EngineHost::feed_ends(AttemptsEnded ended) {
  const auto far = [&](const AttemptEnd& end) -> std::optional<PilotId> {
    const ArrayState* array = engine_->tasks().find(end.attempt.task.array);
    return array && array->needs_files() ? std::optional(ended.pilot) : std::nullopt;
  };
  StageOutPending coming{ended.pilot, world_.files.fetch(ended.ends, far, answer())};
  if (!ended.ends.empty()) feed(ended);
  if (engine_ && !coming.attempts.empty()) feed(coming);
}

void EngineHost::feed_outbox(OutboxRead read) {
  const auto far = [&](const AttemptEnd& end) -> std::optional<PilotId> {
    const ArrayState* array = engine_->tasks().find(end.attempt.task.array);
    const Lease* lease = engine_->pilots().lease(end.attempt.task);
    if (!array || !array->needs_files() || !lease || lease->attempt != end.attempt)
      return std::nullopt;
    return lease->pilot;
  };
  read.coming = world_.files.fetch(read.results, far, answer());
  feed(read);
}

/// What heartbeats would tell of it: some are said to be very far, be they or not.
void EngineHost::measure(const std::shared_ptr<PilotLink>& link) {
  Draw draw = world_.draw({'m', link->incarnation});
  const Duration trip = draw.chance(60) ? draw.between(0ms, 20ms) : draw.between(100ms, 8s);
  world_.clock.after(draw.between(1ms, 2s), if_alive([this, link, trip] {
                       if (link_of(link->pilot) == link) feed(LinkMeasured{link->pilot, trip});
                     }));
}

void EngineHost::closed(const std::shared_ptr<PilotLink>& link) {
  if (link_of(link->pilot) != link) return;
  links_.erase(link->pilot);
  feed(PilotDisconnected{link->pilot});
}

std::optional<Time> EngineHost::sent_at(const Lease& lease) const {
  if (lease.attempt.engine_start() != saved_.starts()) return Time{};  // in an earlier life
  const auto at = sent_.find(lease.attempt.epoch);
  return at == sent_.end() ? std::nullopt : std::optional(at->second);
}

std::shared_ptr<EngineHost::PilotLink> EngineHost::link_of(const PilotId& pilot) const {
  const auto at = links_.find(pilot);
  return at == links_.end() ? nullptr : at->second;
}

/// All that one turn of the loop adds goes out in one frame.
wire::ToPilot& EngineHost::outgoing(const std::shared_ptr<PilotLink>& link) {
  if (!link->outgoing) {
    link->outgoing = std::make_unique<wire::ToPilot>();
    world_.clock.after(Duration{0}, if_alive([link] {
                         link->link->send(Link::End::Engine, link->outgoing->SerializeAsString());
                         link->outgoing.reset();
                         if (link->closing) link->link->close(Link::End::Engine);
                       }));
  }
  return *link->outgoing;
}

void EngineHost::welcome(const WelcomePilot& action) {
  const std::shared_ptr<PilotLink> link = unproven_.at(action.pilot);
  const std::shared_ptr<PilotLink> before = std::exchange(links_[action.pilot], link);
  if (before) before->link->close(Link::End::Engine);
  say(action, outgoing(link));
}

void EngineHost::fence(const FencePilot& action) {
  for (const auto* links : {&unproven_, &links_}) {
    const auto at = links->find(action.pilot);
    if (at == links->end() || at->second->incarnation != action.incarnation) continue;
    const std::shared_ptr<PilotLink> link = at->second;
    say(action, outgoing(link));
    link->closing = true;
  }
}

std::vector<std::shared_ptr<Link>> EngineHost::links() const {
  std::vector<std::shared_ptr<Link>> all;
  for (const auto& [pilot, link] : links_) all.push_back(link->link);
  return all;
}

}  // namespace hpcbatch::clockwork
