// Tasks whose files have to be staged in at a site before they can start there: which stand where,
// and what changes when files have arrived or could not be staged in.
#include "engine/task_table.hpp"

#include "model/check.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstPause = 5s;
constexpr Duration kLongestPause = 5min;

}  // namespace

void TaskTable::forget_files(ArrayState& array, const IndexSet& indices) {
  if (!array.rare) return;
  for (auto& [site, tasks] : array.rare->files_at) tasks.remove(indices);
  for (const auto& [site, tasks] : array.rare->files_staging) not_coming(array, site, indices);
}

void TaskTable::not_coming(ArrayState& array, const std::string& site, const IndexSet& indices) {
  array.rare->staging_times[site].given_up(indices);
  IndexSet& coming = array.rare->files_staging.at(site);
  coming_[site] -= coming.size();
  coming.remove(indices);
  coming_[site] += coming.size();
}

bool TaskTable::are_files_coming(const std::string& site) const {
  const auto at = coming_.find(site);
  return at != coming_.end() && at->second != 0;
}

namespace {

/// `times` times so many hundredths of it.
std::int64_t grown(std::int64_t amount, std::uint32_t hundredths, std::uint8_t times) {
  double value = static_cast<double>(amount);
  for (std::uint8_t i = 0; i < times; ++i) value *= hundredths / 100.0;
  return static_cast<std::int64_t>(std::min(value, 9e18));
}

}  // namespace

std::optional<Needs> TaskTable::grown_needs(TaskId task) const {
  if (histories_.empty()) return std::nullopt;
  const TaskHistory* past = history(task);
  const ArrayState* array = find(task.array);
  if (!past || !array) return std::nullopt;
  const Course& course = array->terms->course.get();
  const Needs& least = array->terms->needs;
  const Amount memory = least.amounts.get(kMemory);
  Needs needs = least;
  if (past->ooms != 0 && course.retry_memory > 100)
    needs.amounts.set(kMemory, Amount{grown(memory.ticks, course.retry_memory, past->ooms)});
  if (past->timeouts != 0 && course.retry_time > 100 && least.time)
    needs.time = Duration{grown(least.time->count(), course.retry_time, past->timeouts)};
  if (needs == least) return std::nullopt;
  return bound_(needs, least);
}

/// What one task needs now: its files may be somewhere, and a pilot's end may have cut it.
Needs TaskTable::needs_of(const ArrayState& array, std::uint32_t index) const {
  std::vector<std::string> sites;
  for (const auto& [site, tasks] : array.files_at()) {
    if (tasks.contains(index)) sites.push_back(site);
  }
  const TaskHistory* past = history({array.id, index});
  const auto grown = grown_needs({array.id, index});
  Needs needs = with_files_at(grown                        ? *grown
                              : past && past->guess_failed ? as_asked(array.terms->needs)
                                                           : array.terms->needs,
                              sites);
  if (past && past->needs_more_than)
    needs.time_request =
        std::max(time_to_begin(needs).value_or(Duration{}), more_than(*past->needs_more_than));
  return needs;
}

void TaskTable::make_ready_by_files(
    ArrayState& array, IndexSet indices,
    const std::function<void(const QueuePlace&, const IndexSet&)>& add) {
  const auto add_in = [&](ClassId in_class, const IndexSet& some) {
    add_class(array, in_class);
    QueuePlace place = array.place();
    place.in_class = in_class;
    add(place, some);
  };
  const IndexSet cut = indices.intersection(array.cut());
  for (const IndexRange& range : cut.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const auto index = static_cast<std::uint32_t>(i);
      add_in(queue_.class_for(needs_of(array, index), apart_by({array.id, index})),
             IndexRange{index, index});
    }
  }
  indices.remove(cut);
  // The others by where their files are.
  std::vector<std::pair<std::vector<std::string>, IndexSet>> parts;
  parts.emplace_back(std::vector<std::string>{}, std::move(indices));
  for (const auto& [site, there] : array.files_at()) {
    for (std::size_t i = parts.size(); i-- > 0;) {
      IndexSet here = parts[i].second.intersection(there);
      if (here.empty()) continue;
      parts[i].second.remove(here);
      std::vector<std::string> sites = parts[i].first;
      sites.push_back(site);
      parts.emplace_back(std::move(sites), std::move(here));
    }
  }
  for (const auto& [sites, some] : parts) {
    if (!some.empty()) add_in(queue_.class_for(with_files_at(array.terms->needs, sites)), some);
  }
}

void TaskTable::files_staging(ArrayId id, const std::string& site, const IndexSet& indices,
                              Time now) {
  ArrayState::Rare& rare = get(id).make_rare();
  rare.staging_times[site].began(indices, now);
  IndexSet& coming = rare.files_staging[site];
  coming_[site] -= coming.size();
  coming.add(indices);
  coming_[site] += coming.size();
}

Duration TaskTable::staged_in(TaskId task, const std::string& site) {
  ArrayState& array = get(task.array);
  if (!array.rare) return {};
  Duration there{};
  for (auto& [name, times] : array.rare->staging_times) {
    const Duration took = times.take(task.index);
    if (name == site) there = took;
  }
  return there;
}

void TaskTable::files_shared(ArrayId id, const std::string& site, const IndexSet& indices) {
  ArrayState& array = get(id);
  ArrayState::Rare& rare = array.make_rare();
  // Those that are coming are told of by index: the others are seen to when they have come.
  if (rare.files_at[site].empty()) return;
  rare.files_at[site].add(indices);
  IndexSet moved;
  for (const QueuePlace& place : array.places()) moved.add(queue_.remove(place, indices));
  make_ready(array, moved);
}

bool TaskTable::files_staged(const StagedIn& event, Time now) {
  const auto at = arrays_.find(event.array);
  if (at == arrays_.end() || !at->second.needs_files()) return are_files_coming(event.site);
  ArrayState& array = at->second;
  ArrayState::Rare& rare = array.make_rare();
  IndexSet& coming = rare.files_staging[event.site];
  // Of those that have ended meanwhile nothing is coming any more.
  const IndexSet there = event.there.intersection(coming);
  rare.staging_times[event.site].arrived(there, now);
  not_coming(array, event.site, there);
  if (!there.empty()) {
    rare.files_at[event.site].add(there);
    rare.pauses.erase(event.site);
    IndexSet moved;
    for (const QueuePlace& place : array.places()) moved.add(queue_.remove(place, there));
    make_ready(array, moved);
  }
  for (const StagedIn::Failed& failed : event.failed) {
    IndexSet indices = failed.indices.intersection(coming);
    not_coming(array, event.site, indices);
    // What had been staged in may be gone.
    IndexSet& brought = rare.files_at[event.site];
    const IndexSet gone = failed.indices.intersection(brought);
    if (!gone.empty()) {
      brought.remove(gone);
      IndexSet moved;
      for (const QueuePlace& place : array.places()) moved.add(queue_.remove(place, gone));
      make_ready(array, moved);
      indices.add(gone);
    }
    if (indices.empty()) continue;
    if (failed.can_be_tried_again) {
      auto& pause = rare.pauses[event.site];
      if (pause.until <= now) {
        const std::uint32_t doublings = std::min<std::uint32_t>(pause.failures++, 8);
        pause.until = now + std::min(kLongestPause, kFirstPause * (std::int64_t{1} << doublings));
      }
      pause.why = failed.text;
      continue;
    }
    IndexSet hit;
    for (const QueuePlace& place : array.places()) hit.add(queue_.remove(place, indices));
    Outcome outcome;
    outcome.failure = failed.failure;
    outcome.message = failed.text;
    outcome.ended = now;
    end_unleased(array.id, hit, outcome);
  }
  spread_ends();
  return are_files_coming(event.site);
}

}  // namespace hpcbatch
