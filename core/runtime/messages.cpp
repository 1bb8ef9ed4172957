// What pilots say becomes events.
#include "runtime/attempts.hpp"
#include "runtime/crash_point.hpp"
#include "runtime/outbox_results.hpp"
#include "runtime/runtime.hpp"

#include <spdlog/spdlog.h>

namespace hpcbatch {
namespace {

AttemptEnded ended_from_wire(const PilotId& pilot, const wire::Result& result, Time now) {
  AttemptEnded event{pilot, from_wire(result.attempt()), {}, result.outputs_staged()};
  Outcome& outcome = event.outcome;
  outcome.failure = parse_failure(result.failure()).value_or(Failure::EngineError);
  outcome.exit_code = result.exit_code();
  outcome.signal = result.signal();
  outcome.message = result.message();
  if (result.started_us() != 0) outcome.started = from_microseconds(result.started_us());
  outcome.ended = result.ended_us() != 0 ? from_microseconds(result.ended_us()) : now;
  outcome.peak_memory = result.peak_memory();
  outcome.cpu_time = Duration{static_cast<std::int64_t>(result.cpu_us())};
  const wire::LogPlace& log = result.log();
  outcome.log = {log.file(),      log.last_out(),  log.last_err(),
                 log.out_bytes(), log.err_bytes(), log.truncated()};
  return event;
}

}  // namespace

std::vector<AttemptEnded> results_of_outbox(const AllocationId& allocation,
                                            const std::vector<std::string>& results, Time now) {
  std::vector<AttemptEnded> events;
  for (const std::string& bytes : results) {
    wire::Result result;
    if (result.ParseFromString(bytes))
      events.push_back(ended_from_wire({allocation, 0}, result, now));
  }
  return events;
}

void Runtime::received(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message) {
  const PilotId pilot = link->pilot();
  if (message.has_registration()) registered(link, message);
  const auto current = links_.find(pilot);
  if (current == links_.end() || current->second != link)
    return;  // not welcomed, or replaced by a newer link
  if (message.heartbeat() != 0) link->outgoing().set_heartbeat(message.heartbeat());

  if (message.started_size() != 0) {
    AttemptsStarted event{pilot, {}};
    for (const wire::Attempt& attempt : message.started())
      event.attempts.push_back(from_wire(attempt));
    feed(event);
  }
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
  for (const wire::Result& result : message.results()) feed(ended_from_wire(pilot, result, now()));
  if (message.returned_size() != 0) {
    AttemptsReturned event{pilot, {}};
    for (const wire::Attempt& attempt : message.returned())
      event.attempts.push_back(from_wire(attempt));
    feed(event);
  }
  if (message.leaving()) feed(PilotLeaving{pilot, message.leaving_reason()});
}

void Runtime::registered(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message) {
  const wire::Register& said = message.registration();
  PilotRegistered event{
      .pilot = link->pilot(), .incarnation = said.incarnation(), .node = said.node()};
  for (const wire::Amount& amount : said.capacity())
    event.capacity.set(amount.name(), Amount{amount.value()});
  if (said.time_left_ms() >= 0) event.time_left = std::chrono::milliseconds(said.time_left_ms());
  for (const wire::Held& held : said.held()) {
    event.held.push_back(
        {from_wire(held.attempt()), static_cast<HeldAttempt::State>(held.state())});
  }
  event.batch_number = said.batch_number();
  event.refusals.assign(said.refusals().begin(), said.refusals().end());
  link->incarnation = said.incarnation();
  spdlog::info("pilot {} registers from {} by {}, holding {}", to_string(event.pilot), said.node(),
               said.link(), said.held_size());
  knocking_[event.pilot] = link;
  feed(event);
  knocking_.erase(event.pilot);
  crash_point("pilot-registered");
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
