#include "saved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hpcbatch {

std::string Saved::apply(const Action& action) {
  return std::visit([&](const auto& a) { return save(a); }, action);
}

std::string Saved::save(const SaveArrays& save) {
  StoredKey key{save.client, save.key, save.content, {}};
  for (std::size_t i = 0; i < save.arrays.size(); ++i) {
    const ArrayId id = save.id_of(i);
    const NewArray& array = save.arrays[i];
    if (arrays_.contains(id)) return fmt::format("array {} is saved twice", id.value);
    arrays_[id] = {array, save.client, save.submitted, array.held ? array.indices : IndexSet{},
                   false, save.read_by};
    submitted_ += array.indices.size();
    key.ids.push_back(id);
  }
  if (!save.key.empty()) keys_.push_back(std::move(key));
  return {};
}

std::string Saved::save(const SaveHold& save) {
  arrays_.at(save.array).held = save.held;
  return {};
}

std::string Saved::save(const SaveTerms& save) {
  NewArray& array = arrays_.at(save.array).facts;
  IndexSet indices = std::move(array.indices);
  array = save.terms;
  array.indices = std::move(indices);
  return {};
}

std::string Saved::save(const SaveKeep& save) {
  std::erase_if(keeps_, [&](const Keep& keep) {
    return keep.site == save.keep.site && keep.shape == save.keep.shape;
  });
  if (save.keep.allocations != 0) keeps_.push_back(save.keep);
  return {};
}

std::string Saved::save(const SaveReader& save) {
  for (const ArrayId array : save.arrays) arrays_.at(array).read_by = save.by;
  return {};
}

std::string Saved::save(const SaveLeases& save) {
  for (const AttemptId& attempt : save.attempts) {
    const std::string name = to_string(attempt.task);
    if (outcomes_.contains(attempt.task)) return name + " is leased though it has ended";
    if (leases_.contains(attempt.task)) return name + " is leased twice";
    if (attempt.engine_start() != starts_) return name + " has an epoch of another start";
    if (std::exchange(epochs_[attempt.task], attempt.epoch) >= attempt.epoch)
      return name + " has an old epoch";
    leases_[attempt.task] = {attempt, save.pilot, false, false, save.members};
  }
  return {};
}

std::string Saved::save(const SendLeases& send) {
  for (const SendLeases::Lease& lease : send.leases) {
    const auto at = epochs_.find(lease.attempt.task);
    if (at == epochs_.end() || at->second < lease.attempt.epoch)
      return to_string(lease.attempt.task) + " is sent before its lease is saved";
  }
  return {};
}

std::string Saved::save(const DropLeases& save) {
  for (const TaskId task : save.tasks) {
    if (leases_.erase(task) == 0) return to_string(task) + " has no lease to drop";
  }
  return {};
}

std::string Saved::save(const SaveCancelled& save) {
  for (const TaskId task : save.tasks) {
    const auto lease = leases_.find(task);
    if (lease == leases_.end()) return to_string(task) + " is cancelled at a pilot without a lease";
    lease->second.cancelled = true;
  }
  return {};
}

std::string Saved::save(const SavePermitted& save) {
  const auto lease = leases_.find(save.task);
  if (lease == leases_.end()) return to_string(save.task) + " may publish without a lease";
  lease->second.permitted = true;
  return {};
}

std::string Saved::save(const SaveFailedAttempt& save) {
  const TaskId task = save.attempt.task;
  if (outcomes_.contains(task)) return to_string(task) + " fails though it has ended";
  const auto lease = leases_.find(task);
  if (lease == leases_.end() || lease->second.attempt != save.attempt)
    return to_string(task) + " fails without a lease";
  leases_.erase(lease);
  attempts_[task] = save.attempt.number;
  failed_.push_back(save);
  return {};
}

std::string Saved::end(TaskId task, const Outcome& outcome) {
  if (!arrays_.at(task.array).facts.indices.contains(task.index))
    return to_string(task) + " never was";
  if (!outcomes_.try_emplace(task, outcome).second) return to_string(task) + " has two results";
  return {};
}

std::string Saved::save(const SaveResult& save) {
  const TaskId task = save.attempt.task;
  const auto lease = leases_.find(task);
  if (lease == leases_.end() || lease->second.attempt != save.attempt)
    return to_string(task) + " has a result without a lease";
  leases_.erase(lease);
  attempts_[task] = save.attempt.number;
  return end(task, save.outcome);
}

std::string Saved::save(const SaveResults& save) {
  for (const IndexRange& range : save.indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const TaskId task{save.array, static_cast<std::uint32_t>(i)};
      if (leases_.contains(task))
        return to_string(task) + " is leased and ends as if it never started";
      if (std::string wrong = end(task, save.outcome); !wrong.empty()) return wrong;
    }
  }
  return {};
}

std::string Saved::save(const SaveArrayEnded& save) {
  Array& array = arrays_.at(save.array);
  for (const IndexRange& range : array.facts.indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const TaskId task{save.array, static_cast<std::uint32_t>(i)};
      if (!outcomes_.contains(task))
        return fmt::format("array {} is over before {}", save.array.value, to_string(task));
    }
  }
  if (array.ended) return fmt::format("array {} is over twice", save.array.value);
  array.ended = true;
  return {};
}

std::string Saved::save(const SaveRevived& save) {
  for (const IndexRange& range : save.indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const TaskId task{save.array, static_cast<std::uint32_t>(i)};
      if (outcomes_.erase(task) == 0) return "what is revived had not ended";
      std::erase_if(failed_, [&](const SaveFailedAttempt& f) { return f.attempt.task == task; });
    }
  }
  Array& array = arrays_.at(save.array);
  array.read_by.reset();
  if (save.needs) array.facts.needs = *save.needs;
  if (array.ended) array.held = {};
  array.ended = false;
  return {};
}

std::string Saved::save(const SaveAllocation& save) {
  if (forgotten_.contains(save.allocation.id))
    return save.allocation.id.name + " is saved though it was forgotten";
  allocations_[save.allocation.id] = save.allocation;
  if (!save.allocation.number.empty()) proven_.emplace(save.allocation.site, save.allocation.shape);
  return {};
}

std::string Saved::save(const OpenAllocation& open) {
  const auto at = allocations_.find(open.allocation);
  if (at == allocations_.end()) return open.allocation.name + " is asked for before that is saved";
  if (at->second.state != AllocationState::Submitting)
    return open.allocation.name + " is asked for once too often";
  return {};
}

std::string Saved::save(const AcknowledgeResults& acknowledged) {
  for (const AttemptId& attempt : acknowledged.attempts) {
    const auto at = leases_.find(attempt.task);
    if (at != leases_.end() && at->second.attempt == attempt)
      return to_string(attempt.task) + " is acknowledged before its end is saved";
  }
  return {};
}

std::string Saved::save(const ForgetAllocation& forget) {
  forgotten_.insert(forget.allocation);
  if (allocations_.at(forget.allocation).state != AllocationState::Ended)
    return "a living allocation is forgotten";
  for (const auto& [task, lease] : leases_) {
    if (lease.pilot.allocation == forget.allocation)
      return to_string(task) + " is still leased where all is forgotten";
  }
  return {};
}

EndedArray Saved::ended(ArrayId id) const {
  EndedArray ended{id, {}, {}};
  for (auto at = outcomes_.lower_bound({id, 0}); at != outcomes_.end() && at->first.array == id;
       ++at) {
    (at->second.failure == Failure::Ok ? ended.ok : ended.not_ok).add(at->first.index);
  }
  return ended;
}

IndexSet Saved::failed(ArrayId id) const {
  IndexSet failed;
  for (auto at = outcomes_.lower_bound({id, 0}); at != outcomes_.end() && at->first.array == id;
       ++at) {
    if (is_a_failure_of_its_own(at->second.failure)) failed.add(at->first.index);
  }
  return failed;
}

Snapshot Saved::snapshot() const {
  Snapshot snapshot{.engine_start = starts_, .engine_name = "abcde"};
  std::set<ArrayId> needed;
  for (const auto& [id, array] : arrays_) {
    snapshot.next_array = id.value + 1;
    if (array.ended) continue;
    if (array.read_by) snapshot.readers.push_back({id, *array.read_by});
    for (const Dependency& dependency : array.facts.after) {
      if (arrays_.at(dependency.array).ended) needed.insert(dependency.array);
    }
  }
  for (const ArrayId id : needed) snapshot.ended.push_back(ended(id));
  for (const auto& [task, lease] : leases_) snapshot.leases.push_back(lease);
  for (const SaveFailedAttempt& failed : failed_) {
    if (!arrays_.at(failed.attempt.task.array).ended) snapshot.failed_attempts.push_back(failed);
  }
  for (const auto& [id, allocation] : allocations_) {
    if (allocation.state != AllocationState::Ended) snapshot.allocations.push_back(allocation);
  }
  snapshot.keys = keys_;
  snapshot.keeps = keeps_;
  snapshot.proven.assign(proven_.begin(), proven_.end());
  for (const auto& [id, allocation] : allocations_) {
    if (allocation.running_since) {
      snapshot.past_starts.push_back(
          {allocation.site, allocation.shape, allocation.opened, *allocation.running_since});
    }
  }
  std::sort(
      snapshot.past_starts.begin(), snapshot.past_starts.end(),
      [](const PastStart& a, const PastStart& b) { return a.running_since < b.running_since; });
  return snapshot;
}

LiveArrays Saved::live_arrays() const {
  std::vector<LiveArray> all;
  for (const auto& [id, array] : arrays_) {
    if (array.ended) continue;
    const EndedArray so_far = ended(id);
    all.push_back({.id = id,
                   .client = array.client,
                   .array = array.facts,
                   .submitted = array.submitted,
                   .ok = so_far.ok,
                   .not_ok = so_far.not_ok,
                   .failed = array.facts.give_up_at != 0 ? failed(id) : IndexSet{},
                   .held = array.held});
    all.back().array.held = false;
  }
  return [all = std::move(all), next = std::size_t{0}]() mutable {
    return next == all.size() ? nullptr : &all[next++];
  };
}

std::optional<Outcome> Saved::outcome(TaskId task) const {
  const auto at = outcomes_.find(task);
  return at == outcomes_.end() ? std::nullopt : std::optional(at->second);
}

RevivedArray Saved::revived(ArrayId id, const IndexSet& indices) const {
  const Array& array = arrays_.at(id);
  RevivedArray again{
      .id = id, .client = array.client, .array = array.facts, .all = array.facts.indices};
  again.array.held = false;
  const EndedArray so_far = ended(id);
  again.ok = so_far.ok;
  again.array.indices = so_far.not_ok.intersection(indices);
  again.not_ok = so_far.not_ok;
  again.not_ok.remove(again.array.indices);
  again.failed = failed(id).intersection(again.not_ok);
  for (const IndexRange& range : again.array.indices.ranges()) {
    for (std::uint32_t i = range.first; i <= range.last; ++i) {
      const auto attempts = attempts_.find({id, i});
      again.attempts.emplace_back(i, attempts == attempts_.end() ? 0 : attempts->second);
    }
  }
  return again;
}

}  // namespace hpcbatch
