#include "runtime/client_requests.hpp"

#include "links/recipe.hpp"
#include "loop/crash_point.hpp"
#include "model/quantities.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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

void name_tasks(std::vector<NewArray>& arrays, const std::map<ArrayId, TaskId>& tasks) {
  for (NewArray& array : arrays) {
    for (Dependency& dependency : array.after) {
      const auto task = tasks.find(dependency.array);
      if (task == tasks.end() || dependency.sibling != 0 || dependency.index ||
          dependency.kind == Dependency::Kind::EachSuccess)
        continue;
      dependency.array = task->second.array;
      dependency.index = task->second.index;
    }
  }
}

Counting counting_of(const std::string& recipe) {
  if (needs_items(recipe)) return Counting::Places;
  return start_from_bytes(recipe).from_zero() ? Counting::FromZero : Counting::FromOne;
}

namespace {

/// Of the array that is waited for; Places, which pairs with all, where nothing is known of it.
Counting counting_waited_for(const Dependency& on, const Submission& submission,
                             const std::map<ArrayId, Counting>& before) {
  if (on.sibling > 0 && on.sibling <= submission.recipes.size())
    return counting_of(submission.recipes[on.sibling - 1].bytes);
  const auto known = before.find(on.array);
  return known == before.end() ? Counting::Places : known->second;
}

bool begin_apart(Counting one, Counting other) {
  return one != other && one != Counting::Places && other != Counting::Places;
}

}  // namespace

std::optional<std::string> why_not_paired(const Submission& submission,
                                          const std::map<ArrayId, Counting>& before) {
  for (std::size_t i = 0; i < submission.arrays.size(); ++i) {
    for (const Dependency& on : submission.arrays[i].after) {
      if (on.kind != Dependency::Kind::EachSuccess) continue;
      const Counting first = counting_waited_for(on, submission, before);
      if (!begin_apart(first, counting_of(submission.recipes[i].bytes))) continue;
      return fmt::format(
          "cannot pair tasks with those of {}{}: its indices begin at {}, and those of the array "
          "that is to wait at {}; begin both at 0 or both at 1, or wait for all of it",
          on.sibling > 0 ? "#" : "", on.sibling > 0 ? on.sibling : on.array.value,
          first == Counting::FromZero ? "0" : "1", first == Counting::FromZero ? "1" : "0");
    }
  }
  return std::nullopt;
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
  name_submission(request);
}

namespace {

/// Arrays whose users count from 0 have indices that are one more.
void count_from_one(std::vector<NewArray>& arrays, const std::map<ArrayId, Counting>& counting) {
  for (NewArray& array : arrays) {
    for (Dependency& on : array.after) {
      const auto known = counting.find(on.array);
      if (std::exchange(on.is_users_index, false) && known != counting.end() &&
          known->second == Counting::FromZero)
        ++*on.index;
    }
  }
}

/// What was submitted before under that name and is no singleton itself.
void wait_for_named(std::vector<NewArray>& arrays,
                    const std::map<std::string, std::vector<ArrayId>>& named) {
  for (NewArray& array : arrays) {
    const auto before = named.find(array.course->singleton);
    if (before == named.end()) continue;
    for (const ArrayId id : before->second)
      array.after.push_back({.array = id, .index = {}, .kind = Dependency::Kind::AnyEnd});
  }
}

}  // namespace

/// What only the store knows of what is waited for is looked up first.
void ClientRequests::name_submission(RequestId request) {
  std::set<ArrayId> counted;
  bool has_pairs = false;
  std::set<std::string> names;
  for (const NewArray& array : submissions_.at(request.value).arrays) {
    if (!array.course->singleton.empty()) names.insert(array.course->singleton);
    for (const Dependency& on : array.after) {
      const bool is_pair = on.kind == Dependency::Kind::EachSuccess;
      has_pairs = has_pairs || is_pair;
      if (on.is_users_index || is_pair) counted.insert(on.array);
    }
  }
  if (counted.empty() && names.empty()) return feed_submission(request, {});
  struct Found {
    std::map<ArrayId, Counting> counting;
    std::map<std::string, std::vector<ArrayId>> named;
  };
  dependencies_.writer.read(
      [counted, names](store::Store& store) {
        Found found;
        for (const ArrayId id : counted) {
          if (const auto row = store.history().array(id))
            found.counting[id] = counting_of(row->recipe);
        }
        for (const std::string& name : names)
          found.named[name] = store.history().open_ones_called(name);
        return found;
      },
      [this, request, has_pairs](const Found& found) {
        Submission& submission = submissions_.at(request.value);
        if (const auto why = has_pairs ? why_not_paired(submission, found.counting) : std::nullopt)
          return refuse(request, *why);
        std::vector<NewArray>& arrays = submission.arrays;
        count_from_one(arrays, found.counting);
        wait_for_named(arrays, found.named);
        feed_submission(request, {});
      });
}

void ClientRequests::refuse(RequestId request, const std::string& why) {
  submissions_.erase(request.value);
  auto waiting = submit_answers_.extract(request.value);
  if (!waiting.empty()) waiting.mapped()(SubmitRefusal{why});
}

void ClientRequests::feed_submission(RequestId request, std::vector<EndedArray> ended) {
  Submission& submission = submissions_.at(request.value);
  std::vector<ArrayId> missing = unheld_dependencies(submission.arrays);
  std::set<ArrayId> known;
  for (const EndedArray& array : ended) known.insert(array.id);
  std::erase_if(missing, [&](ArrayId id) { return known.contains(id); });
  // What ended is looked up, each id once; what ends while we look is looked up in another round, and
  // so is the array that an id of one of its tasks stands for.  An id that is nowhere is the
  // engine's to refuse, by then with every fact there is.
  if (!missing.empty()) {
    struct Found {
      std::vector<EndedArray> ended;
      std::map<ArrayId, TaskId> tasks;
    };
    dependencies_.writer.read(
        [missing](store::Store& store) {
          Found found;
          for (const ArrayId id : missing) {
            found.ended.push_back(store.history().ended(id).value_or(EndedArray{id, {}, {}}));
            if (const auto task = store.history().task_of_id(id)) found.tasks.emplace(id, *task);
          }
          return found;
        },
        [this, request, ended](Found found) mutable {
          name_tasks(submissions_.at(request.value).arrays, found.tasks);
          ended.insert(ended.end(), found.ended.begin(), found.ended.end());
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
                         std::move(ended),
                         std::move(submission.read_by)};
    dependencies_.feed_submit(std::move(event));
  }
  submissions_.erase(request.value);
}

void ClientRequests::cancel(std::vector<Selection> tasks, CountAnswer answer) {
  const RequestId request = new_request();
  count_answers_[request.value] = std::move(answer);
  dependencies_.feed(CancelAsked{request, std::move(tasks)});
}

void ClientRequests::requeue(std::vector<Selection> tasks, CountAnswer answer) {
  const RequestId request = new_request();
  count_answers_[request.value] = std::move(answer);
  dependencies_.feed(RequeueAsked{request, std::move(tasks)});
}

void ClientRequests::update(Update asked, CountAnswer answer) {
  const std::vector<Dependency> after = asked.change.after.value_or(std::vector<Dependency>{});
  struct Found {
    std::vector<EndedArray> ended;
    std::map<ArrayId, TaskId> tasks;
    std::map<ArrayId, Counting> counting;
  };
  dependencies_.writer.read(
      [after](store::Store& store) {
        Found found;
        for (const Dependency& on : after) {
          if (auto ended = store.history().ended(on.array))
            found.ended.push_back(std::move(*ended));
          if (const auto task = store.history().task_of_id(on.array))
            found.tasks.emplace(on.array, *task);
          if (const auto row = store.history().array(on.array))
            found.counting[on.array] = counting_of(row->recipe);
        }
        return found;
      },
      [this, asked = std::move(asked), answer = std::move(answer)](Found found) mutable {
        if (dependencies_.is_stopped())
          return answer(Error{Error::Kind::Rejected, "the engine is being stopped"});
        if (asked.change.after) {
          std::vector<NewArray> one(1);
          one.front().after = std::move(*asked.change.after);
          count_from_one(one, found.counting);
          name_tasks(one, found.tasks);
          asked.change.after = std::move(one.front().after);
        }
        const RequestId request = new_request();
        count_answers_[request.value] = std::move(answer);
        dependencies_.feed(UpdateAsked{request, std::move(asked.arrays), std::move(asked.change),
                                       std::move(found.ended)});
      });
}

void ClientRequests::reader_heard(const std::string& reader, bool is_there) {
  if (!dependencies_.is_stopped()) dependencies_.feed(ReaderHeard{reader, is_there});
}

void ClientRequests::keep(KeepAsked event, CountAnswer answer) {
  event.request = new_request();
  count_answers_[event.request.value] = std::move(answer);
  dependencies_.feed(std::move(event));
}

void ClientRequests::resume(const std::string& site, CountAnswer answer) {
  const RequestId request = new_request();
  count_answers_[request.value] = std::move(answer);
  dependencies_.feed(ResumeAsked{request, site});
}

void ClientRequests::hold(std::vector<Selection> tasks, bool hold, CountAnswer answer) {
  const RequestId request = new_request();
  count_answers_[request.value] = std::move(answer);
  dependencies_.feed(HoldAsked{request, std::move(tasks), hold});
}

namespace {

std::uint64_t waiting_of(const ArrayState& live) {
  return live.tasks.open().size() - live.tasks.leased().size();
}

/// Needs are those of an array: what waits of it gets the new ones, too, which may be more than it
/// asked for, and not less.  What runs keeps what it was given.
std::optional<std::string> less_for_others(const std::vector<RevivedArray>& arrays,
                                           const Engine& engine) {
  for (const RevivedArray& revived : arrays) {
    const ArrayState* live = engine.tasks().find(revived.id);
    if (!revived.has_new_needs || !live) continue;
    const std::uint64_t others = waiting_of(*live);
    if (others == 0 || !gets_less(as_asked(live->terms->needs), revived.array.needs)) continue;
    return fmt::format(
        "{} of {} still waiting would get less than asked for, too; retry when nothing of it is "
        "waiting, or with no less than that has",
        show_count(others, "task"), revived.id.value);
  }
  return std::nullopt;
}

/// Whom new needs reach beside those that are retried.
Changed needs_of_others(const std::vector<RevivedArray>& arrays, const Engine& engine) {
  Changed beside;
  for (const RevivedArray& revived : arrays) {
    if (!revived.has_new_needs) continue;
    if (const ArrayState* live = engine.tasks().find(revived.id))
      beside.others += waiting_of(*live);
    beside.later += revived.not_ok.size();
  }
  return beside;
}

std::set<ArrayId> arrays_of(const Retry& asked) {
  std::set<ArrayId> ids;
  for (const Selection& one : asked.tasks) ids.insert(one.array);
  return ids;
}

bool cannot_start(const RevivedArray& revived, const Dependency& on, const EndedArray& ended) {
  switch (on.kind) {
    case Dependency::Kind::AnyEnd:
    case Dependency::Kind::Start:
      return false;
    case Dependency::Kind::NotSuccess:
      return on.index ? ended.ok.contains(*on.index) : ended.not_ok.empty();
    case Dependency::Kind::EachSuccess: {
      IndexSet startable = revived.array.indices;
      startable.remove(ended.not_ok);
      return startable.empty();
    }
    case Dependency::Kind::Success:
      break;
  }
  return on.index ? ended.not_ok.contains(*on.index) : !ended.not_ok.empty();
}

/// Where all that is to run again waits for what did not end well, and does not run again.
std::optional<std::string> none_could_start(const std::set<ArrayId>& asked,
                                            const store::Revivable& found) {
  std::set<ArrayId> runs_again;
  for (const RevivedArray& revived : found.arrays) runs_again.insert(revived.id);
  std::map<ArrayId, const EndedArray*> ended;
  for (const EndedArray& one : found.ended) ended[one.id] = &one;
  std::optional<std::string> refusal;
  for (const RevivedArray& revived : found.arrays) {
    if (!asked.contains(revived.id)) continue;
    // Another of these may be enough.
    if (revived.array.course->any_of_after) return std::nullopt;
    const auto missing = std::find_if(
        revived.array.after.begin(), revived.array.after.end(), [&](const Dependency& on) {
          const auto at = ended.find(on.array);
          return !runs_again.contains(on.array) && at != ended.end() &&
                 cannot_start(revived, on, *at->second);
        });
    if (missing == revived.array.after.end()) return std::nullopt;
    if (refusal) continue;
    const std::string& cause = ended[missing->array]->first_cause;
    refusal = fmt::format(
        "{} waits for {}, which did not end well{}, and could not start: retry that, and what "
        "waits "
        "for it runs again, too",
        revived.id.value, missing->array.value,
        cause.empty() ? "" : fmt::format(" because of {}", cause));
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
        const std::set<ArrayId> named = arrays_of(asked);
        if (auto refusal = none_could_start(named, found))
          return answer(Error{Error::Kind::Rejected, std::move(*refusal)});
        std::uint64_t dependants = 0;
        for (RevivedArray& revived : found.arrays) {
          const bool is_asked = named.contains(revived.id);
          if (!is_asked) dependants += revived.array.indices.size();
          if (!asked.change.any() || !is_asked) continue;
          revived.array.needs = changed(std::move(revived.array.needs), asked.change);
          revived.has_new_needs = true;
        }
        if (auto refusal = less_for_others(found.arrays, *dependencies_.engine))
          return answer(Error{Error::Kind::Rejected, std::move(*refusal)});
        const RequestId request = new_request();
        Changed beside = needs_of_others(found.arrays, *dependencies_.engine);
        beside.dependants = dependants;
        count_answers_[request.value] = [answer = std::move(answer),
                                         beside](Result<Changed> changed) {
          if (changed) {
            changed->dependants = std::min(beside.dependants, changed->tasks);
            changed->others = beside.others;
            changed->later = beside.later;
          }
          answer(changed);
        };
        dependencies_.feed(RetryAsked{request, std::move(found.arrays), std::move(found.ended)});
      });
}

std::vector<store::Recipe> ClientRequests::take_recipes(RequestId request) {
  return std::move(submissions_.at(request.value).recipes);
}

std::vector<std::string> ClientRequests::take_notify(RequestId request) {
  return std::move(submissions_.at(request.value).notify);
}

void ClientRequests::answer(const AnswerSubmit& action) {
  crash_point("submit-decided");
  dependencies_.after(order_of(action), [this, action] {
    crash_point("submit-durable");
    if (!action.ids.empty()) dependencies_.given(action.ids.back().value);
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
