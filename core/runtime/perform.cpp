// One function for each thing the engine can ask for.  Nothing is decided here.
#include "links/pilot_messages.hpp"
#include "loop/action_order.hpp"
#include "loop/crash_point.hpp"
#include "runtime/runtime.hpp"
#include "sites/attempts.hpp"

#include "model/check.hpp"
#include "model/visit.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

namespace hpcbatch {
namespace {

constexpr std::chrono::seconds kLastCommands{30};
constexpr std::chrono::seconds kLastPieces{10};
// Of an engine whose pilots go on: batch jobs that are just being submitted are then known to the
// next one, which would have to look for them.
constexpr std::chrono::seconds kLastSubmits{5};
constexpr std::chrono::milliseconds kLookAgain{20};
// A store that cannot be written does not keep the engine from ending: what it could not keep was
// not acknowledged either.
constexpr std::chrono::seconds kLastCommit{5};

}  // namespace

PilotLink* Runtime::link_of(const PilotId& pilot) {
  const auto at = links_.find(pilot);
  return at == links_.end() ? nullptr : at->second.get();
}

void Runtime::after(WaitsFor what, Writer::Then then) {
  switch (what) {
    case WaitsFor::Nothing:
      return then();
    case WaitsFor::Written:
      return writer_->after_written({}, std::move(then));
    case WaitsFor::Disk:
      return writer_->after_durable(std::move(then), false);
    case WaitsFor::DiskAtOnce:
      return writer_->after_durable(std::move(then), true);
  }
}

void Runtime::tell_pilot(const PilotId& pilot, std::function<void(wire::ToPilot&)> say_it,
                         std::size_t bytes) {
  after(WaitsFor::Written, [this, pilot, say_it = std::move(say_it), bytes] {
    if (PilotLink* link = link_of(pilot)) say_it(link->outgoing(bytes));
  });
}

template <class ToOnePilot>
void Runtime::pass_on(const ToOnePilot& action) {
  after(order_of(action), [this, action] {
    if (PilotLink* link = link_of(action.pilot)) say(action, link->outgoing());
  });
}

// --- to the store ------------------------------------------------------------------------------

void Runtime::perform(SaveArrays action) {
  std::vector<store::Recipe> recipes = std::move(submissions_.at(action.request.value).recipes);
  writer_->add({std::move(action), std::move(recipes)});
}
void Runtime::perform(const SaveHold& action) {
  writer_->add({action, {}});
}
void Runtime::perform(const SaveLeases& action) {
  writer_->add({action, {}});
}
void Runtime::perform(const DropLeases& action) {
  for (const TaskId task : action.tasks) not_leased_before(task);
  writer_->add({action, {}});
}
void Runtime::perform(const SaveCancelled& action) {
  writer_->add({action, {}});
}
void Runtime::perform(const SavePermitted& action) {
  writer_->add({action, {}});
}
void Runtime::perform(const SaveFailedAttempt& action) {
  not_leased_before(action.attempt.task);
  writer_->add({action, {}});
}
void Runtime::perform(SaveResult action) {
  task_over(action.attempt.task);
  writer_->add({std::move(action), {}});
}
void Runtime::perform(const SaveResults& action) {
  if (staged_to_.contains(action.array) || !leased_before_.empty()) {
    for (const IndexRange& range : action.indices.ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i)
        task_over({action.array, static_cast<std::uint32_t>(i)});
    }
  }
  writer_->add({action, {}});
}
void Runtime::perform(const SaveArrayEnded& action) {
  array_over(action.array);
  writer_->add({action, {}});
}
void Runtime::perform(const SaveRevived& action) {
  writer_->add({action, {}});
}
void Runtime::perform(const SaveAllocation& action) {
  spdlog::info("allocation {} on {} ({}): {} {}", action.allocation.id.name, action.allocation.site,
               action.allocation.shape, to_string(action.allocation.state),
               action.allocation.reason);
  writer_->add({action, {}});
}

// --- to clients --------------------------------------------------------------------------------

void Runtime::perform(const AnswerSubmit& action) {
  crash_point("submit-decided");
  after(order_of(action), [this, action] {
    crash_point("submit-durable");
    const auto at = submit_answers_.find(action.request.value);
    if (at == submit_answers_.end()) return;
    at->second(action.ids);
    submit_answers_.erase(at);
  });
}

void Runtime::perform(const AnswerRefused& action) {
  if (const auto at = submit_answers_.find(action.request.value); at != submit_answers_.end()) {
    at->second(SubmitRefusal{action.text, action.conflict, false});
    submit_answers_.erase(at);
  } else if (const auto of_change = count_answers_.find(action.request.value);
             of_change != count_answers_.end()) {
    of_change->second(Error{Error::Kind::Rejected, action.text});
    count_answers_.erase(of_change);
  }
}

void Runtime::perform(const AnswerCount& action) {
  after(order_of(action), [this, action] {
    const auto at = count_answers_.find(action.request.value);
    if (at == count_answers_.end()) return;
    at->second(action.tasks);
    count_answers_.erase(at);
  });
}

void Runtime::perform(const TellEnded& action) {
  const auto followed = followers_.by_task().lower_bound({action.array, 0});
  const bool somebody_waits =
      !ended_listeners_.empty() ||
      (followed != followers_.by_task().end() && followed->first.array == action.array);
  after(somebody_waits ? WaitsFor::DiskAtOnce : order_of(action), [this, array = action.array] {
    const auto is_over = [this](TaskId task) { return !engine_->state_of(task).has_value(); };
    followers_.end(array, is_over);
    inputs_.end(array, is_over);
    for (const auto& listener : ended_listeners_) listener(array);
  });
}

// --- to pilots ---------------------------------------------------------------------------------

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
    fill(start, filled, task, [&] { return store.item(task); });
    texts.starts.push_back(start_of(one, std::move(start)));
  }
}

/// The service of an array that runs behind this one.
void add_foreseen(LeaseTexts& texts, store::Store& store, ArrayId next, wire::Start& start) {
  const auto recipe = store.recipe(next);
  if (!recipe) return;
  Filled filled{};
  wire::Start its = start_from_bytes(recipe->bytes, filled);
  if (!its.has_service()) return;
  start.mutable_foreseen()->Swap(its.mutable_service());
  start.set_foreseen_environment(static_cast<std::uint32_t>(recipe->environment));
  if (recipe->environment != 0 && !texts.environments.contains(recipe->environment))
    texts.environments[recipe->environment] = store.environment(recipe->environment);
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
    if (!recipe || last != array) recipe = store.recipe(array);
    last = array;
    HPCBATCH_CHECK(recipe);
    Filled filled{};
    wire::Start start = start_from_bytes(recipe->bytes, filled);
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
      texts.environments[recipe->environment] = store.environment(recipe->environment);
    }
  }
  return texts;
}

bool is_one_of(const AttemptId& attempt, const std::vector<LeaseRun>& runs) {
  return std::any_of(runs.begin(), runs.end(), [&](const LeaseRun& run) {
    const AttemptId& first = run.first.attempt;
    return attempt.task.array == first.task.array && attempt.epoch >= first.epoch &&
           attempt.epoch - first.epoch < run.count;
  });
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

void Runtime::perform(const SendLeases& action) {
  crash_point("lease-decided");
  auto texts = std::make_shared<LeaseTexts>();
  const auto runs = std::make_shared<const std::vector<LeaseRun>>(runs_of(action.leases));
  std::vector<std::optional<ArrayId>> next;
  next.reserve(runs->size());
  for (const LeaseRun& run : *runs)
    next.push_back(engine_->served_after(run.first.attempt.task.array));
  const auto at = links_.find(action.pilot);
  const std::weak_ptr<PilotLink> decided_for = at == links_.end() ? nullptr : at->second;
  HPCBATCH_CHECK(order_of(action) == WaitsFor::Written);
  const std::string site_name = site_of(action.pilot);
  const bool one_by_one = !sees_everything(site_name);
  const SiteHands* const hands = site(site_name);
  const std::uint64_t output_limit = hands ? hands->site().output_limit : kOutputLimit;
  writer_->after_written(
      [texts, runs, next = std::move(next), one_by_one](store::Store& store) {
        *texts = read_texts(store, *runs, next, one_by_one);
      },
      [this, texts, runs, decided_for, one_by_one, output_limit, pilot = action.pilot] {
        crash_point("lease-written");
        // A link that broke meanwhile: the pilot will not say that it holds them, and they go back.
        // On its next link it has said so already: there they would run beside those that take
        // their place.
        const auto link = decided_for.lock();
        if (!link || link.get() != link_of(pilot)) return;
        for (wire::Start& recipe : texts->starts) {
          auto shown = one_by_one ? shown_at(pilot, std::move(recipe)) : std::move(recipe);
          if (!shown) continue;
          if (shown->output_limit() == 0) shown->set_output_limit(output_limit);
          add_start(*link, *texts, *shown);
        }
        follow_leased(*link, pilot, *runs);
        crash_point("lease-sent");
      });
}

/// Those of the leases whose output somebody follows.
void Runtime::follow_leased(PilotLink& link, const PilotId& pilot,
                            const std::vector<LeaseRun>& runs) {
  for (const auto& [task, id] : followers_.by_task()) {
    const Lease* lease = engine_->pilots().lease(task);
    if (lease && lease->pilot == pilot && is_one_of(lease->attempt, runs))
      to_wire(lease->attempt, link.outgoing().add_follow()->mutable_attempt());
  }
}

void Runtime::perform(const RecallLeases& action) {
  pass_on(action);
}
void Runtime::perform(const KillAttempt& action) {
  stage_out_->stop(action.attempt);
  pass_on(action);
}
void Runtime::perform(const AcknowledgeResults& action) {
  after(order_of(action), [this, action] {
    crash_point("result-durable");
    for (const AttemptId& attempt : action.attempts) stage_out_->forget(attempt);
    if (PilotLink* link = link_of(action.pilot)) say(action, link->outgoing());
  });
}
void Runtime::perform(const PermitPublish& action) {
  after(order_of(action), [this, action] {
    crash_point("publish-permitted");
    if (PilotLink* link = link_of(action.pilot)) say(action, link->outgoing());
  });
}

void Runtime::perform(const WelcomePilot& action) {
  const auto unproven = unproven_.find(action.pilot);
  HPCBATCH_CHECK(unproven != unproven_.end());
  const std::shared_ptr<PilotLink> before = std::exchange(links_[action.pilot], unproven->second);
  if (before) before->close();
  say(action, unproven->second->outgoing());
  follow_again(action.pilot);
}

void Runtime::perform(const EndPilot& action) {
  pass_on(action);
}

void Runtime::perform(const FencePilot& action) {
  for (const auto* links : {&unproven_, &links_}) {
    const auto at = links->find(action.pilot);
    if (at == links->end() || at->second->incarnation != action.incarnation) continue;
    say(action, at->second->outgoing());
    at->second->close_after_sending();
  }
}

// --- to sites ----------------------------------------------------------------------------------

void Runtime::perform(const OpenAllocation& action) {
  after(order_of(action), [this, action] {
    crash_point("intent-durable");
    SiteHands* hands = site(action.site);
    const Shape* shape = engine_->sites().shape_of(action.allocation);
    if (!hands || !shape) return;
    keep_ways();
    submit_allocation(action, *hands, *shape, engine_->avoided_nodes(action.site));
    crash_point("submit-command-started");
  });
}

void Runtime::submit_allocation(const OpenAllocation& action, SiteHands& hands, const Shape& shape,
                                const std::vector<std::string>& avoided) {
  ++open_submits_;
  hands.submit(
      action.allocation, shape, pilot_file(action.allocation, hands.site(), shape), avoided,
      [this, action,
       any = !avoided.empty()](std::variant<AllocationAccepted, AllocationRefused> answer) {
        --open_submits_;
        crash_point("submit-command-answered");
        // It may have no other nodes than these.
        const auto* refused = std::get_if<AllocationRefused>(&answer);
        SiteHands* still = site(action.site);
        const Shape* same = engine_->sites().shape_of(action.allocation);
        if (any && still && same && refused && refused->refusal == Refusal::Permanent)
          return submit_allocation(action, *still, *same, {});
        match(std::move(answer), [this](const auto& event) { feed(event); });
        crash_point("allocation-accepted");
      });
}

void Runtime::perform(const CancelAllocation& action) {
  if (SiteHands* hands = site(action.site)) hands->cancel(action.allocation, action.number);
}

void Runtime::perform(const PollSite& action) {
  SiteHands* hands = site(action.site);
  if (!hands) return;
  std::vector<std::string> names;
  std::vector<std::string> silent;
  for (const auto& [id, entry] : engine_->sites().allocations()) {
    const Allocation& facts = entry.facts;
    if (facts.site != action.site || facts.state == AllocationState::Ended) continue;
    names.push_back(id.name);
    if (facts.pilots_seen == entry.pilots_away && facts.state >= AllocationState::Queued)
      silent.push_back(id.name);
  }
  hands->poll(
      "h" + engine_name_, std::move(names), std::move(silent),
      [this, name = action.site, asked = now()](Result<SiteHands::Listed> listed) {
        crash_point("poll-answered");
        if (listed) {
          feed(SitePolled{name, std::move(listed->jobs), asked, std::move(listed->last_words)});
        } else {
          spdlog::warn("site {}: {}", name, listed.error().text);
          feed(SitePollFailed{name, listed.error().text});
        }
      });
}

void Runtime::perform(const ReadOutbox& action) {
  SiteHands* hands = site(action.site);
  HPCBATCH_CHECK(hands);
  hands->read_outbox(action.allocation, [this, action](Result<std::vector<std::string>> results) {
    crash_point("outbox-read");
    if (results) {
      return feed_outbox({action.allocation, results_of_outbox(*results, now())}, action.site);
    }
    // Nothing is called lost before its outbox was read: a workspace that is away is waited for,
    // and by the engine that comes after this one.
    if (stopped_) return;
    spdlog::warn("cannot read the outbox of {}: {}; trying again", action.allocation.name,
                 results.error().text);
    auto again = std::make_shared<asio::steady_timer>(loop_, std::chrono::seconds{5});
    again->async_wait([this, action, again](const boost::system::error_code& error) {
      if (!error) perform(action);
    });
  });
}

void Runtime::perform(const ForgetAllocation& action) {
  after(order_of(action), [this, action] {
    stage_out_->forget_all(action.allocation);
    if (SiteHands* hands = site(action.site)) hands->forget(action.allocation);
    keep_ways();
  });
}

// --- to the loop -------------------------------------------------------------------------------

void Runtime::perform(const EngineIdle& action) {
  after(order_of(action), [this] {
    stop_when_quiet(std::chrono::steady_clock::now() +
                    (engine_->is_draining() ? kLastCommands : kLastSubmits));
  });
}

/// Cancels that were asked for are commands on their way: they get a bounded time to reach the
/// batch systems.
void Runtime::stop_when_quiet(std::chrono::steady_clock::time_point latest) {
  const bool any_busy = std::any_of(sites_.begin(), sites_.end(),
                                    [](const auto& site) { return site.second->is_busy(); });
  const bool commands = engine_->is_draining() ? any_busy : open_submits_ != 0;
  // Who came by files hears by an exchange that he is to end.
  const bool pilots = std::any_of(spools_.begin(), spools_.end(),
                                  [](const auto& spool) { return spool.second->has_pilots(); });
  const auto last_pieces = latest - (kLastCommands - kLastPieces);
  bool busy = commands || (pilots && std::chrono::steady_clock::now() < last_pieces);
  if (!busy && !std::exchange(keeps_connections_, true)) {
    for (const auto& [name, hands] : sites_) hands->end_connection();
    busy = true;
  }
  if (!busy || std::chrono::steady_clock::now() >= latest) {
    // What was heard up to now is kept.
    stopped_ = true;
    auto not_for_ever = std::make_shared<asio::steady_timer>(loop_, kLastCommit);
    const auto end = [this, not_for_ever] {
      if (std::exchange(ended_, true)) return;
      not_for_ever->cancel();
      if (history_) history_->add(noted_at_end(*engine_, now()));
      stop_(store_damage_.empty() ? "" : "the store is damaged: " + store_damage_);
    };
    not_for_ever->async_wait([end](const boost::system::error_code& error) {
      if (!error) end();
    });
    return after(WaitsFor::DiskAtOnce, end);
  }
  auto again = std::make_shared<asio::steady_timer>(loop_, kLookAgain);
  again->async_wait([this, latest, again](const boost::system::error_code& error) {
    if (!error) stop_when_quiet(latest);
  });
}

void Runtime::send_input(TaskId task) {
  const Lease* lease = engine_->pilots().lease(task);
  if (!lease) return;
  auto piece = inputs_.next(task);
  if (!piece) return;
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

}  // namespace hpcbatch
