#include "runtime/pilot_links.hpp"

#include "links/pilot_messages.hpp"
#include "links/recipe.hpp"
#include "loop/crash_point.hpp"
#include "loop/writer.hpp"
#include "model/check.hpp"
#include "sites/log_reader.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

bool is_one_of(const AttemptId& attempt, const std::vector<LeaseRun>& runs) {
  return std::any_of(runs.begin(), runs.end(), [&](const LeaseRun& run) {
    const AttemptId& first = run.first.attempt;
    return attempt.task.array == first.task.array && attempt.epoch >= first.epoch &&
           attempt.epoch - first.epoch < run.count;
  });
}

}  // namespace

void PilotLinks::received(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message) {
  const PilotId pilot = link->pilot();
  const auto is_current = [&] {
    const auto current = links_.find(pilot);
    return current != links_.end() && current->second == link;
  };
  if (!message.has_registration() && !is_current()) return;
  if (auto why = overstep(pilot, message)) {
    if (message.has_registration()) link->incarnation = message.registration().incarnation();
    return put_out(link, std::move(*why));
  }
  if (message.has_registration()) registered(link, message);
  if (!is_current()) return;  // not welcomed, or replaced by a newer link
  measure(link, message.heartbeat());

  for (const wire::Chunk& chunk : message.chunks()) {
    const AttemptId attempt = from_wire(chunk.attempt());
    if (holds(pilot, attempt))
      followers_.chunk(attempt, chunk.stream(), chunk.offset(), chunk.data());
  }
  for (const wire::InputWanted& wanted : message.input_wanted()) {
    const AttemptId attempt = from_wire(wanted.attempt());
    if (!holds(pilot, attempt)) continue;
    inputs_.wanted(attempt.task, wanted.offset(), wanted.ended());
    send_input(attempt.task);
  }
  if (message.results_size() != 0) crash_point("result-received");
  for (Event& event : events_of(pilot, message, dependencies_.clock.now())) {
    if (auto* ended = std::get_if<AttemptsEnded>(&event)) {
      dependencies_.feed_ends(std::move(*ended));
    } else {
      dependencies_.feed(event);
    }
  }
}

std::optional<std::string> PilotLinks::overstep(const PilotId& pilot,
                                                const wire::ToEngine& message) const {
  if (auto why = beyond_limits(pilot, message)) return why;
  return dependencies_.engine->overstep(claims_of(pilot, message));
}

bool PilotLinks::holds(const PilotId& pilot, const AttemptId& attempt) const {
  const Lease* lease = dependencies_.engine->pilots().lease(attempt.task);
  return lease && lease->attempt == attempt && lease->pilot == pilot;
}

void PilotLinks::put_out(const std::shared_ptr<PilotLink>& link, std::string why) {
  const auto unproven = unproven_.insert_or_assign(link->pilot(), link).first;
  dependencies_.feed(PilotOverstepped{link->pilot(), link->incarnation, std::move(why)});
  unproven_.erase(unproven);
}

void PilotLinks::registered(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message) {
  const wire::Register& said = message.registration();
  const PilotRegistered event = registration_of(link->pilot(), message);
  link->incarnation = said.incarnation();
  link->way = said.link();
  spdlog::info("pilot {} registers from {} by {}, holding {}", to_string(event.pilot), said.node(),
               said.link(), said.held_size());
  unproven_[event.pilot] = link;
  dependencies_.feed(event);
  unproven_.erase(event.pilot);
  crash_point("pilot-registered");
}

/// A pilot that says more than that it lives is at work.
void PilotLinks::measure(const std::shared_ptr<PilotLink>& link, std::uint64_t heartbeat) {
  const auto moment = std::chrono::steady_clock::now();
  if (RoundTrip::is_ours(heartbeat)) {
    if (const auto trip = link->round_trip.answered(heartbeat, moment)) {
      spdlog::debug("to pilot {} and back it takes {} ms", to_string(link->pilot()),
                    std::chrono::duration_cast<std::chrono::milliseconds>(*trip).count());
      dependencies_.feed(LinkMeasured{link->pilot(), *trip});
    }
  } else if (heartbeat != 0) {
    link->outgoing().set_heartbeat(heartbeat);
  } else if (const auto number = link->round_trip.ask(moment)) {
    link->outgoing().set_heartbeat(*number);
  }
}

void PilotLinks::closed(const std::shared_ptr<PilotLink>& link) {
  if (!link->established()) return;
  const auto current = links_.find(link->pilot());
  if (current == links_.end() || current->second != link) return;
  links_.erase(current);
  spdlog::info("the link to pilot {} ended", to_string(link->pilot()));
  dependencies_.feed(PilotDisconnected{link->pilot()});
}

/// A new link knows nothing of who reads along: they are told of again.
void PilotLinks::follow_again(const PilotId& pilot) {
  for (const auto& [task, id] : followers_.by_task()) {
    const Lease* lease = dependencies_.engine->pilots().lease(task);
    if (lease && lease->pilot == pilot) ask_for_output(*lease);
  }
}

FollowerId PilotLinks::follow(Follower follower) {
  const TaskId task = follower.task;
  const FollowerId id = followers_.add(std::move(follower));
  if (const Lease* lease = dependencies_.engine->pilots().lease(task)) ask_for_output(*lease);
  return id;
}

void PilotLinks::unfollow(FollowerId id) {
  const Follower* follower = followers_.find(id);
  if (!follower) return;
  const TaskId task = follower->task;
  followers_.remove(id);
  const Lease* lease = dependencies_.engine->pilots().lease(task);
  if (!lease || followers_.any(task)) return;
  tell_pilot(lease->pilot, [attempt = lease->attempt](wire::ToPilot& message) {
    wire::Follow* follow = message.add_follow();
    to_wire(attempt, follow->mutable_attempt());
    follow->set_stop(true);
  });
}

void PilotLinks::ask_for_output(const Lease& lease) {
  tell_pilot(lease.pilot, [this, attempt = lease.attempt](wire::ToPilot& message) {
    wire::Follow* follow = message.add_follow();
    to_wire(attempt, follow->mutable_attempt());
    follow->set_out_offset(followers_.seen(attempt, 1));
    follow->set_err_offset(followers_.seen(attempt, 2));
  });
}

void PilotLinks::input(TaskId task, InputQueue::Piece piece) {
  if (!dependencies_.engine->state_of(task)) {
    piece.then(false);
    return;
  }
  inputs_.push(task, std::move(piece));
  send_input(task);
}

std::size_t PilotLinks::signal(const std::vector<Selection>& chosen, const TaskSignal& asked) {
  // Who names each task by itself names as many as run.
  std::map<ArrayId, std::optional<IndexSet>> by_array;
  for (const Selection& some : chosen) {
    const auto [at, is_new] = by_array.try_emplace(some.array, some.indices);
    if (is_new || !at->second) continue;
    if (some.indices)
      at->second->add(*some.indices);
    else
      at->second.reset();
  }
  const auto is_chosen = [&by_array](TaskId task) {
    const auto at = by_array.find(task.array);
    return at != by_array.end() && (!at->second || at->second->contains(task.index));
  };
  std::size_t count = 0;
  for (const auto& [task, lease] : dependencies_.engine->pilots().leases()) {
    if (lease.state != Lease::State::Running || lease.cancelled || !is_chosen(task) ||
        !find(lease.pilot))
      continue;
    ++count;
    tell_pilot(lease.pilot, [attempt = lease.attempt, asked](wire::ToPilot& message) {
      wire::Signal* signal = message.add_signal();
      to_wire(attempt, signal->mutable_attempt());
      signal->set_number(asked.number);
      signal->set_to(static_cast<std::uint32_t>(asked.to));
    });
  }
  return count;
}

/// Those of the leases whose output somebody follows.
void PilotLinks::follow_leased(PilotLink& link, const PilotId& pilot,
                               const std::vector<LeaseRun>& runs) {
  for (const auto& [task, id] : followers_.by_task()) {
    const Lease* lease = dependencies_.engine->pilots().lease(task);
    if (lease && lease->pilot == pilot && is_one_of(lease->attempt, runs))
      to_wire(lease->attempt, link.outgoing().add_follow()->mutable_attempt());
  }
}

void PilotLinks::send_input(TaskId task) {
  const Lease* lease = dependencies_.engine->pilots().lease(task);
  if (!lease) return;
  auto piece = inputs_.next(task);
  if (!piece) return;
  dependencies_.feed(InputGiven{task});
  const std::size_t bytes = piece->bytes.size();
  const auto say_it = [attempt = lease->attempt,
                       piece = std::move(*piece)](wire::ToPilot& message) {
    wire::Input* input = message.add_input();
    to_wire(attempt, input->mutable_attempt());
    input->set_data(piece.bytes);
    input->set_offset(piece.offset);
    input->set_end(piece.end);
  };
  tell_pilot(lease->pilot, say_it, bytes);
}

PilotLink* PilotLinks::find(const PilotId& pilot) const {
  const auto at = links_.find(pilot);
  return at == links_.end() ? nullptr : at->second.get();
}

std::weak_ptr<PilotLink> PilotLinks::linked(const PilotId& pilot) const {
  const auto at = links_.find(pilot);
  return at == links_.end() ? nullptr : at->second;
}

std::string PilotLinks::way_of(const PilotId& pilot) const {
  const PilotLink* link = find(pilot);
  return link ? link->way : std::string();
}

void PilotLinks::tell_pilot(const PilotId& pilot, std::function<void(wire::ToPilot&)> say_it,
                            std::size_t bytes) {
  dependencies_.after(WaitsFor::Written, [this, pilot, say_it = std::move(say_it), bytes] {
    if (PilotLink* link = find(pilot)) say_it(link->outgoing(bytes));
  });
}

void PilotLinks::welcome(const WelcomePilot& action) {
  const auto unproven = unproven_.find(action.pilot);
  HPCBATCH_CHECK(unproven != unproven_.end());
  const std::shared_ptr<PilotLink> before = std::exchange(links_[action.pilot], unproven->second);
  if (before) before->close();
  say(action, unproven->second->outgoing());
  follow_again(action.pilot);
}

void PilotLinks::confirm(const ConfirmPilot& action) {
  PilotLink* link = find(action.pilot);
  if (link && link->incarnation == action.incarnation) say(action, link->outgoing());
}

void PilotLinks::fence(const FencePilot& action) {
  for (const auto* links : {&unproven_, &links_}) {
    const auto at = links->find(action.pilot);
    if (at == links->end() || at->second->incarnation != action.incarnation) continue;
    say(action, at->second->outgoing());
    if (action.overstepped.empty()) {
      at->second->close_after_sending();
    } else {
      at->second->put_out(action.overstepped);
    }
  }
}

bool PilotLinks::is_followed(ArrayId array) const {
  const auto followed = followers_.by_task().lower_bound({array, 0});
  return followed != followers_.by_task().end() && followed->first.array == array;
}

void PilotLinks::have_ended(ArrayId array) {
  const auto is_over = [this](TaskId task) {
    return !dependencies_.engine->state_of(task).has_value();
  };
  followers_.end(array, is_over);
  inputs_.end(array, is_over);
}

namespace {

/// What the store's lane finds out for a batch of leases.
struct LeaseTexts {
  std::vector<wire::Start> starts;
  std::map<std::uint64_t, std::string> environments;  ///< by their numbers
};

/// Of tasks whose texts differ.
void add_each(LeaseTexts& texts, store::Store& store, const LeaseRun& run,
              const wire::Start& recipe, Filled filled) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const LeaseRun one{lease_in(run, i), 1};
    wire::Start start = recipe;
    const TaskId task = one.first.attempt.task;
    fill(start, filled, task, [&] { return store.history().item(task); });
    texts.starts.push_back(start_of(one, std::move(start)));
  }
}

/// Of a pilot that only holds room: what binds its processes to cpus, and nothing of the command.
wire::Start start_of_room(const LeaseRun& run, const wire::Start& recipe) {
  wire::Start start;
  start.set_cpu_bind(recipe.cpu_bind());
  start.set_threads_per_core(recipe.threads_per_core());
  return start_of(run, std::move(start));
}

/// The service of an array that runs behind this one.
void add_foreseen(LeaseTexts& texts, store::Store& store, ArrayId next, wire::Start& start) {
  const auto recipe = store.history().recipe(next);
  if (!recipe) return;
  wire::Start its = start_from_bytes(recipe->bytes);
  if (!its.has_service()) return;
  start.mutable_foreseen()->Swap(its.mutable_service());
  start.set_foreseen_environment(static_cast<std::uint32_t>(recipe->environment));
  if (recipe->environment != 0 && !texts.environments.contains(recipe->environment))
    texts.environments[recipe->environment] = store.history().environment(recipe->environment);
}

/// `one_by_one`: neighbours are not told together.  `next`: what is to run behind each of `runs`.
LeaseTexts read_texts(store::Store& store, const std::vector<LeaseRun>& runs,
                      const std::vector<std::optional<ArrayId>>& next, bool one_by_one) {
  LeaseTexts texts;
  ArrayId last;
  std::optional<store::StoredRecipe> recipe;
  auto behind = next.begin();
  for (const LeaseRun& run : runs) {
    const std::optional<ArrayId> foreseen = *behind++;
    const ArrayId array = run.first.attempt.task.array;
    if (!recipe || last != array) recipe = store.history().recipe(array);
    last = array;
    HPCBATCH_CHECK(recipe);
    const Filled filled = filled_in(recipe->bytes);
    wire::Start start = start_from_bytes(recipe->bytes);
    if (run.first.holds_room) {
      texts.starts.push_back(start_of_room(run, start));
      continue;
    }
    start.set_environment(static_cast<std::uint32_t>(recipe->environment));
    if (foreseen) add_foreseen(texts, store, *foreseen, start);
    if (filled != Filled::Nothing) {
      add_each(texts, store, run, start, filled);
    } else if (one_by_one) {
      for (std::uint32_t i = 0; i < run.count; ++i)
        texts.starts.push_back(start_of({lease_in(run, i), 1}, start));
    } else {
      texts.starts.push_back(start_of(run, std::move(start)));
    }
    if (recipe->environment != 0 && !texts.environments.contains(recipe->environment)) {
      texts.environments[recipe->environment] = store.history().environment(recipe->environment);
    }
  }
  return texts;
}

/// With the environments that were not sent on this link yet.
void add_start(PilotLink& link, LeaseTexts& texts, wire::Start& start) {
  for (const std::uint32_t environment : {start.environment(), start.foreseen_environment()}) {
    if (environment == 0 || !link.environments.insert(environment).second) continue;
    const std::string& bytes = texts.environments[environment];
    wire::Environment* sent = link.outgoing(bytes.size()).add_environments();
    sent->ParseFromString(bytes);
    sent->set_number(environment);
  }
  link.outgoing(start.ByteSizeLong()).add_start()->Swap(&start);
}

}  // namespace

void LeaseSender::send(const SendLeases& action) {
  crash_point("lease-decided");
  auto texts = std::make_shared<LeaseTexts>();
  const auto runs = std::make_shared<const std::vector<LeaseRun>>(runs_of(action.leases));
  std::vector<std::optional<ArrayId>> next;
  next.reserve(runs->size());
  for (const LeaseRun& run : *runs)
    next.push_back(dependencies_.engine->served_after(run.first.attempt.task.array));
  const std::weak_ptr<PilotLink> decided_for = dependencies_.links.linked(action.pilot);
  const WaitsFor order = order_of(action);
  HPCBATCH_CHECK(order == WaitsFor::Written || order == WaitsFor::WrittenToDisk);
  const std::string site_name = dependencies_.site_of(action.pilot);
  const bool one_by_one = !dependencies_.staging.sees_everything(site_name);
  const auto at = dependencies_.sites.find(site_name);
  const std::uint64_t output_limit =
      at == dependencies_.sites.end() ? kOutputLimit : at->second->site().output_limit;
  dependencies_.writer.after_written(
      [texts, runs, next = std::move(next), one_by_one](store::Store& store) {
        *texts = read_texts(store, *runs, next, one_by_one);
      },
      [this, texts, runs, decided_for, one_by_one, output_limit, pilot = action.pilot] {
        crash_point("lease-written");
        // A link that broke meanwhile: the pilot will not say that it holds them, and they go back.
        // On its next link it has said so already: there they would run beside those that take
        // their place.
        const auto link = decided_for.lock();
        if (!link || link.get() != dependencies_.links.find(pilot)) return;
        for (wire::Start& recipe : texts->starts) {
          auto shown = one_by_one ? dependencies_.staging.shown_at(pilot, std::move(recipe))
                                  : std::move(recipe);
          if (!shown) continue;
          if (shown->output_limit() == 0) shown->set_output_limit(output_limit);
          add_start(*link, *texts, *shown);
        }
        dependencies_.links.follow_leased(*link, pilot, *runs);
        crash_point("lease-sent");
      },
      order == WaitsFor::WrittenToDisk);
}

}  // namespace hpcbatch
