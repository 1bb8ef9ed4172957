#include "runtime/client_requests.hpp"

#include "links/recipe.hpp"
#include "loop/crash_point.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hpcbatch {

std::vector<ArrayId> ClientRequests::unheld_dependencies(
    const std::vector<NewArray>& arrays) const {
  std::vector<ArrayId> unheld;
  for (const NewArray& array : arrays) {
    for (const Dependency& dependency : array.after) {
      if (dependency.sibling == 0 && !dependencies_.engine->tasks().find(dependency.array))
        unheld.push_back(dependency.array);
    }
  }
  return unheld;
}

void ClientRequests::submit(Submission submission, SubmitAnswer answer) {
  crash_point("submit-received");
  const auto trouble = dependencies_.refuses();
  if (trouble || dependencies_.is_stopped() || dependencies_.engine->is_draining()) {
    answer(SubmitRefusal{
        trouble ? *trouble + "; nothing was submitted"
                : "the engine is being stopped; submit again when it has been started anew",
        false, true});
    return;
  }
  for (const auto& recipe : submission.recipes) {
    if (auto refusal = refusal_of_size(recipe))
      return answer(SubmitRefusal{"cannot queue the task: " + *refusal});
  }
  const RequestId request = new_request();
  submit_answers_[request.value] = std::move(answer);
  submissions_[request.value] = std::move(submission);
  feed_submission(request, {});
}

void ClientRequests::feed_submission(RequestId request, std::vector<EndedArray> ended) {
  Submission& submission = submissions_.at(request.value);
  std::vector<ArrayId> missing = unheld_dependencies(submission.arrays);
  std::set<ArrayId> known;
  for (const EndedArray& array : ended) known.insert(array.id);
  std::erase_if(missing, [&](ArrayId id) { return known.contains(id); });
  // What ended is looked up; what ends while we look is looked up in another round.  An id that is
  // nowhere is the engine's to refuse, by then with every fact there is.
  const bool looked_up =
      !ended.empty() && missing.size() == unheld_dependencies(submission.arrays).size();
  if (!missing.empty() && !looked_up) {
    dependencies_.writer.read(
        [missing](store::Store& store) {
          std::vector<EndedArray> found;
          found.reserve(missing.size());
          for (const ArrayId id : missing)
            found.push_back(store.history().ended(id).value_or(EndedArray{id, {}, {}}));
          return found;
        },
        [this, request, ended](std::vector<EndedArray> found) mutable {
          ended.insert(ended.end(), found.begin(), found.end());
          feed_submission(request, std::move(ended));
        });
    return;
  }
  std::erase_if(ended, [](const EndedArray& e) { return e.ok.empty() && e.not_ok.empty(); });
  if (!dependencies_.is_stopped()) {
    TasksSubmitted event{request,
                         submission.client,
                         submission.key,
                         submission.content,
                         std::move(submission.arrays),
                         std::move(ended)};
    dependencies_.feed_submit(std::move(event));
  }
  submissions_.erase(request.value);
}

void ClientRequests::cancel(std::vector<Selection> tasks, CountAnswer answer) {
  const RequestId request = new_request();
  count_answers_[request.value] = std::move(answer);
  dependencies_.feed(CancelAsked{request, std::move(tasks)});
}

void ClientRequests::keep(KeepAsked event, CountAnswer answer) {
  event.request = new_request();
  count_answers_[event.request.value] = std::move(answer);
  dependencies_.feed(std::move(event));
}

void ClientRequests::hold(std::vector<Selection> tasks, bool hold, CountAnswer answer) {
  const RequestId request = new_request();
  count_answers_[request.value] = std::move(answer);
  dependencies_.feed(HoldAsked{request, std::move(tasks), hold});
}

namespace {

/// Needs are those of an array: what waits of it gets the new ones, too, which may be more than it
/// asked for, and not less.  What runs keeps what it was given.
std::optional<std::string> less_for_others(const std::vector<RevivedArray>& arrays,
                                           const Engine& engine) {
  for (const RevivedArray& revived : arrays) {
    const ArrayState* live = engine.tasks().find(revived.id);
    if (!revived.has_new_needs || !live) continue;
    const std::uint64_t others = live->tasks.open().size() - live->tasks.leased().size();
    if (others == 0 || !gets_less(as_asked(live->terms->needs), revived.array.needs)) continue;
    return fmt::format(
        "{} of {} still waiting would get less than asked for, too; retry when nothing of it is "
        "waiting, or with no less than that has",
        show_count(others, "task"), revived.id.value);
  }
  return std::nullopt;
}

/// Of those that wait with the retried ones, and get the new needs.
std::uint64_t others_changed(const std::vector<RevivedArray>& arrays, const Engine& engine) {
  std::uint64_t others = 0;
  for (const RevivedArray& revived : arrays) {
    const ArrayState* live = engine.tasks().find(revived.id);
    if (revived.has_new_needs && live)
      others += live->tasks.open().size() - live->tasks.leased().size();
  }
  return others;
}

bool is_asked_for(const Retry& asked, ArrayId id) {
  return std::any_of(asked.tasks.begin(), asked.tasks.end(),
                     [&](const Selection& one) { return one.array == id; });
}

/// What it waits for and what did not end well, so that it cannot start again either.
std::optional<ArrayId> still_missing(const RevivedArray& revived, const store::Revivable& found) {
  for (const Dependency& on : revived.array.after) {
    const bool runs_again = std::any_of(found.arrays.begin(), found.arrays.end(),
                                        [&](const auto& one) { return one.id == on.array; });
    const auto ended = std::find_if(found.ended.begin(), found.ended.end(),
                                    [&](const auto& one) { return one.id == on.array; });
    if (runs_again || ended == found.ended.end() || on.kind == Dependency::Kind::AnyEnd) continue;
    IndexSet startable = revived.array.indices;
    startable.remove(ended->not_ok);
    const bool is_missing = on.kind == Dependency::Kind::EachSuccess ? startable.empty()
                            : on.index ? ended->not_ok.contains(*on.index)
                                       : !ended->not_ok.empty();
    if (is_missing) return on.array;
  }
  return std::nullopt;
}

std::optional<std::string> none_could_start(const Retry& asked, const store::Revivable& found) {
  std::optional<std::string> refusal;
  for (const RevivedArray& revived : found.arrays) {
    if (!is_asked_for(asked, revived.id)) continue;
    const auto missing = still_missing(revived, found);
    if (!missing) return std::nullopt;
    if (!refusal)
      refusal = fmt::format(
          "{0} waits for {1}, which did not end well, and could not start: retry {1}, and what "
          "waits for it runs again, too",
          revived.id.value, missing->value);
  }
  return refusal;
}

}  // namespace

void ClientRequests::retry(Retry asked, CountAnswer answer) {
  dependencies_.writer.read(
      [asked](store::Store& store) { return store.history().revivable(asked.tasks, asked.only); },
      [this, asked, answer = std::move(answer)](store::Revivable found) mutable {
        // What ended while we looked has other results than those that were read: once more.
        const bool is_over = std::any_of(found.live.begin(), found.live.end(), [&](ArrayId id) {
          return !dependencies_.engine->tasks().find(id);
        });
        if (is_over) return retry(std::move(asked), std::move(answer));
        if (auto refusal = none_could_start(asked, found))
          return answer(Error{Error::Kind::Rejected, std::move(*refusal)});
        Changed beside;
        for (RevivedArray& revived : found.arrays) {
          const bool is_asked = is_asked_for(asked, revived.id);
          if (!is_asked) beside.dependants += revived.array.indices.size();
          if (!asked.change.any() || !is_asked) continue;
          revived.array.needs = changed(std::move(revived.array.needs), asked.change);
          revived.has_new_needs = true;
        }
        if (auto refusal = less_for_others(found.arrays, *dependencies_.engine))
          return answer(Error{Error::Kind::Rejected, std::move(*refusal)});
        const RequestId request = new_request();
        beside.others = others_changed(found.arrays, *dependencies_.engine);
        count_answers_[request.value] = [answer = std::move(answer),
                                         beside](Result<Changed> changed) {
          if (changed) changed->dependants = std::min(beside.dependants, changed->tasks);
          if (changed) changed->others = beside.others;
          answer(changed);
        };
        dependencies_.feed(RetryAsked{request, std::move(found.arrays), std::move(found.ended)});
      });
}

std::vector<store::Recipe> ClientRequests::take_recipes(RequestId request) {
  return std::move(submissions_.at(request.value).recipes);
}

void ClientRequests::answer(const AnswerSubmit& action) {
  crash_point("submit-decided");
  dependencies_.after(order_of(action), [this, action] {
    crash_point("submit-durable");
    const auto at = submit_answers_.find(action.request.value);
    if (at == submit_answers_.end()) return;
    at->second(action.ids);
    submit_answers_.erase(at);
  });
}

void ClientRequests::answer(const AnswerRefused& action) {
  if (const auto at = submit_answers_.find(action.request.value); at != submit_answers_.end()) {
    at->second(SubmitRefusal{action.text, action.conflict, false});
    submit_answers_.erase(at);
  } else if (const auto of_change = count_answers_.find(action.request.value);
             of_change != count_answers_.end()) {
    of_change->second(Error{Error::Kind::Rejected, action.text});
    count_answers_.erase(of_change);
  }
}

void ClientRequests::answer(const AnswerCount& action) {
  dependencies_.after(order_of(action), [this, action] {
    const auto at = count_answers_.find(action.request.value);
    if (at == count_answers_.end()) return;
    at->second(Changed{action.tasks, action.at_pilots});
    count_answers_.erase(at);
  });
}

}  // namespace hpcbatch
