// One function for each thing the engine can ask for that is more than to save or to answer it.
// Nothing is decided here.
#include "links/pilot_messages.hpp"
#include "loop/crash_point.hpp"
#include "loop/writer.hpp"
#include "runtime/runtime.hpp"
#include "sites/log_reader.hpp"

#include "model/check.hpp"

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

void Runtime::after(WaitsFor what, Writer::Then then) {
  switch (what) {
    case WaitsFor::Nothing:
      return then();
    case WaitsFor::Written:
    case WaitsFor::WrittenToDisk:
      return writer_->after_written({}, std::move(then), what == WaitsFor::WrittenToDisk);
    case WaitsFor::Disk:
      return writer_->after_durable(std::move(then), false);
    case WaitsFor::DiskAtOnce:
      return writer_->after_durable(std::move(then), true);
  }
}

// --- to the store ------------------------------------------------------------------------------

void Runtime::perform(SaveArrays action) {
  std::vector<store::Recipe> recipes = requests_->take_recipes(action.request);
  std::vector<std::string> notify = requests_->take_notify(action.request);
  const ArrayId first = action.first, last = action.id_of(action.arrays.size() - 1);
  writer_->add({std::move(action), std::move(recipes), notify});
  if (notify.empty() || !notice_listener_) return;
  after(WaitsFor::Written, [this, first, last, notify = std::move(notify)] {
    for (const std::string& target : notify) notice_listener_({first, last, target});
  });
}
void Runtime::perform(const DropLeases& action) {
  for (const TaskId task : action.tasks) staging_->not_leased_before(task);
  writer_->add({action, {}});
}
void Runtime::perform(const SaveFailedAttempt& action) {
  staging_->not_leased_before(action.attempt.task);
  writer_->add({action, {}});
}
void Runtime::perform(SaveResult action) {
  staging_->task_over(action.attempt.task);
  writer_->add({std::move(action), {}});
}
void Runtime::perform(const SaveResults& action) {
  staging_->tasks_over(action.array, action.indices);
  writer_->add({action, {}});
}
void Runtime::perform(const SaveArrayEnded& action) {
  staging_->array_over(action.array);
  writer_->add({action, {}});
}
void Runtime::perform(const SaveAllocation& action) {
  spdlog::info("allocation {} on {} ({}): {} {}", action.allocation.id.name, action.allocation.site,
               action.allocation.shape, to_string(action.allocation.state),
               action.allocation.reason);
  writer_->add({action, {}});
}

// --- to clients --------------------------------------------------------------------------------

void Runtime::perform(const TellEnded& action) {
  const bool somebody_waits = !ended_listeners_.empty() || links_->is_followed(action.array);
  after(somebody_waits ? WaitsFor::DiskAtOnce : order_of(action), [this, array = action.array] {
    links_->have_ended(array);
    for (const auto& listener : ended_listeners_) listener(array);
  });
}

// --- to pilots ---------------------------------------------------------------------------------

void Runtime::perform(const SendLeases& action) {
  lease_sender_->send(action);
}

void Runtime::perform(const StageIn& action) {
  staging_->stage_in(action);
}

void Runtime::perform(const RecallLeases& action) {
  links_->pass_on(action);
}
void Runtime::perform(const KillAttempt& action) {
  staging_->stop(action.attempt);
  links_->pass_on(action);
}
void Runtime::perform(const AcknowledgeResults& action) {
  after(order_of(action), [this, action] {
    crash_point("result-durable");
    for (const AttemptId& attempt : action.attempts) staging_->forget(attempt);
    links_->tell(action);
  });
}
void Runtime::perform(const PermitPublish& action) {
  after(order_of(action), [this, action] {
    crash_point("publish-permitted");
    links_->tell(action);
  });
}

void Runtime::perform(const WelcomePilot& action) {
  links_->welcome(action);
}

void Runtime::perform(const ConfirmPilot& action) {
  after(order_of(action), [this, action] { links_->confirm(action); });
}

void Runtime::perform(const EndPilot& action) {
  links_->pass_on(action);
}

void Runtime::perform(const StayPilot& action) {
  links_->tell(action);
}

void Runtime::perform(const FencePilot& action) {
  links_->fence(action);
}

// --- to sites ----------------------------------------------------------------------------------

void Runtime::perform(const OpenAllocation& action) {
  after(order_of(action), [this, action] {
    crash_point("intent-durable");
    SiteClient* client = site(action.site);
    const Shape* shape = engine_->sites().shape_of(action.allocation);
    if (!client || !shape) return;
    listeners_->keep_ways();
    submit_allocation(action, *client, *shape, engine_->avoided_nodes(action.site));
    crash_point("submit-command-started");
  });
}

void Runtime::submit_allocation(const OpenAllocation& action, SiteClient& client,
                                const Shape& shape, const std::vector<std::string>& avoided) {
  ++end_.open_submits;
  client.submit(action.allocation, shape,
                listeners_->pilot_file(action.allocation, client.site(), shape), avoided,
                [this, action, any = !avoided.empty()](
                    std::variant<AllocationAccepted, AllocationRefused> answer) {
                  --end_.open_submits;
                  crash_point("submit-command-answered");
                  // It may have no other nodes than these.
                  const auto* refused = std::get_if<AllocationRefused>(&answer);
                  SiteClient* still = site(action.site);
                  const Shape* same = engine_->sites().shape_of(action.allocation);
                  if (any && still && same && refused && refused->refusal == Refusal::Permanent)
                    return submit_allocation(action, *still, *same, {});
                  match(std::move(answer), [this](const auto& event) { feed(event); });
                  crash_point("allocation-accepted");
                });
}

void Runtime::perform(const CancelAllocation& action) {
  if (SiteClient* client = site(action.site)) client->cancel(action.allocation, action.number);
}

void Runtime::perform(const PollSite& action) {
  SiteClient* client = site(action.site);
  if (!client) return;
  std::vector<std::string> names;
  std::vector<std::string> silent;
  for (const auto& [id, entry] : engine_->sites().allocations()) {
    const Allocation& facts = entry.facts;
    if (facts.site != action.site || facts.state == AllocationState::Ended) continue;
    names.push_back(id.name);
    if (facts.pilots_seen == entry.pilots_away && facts.state >= AllocationState::Queued)
      silent.push_back(id.name);
  }
  client->poll(
      "h" + engine_name_, std::move(names), std::move(silent),
      [this, name = action.site, asked = now()](Result<SiteClient::Listed> listed) {
        crash_point("poll-answered");
        if (listed) {
          feed(SitePolled{name, std::move(listed->jobs), asked, std::move(listed->output_tail)});
        } else {
          spdlog::warn("site {}: {}", name, listed.error().text);
          feed(SitePollFailed{name, listed.error().text});
        }
      });
}

void Runtime::perform(const LookAtQueue& action) {
  SiteClient* client = site(action.site);
  if (!client) return;
  QueueWatching::Ours ours;
  for (const auto& [id, entry] : engine_->sites().allocations()) {
    if (entry.facts.site != action.site || entry.facts.state == AllocationState::Ended) continue;
    ours.all.insert(id.name);
    if (entry.facts.state == AllocationState::Queued) ours.queued.insert(id.name);
  }
  queue_watching_->look(*client, std::move(ours), now(),
                        [this](const QueueForeseen& foreseen) { feed(foreseen); });
}

void Runtime::perform(const ReadOutbox& action) {
  SiteClient* client = site(action.site);
  HPCBATCH_CHECK(client);
  client->read_outbox(action.allocation, [this, action](Result<std::vector<std::string>> results) {
    crash_point("outbox-read");
    if (results) {
      return staging_->feed_outbox(
          {action.allocation, results_of_outbox(action.allocation, *results, now())}, action.site);
    }
    // Nothing is called lost before its outbox was read: a workspace that is away is waited for,
    // and by the engine that comes after this one.
    if (end_.hears_nothing) return;
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
    staging_->forget_all(action.allocation);
    if (SiteClient* client = site(action.site)) client->forget(action.allocation);
    listeners_->keep_ways();
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
  const bool commands = engine_->is_draining() ? any_busy : end_.open_submits != 0;
  // Who came by files hears by an exchange that he is to end.
  const bool pilots = listeners_->have_pilots_by_files();
  const auto last_pieces = latest - (kLastCommands - kLastPieces);
  bool busy = commands || (pilots && std::chrono::steady_clock::now() < last_pieces);
  if (!busy && !std::exchange(end_.keeps_connections, true)) {
    for (const auto& [name, client] : sites_) client->end_connection();
    busy = true;
  }
  if (!busy || std::chrono::steady_clock::now() >= latest) {
    // What was heard up to now is kept.
    end_.hears_nothing = true;
    end_.when.hears_nothing();
    auto not_for_ever = std::make_shared<asio::steady_timer>(loop_, kLastCommit);
    const auto end = [this, not_for_ever] {
      if (std::exchange(end_.has_come, true)) return;
      not_for_ever->cancel();
      if (history_) history_->add(noted_at_end(*engine_, now()));
      end_.when.ended(end_.damage.empty() ? "" : "the store is damaged: " + end_.damage);
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

}  // namespace hpcbatch
