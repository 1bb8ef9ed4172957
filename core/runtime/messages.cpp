// What pilots say becomes events.
#include "links/pilot_messages.hpp"
#include "loop/crash_point.hpp"
#include "runtime/runtime.hpp"
#include "sites/attempts.hpp"

#include <spdlog/spdlog.h>

namespace hpcbatch {
void Runtime::received(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message) {
  const PilotId pilot = link->pilot();
  if (message.has_registration()) registered(link, message);
  const auto current = links_.find(pilot);
  if (current == links_.end() || current->second != link)
    return;  // not welcomed, or replaced by a newer link
  measure(link, message.heartbeat());

  for (const wire::Chunk& chunk : message.chunks()) {
    const AttemptId attempt = from_wire(chunk.attempt());
    const Lease* lease = engine_->pilots().lease(attempt.task);
    if (lease && lease->attempt == attempt)
      followers_.chunk(attempt, chunk.stream(), chunk.offset(), chunk.data());
  }
  for (const wire::InputWanted& wanted : message.input_wanted()) {
    const AttemptId attempt = from_wire(wanted.attempt());
    const Lease* lease = engine_->pilots().lease(attempt.task);
    if (!lease || lease->attempt != attempt) continue;
    inputs_.wanted(attempt.task, wanted.offset(), wanted.ended());
    send_input(attempt.task);
  }
  if (message.results_size() != 0) crash_point("result-received");
  for (Event& event : events_of(pilot, message, now())) {
    if (auto* ended = std::get_if<AttemptsEnded>(&event)) {
      feed_ends(std::move(*ended));
    } else {
      feed(event);
    }
  }
}

void Runtime::registered(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message) {
  const wire::Register& said = message.registration();
  const PilotRegistered event = registration_of(link->pilot(), message);
  link->incarnation = said.incarnation();
  link->way = said.link();
  spdlog::info("pilot {} registers from {} by {}, holding {}", to_string(event.pilot), said.node(),
               said.link(), said.held_size());
  unproven_[event.pilot] = link;
  feed(event);
  unproven_.erase(event.pilot);
  crash_point("pilot-registered");
}

/// A pilot that says more than that it lives is at work.
void Runtime::measure(const std::shared_ptr<PilotLink>& link, std::uint64_t heartbeat) {
  const auto moment = std::chrono::steady_clock::now();
  if (RoundTrip::is_ours(heartbeat)) {
    if (const auto trip = link->round_trip.answered(heartbeat, moment)) {
      spdlog::debug("to pilot {} and back it takes {} ms", to_string(link->pilot()),
                    std::chrono::duration_cast<std::chrono::milliseconds>(*trip).count());
      feed(LinkMeasured{link->pilot(), *trip});
    }
  } else if (heartbeat != 0) {
    link->outgoing().set_heartbeat(heartbeat);
  } else if (const auto number = link->round_trip.ask(moment)) {
    link->outgoing().set_heartbeat(*number);
  }
}

void Runtime::closed(const std::shared_ptr<PilotLink>& link) {
  if (!link->established()) return;
  const auto current = links_.find(link->pilot());
  if (current == links_.end() || current->second != link) return;
  links_.erase(current);
  spdlog::info("the link to pilot {} ended", to_string(link->pilot()));
  feed(PilotDisconnected{link->pilot()});
}

/// A new link knows nothing of who reads along: they are told of again.
void Runtime::follow_again(const PilotId& pilot) {
  for (const auto& [task, id] : followers_.by_task()) {
    const Lease* lease = engine_->pilots().lease(task);
    if (lease && lease->pilot == pilot) ask_for_output(*lease);
  }
}

}  // namespace hpcbatch
