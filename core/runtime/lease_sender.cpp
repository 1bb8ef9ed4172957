#include "runtime/lease_sender.hpp"

#include "links/pilot_messages.hpp"
#include "links/recipe.hpp"
#include "loop/action_order.hpp"
#include "loop/crash_point.hpp"
#include "model/check.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hpcbatch {
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
  HPCBATCH_CHECK(order_of(action) == WaitsFor::Written);
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
      });
}

}  // namespace hpcbatch
