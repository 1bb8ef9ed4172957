#include "engine/readers.hpp"

#include "engine/engine.hpp"
#include "model/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <variant>

namespace hpcbatch {

void Readers::set_end(All::iterator at, std::optional<Time> end) {
  Reader& reader = at->second;
  if (reader.ends) ends_.erase({*reader.ends, at->first});
  reader.ends = end;
  if (end) ends_.emplace(*end, at->first);
}

void Readers::drop_if_unused(All::iterator at) {
  if (at->second.there > 0 || at->second.arrays > 0) return;
  set_end(at, std::nullopt);
  readers_.erase(at);
}

void Readers::reads(const ReadBy& by, ArrayId first, std::uint64_t arrays, Time now) {
  const ArrayId last{first.value + arrays - 1};
  forget(first, last);
  const auto at = readers_.try_emplace(by.reader).first;
  Reader& reader = at->second;
  reader.lease = std::max(reader.lease, by.lease);
  reader.arrays += arrays;
  const auto next = ranges_.upper_bound(first);
  const auto before = next == ranges_.begin() ? ranges_.end() : std::prev(next);
  if (before != ranges_.end() && before->second.reader == at &&
      before->second.last.value + 1 == first.value) {
    before->second.last = last;
  } else {
    ranges_.emplace(first, Range{last, at});
  }
  if (reader.there == 0) set_end(at, now + reader.lease);
}

bool Readers::forget(ArrayId first, ArrayId last) {
  auto at = ranges_.upper_bound(first);
  if (at != ranges_.begin() && std::prev(at)->second.last >= first) --at;
  bool had_any = false;
  while (at != ranges_.end() && at->first <= last) {
    const auto [begin, range] = *at;
    at = ranges_.erase(at);
    if (begin < first) ranges_.emplace(begin, Range{ArrayId{first.value - 1}, range.reader});
    if (range.last > last) ranges_.emplace(ArrayId{last.value + 1}, range);
    range.reader->second.arrays -=
        std::min(range.last, last).value - std::max(begin, first).value + 1;
    drop_if_unused(range.reader);
    had_any = true;
  }
  return had_any;
}

void Readers::heard(const std::string& reader, bool is_there, Time now) {
  if (is_there) {
    const auto at = readers_.try_emplace(reader).first;
    ++at->second.there;
    set_end(at, std::nullopt);
    return;
  }
  const auto at = readers_.find(reader);
  if (at == readers_.end() || at->second.there == 0 || --at->second.there > 0) return;
  set_end(at, now + at->second.lease);
  drop_if_unused(at);
}

std::optional<Time> Readers::next_wake() const {
  return ends_.empty() ? std::nullopt : std::optional(ends_.begin()->first);
}

std::vector<Readers::Unread> Readers::take_unread(Time now) {
  std::vector<All::iterator> gone;
  while (!ends_.empty() && ends_.begin()->first <= now) {
    gone.push_back(readers_.find(ends_.begin()->second));
    set_end(gone.back(), std::nullopt);
  }
  std::vector<Unread> unread;
  if (gone.empty()) return unread;
  std::erase_if(ranges_, [&](const auto& entry) {
    const auto& [first, range] = entry;
    const Reader& reader = range.reader->second;
    if (reader.there > 0 || reader.ends) return false;
    unread.push_back({first, range.last, reader.lease});
    return true;
  });
  for (const auto at : gone) readers_.erase(at);
  return unread;
}

std::vector<std::pair<ArrayId, ArrayId>> Readers::arrays() const {
  std::vector<std::pair<ArrayId, ArrayId>> all;
  for (const auto& [first, range] : ranges_) all.emplace_back(first, range.last);
  return all;
}

void Engine::handle(const ReaderHeard& event, Time now) {
  readers_.heard(event.reader, event.is_there, now);
}

std::string why_unread(Duration lease) {
  return fmt::format(
      "cancelled, because the program that waited for it has been away for {} s; work that is to "
      "go on without one is "
      "submitted detached (in Python `Executor(detached=True)`)",
      std::chrono::duration_cast<std::chrono::seconds>(lease).count());
}

std::vector<ArrayId> TaskTable::mark_unread(ArrayId first, ArrayId last, Duration lease) {
  std::vector<ArrayId> live;
  const auto end = arrays_.upper_bound(last);
  for (auto at = arrays_.lower_bound(first); at != end; ++at) {
    at->second.make_rare().unread_for = lease;
    live.push_back(at->first);
  }
  return live;
}

void Engine::end_unread(Time now) {
  std::map<ArrayId, Duration> leases;
  for (const Readers::Unread& unread : readers_.take_unread(now)) {
    for (const ArrayId array : tasks_.mark_unread(unread.first, unread.last, unread.lease))
      leases.emplace(array, unread.lease);
  }
  // Who waits for others has a higher number, and is to be cancelled itself.
  for (auto at = leases.rbegin(); at != leases.rend(); ++at)
    cancel_tasks({{at->first, std::nullopt}}, why_unread(at->second), now);
}

/// Of a submit that came before: what of it is live is for who sends it now.
void Engine::hand_over(const std::vector<ArrayId>& arrays, const std::optional<ReadBy>& to,
                       Time now) {
  SaveReader save{{}, to};
  for (const ArrayId array : arrays) {
    if (!tasks_.find(array)) continue;
    const bool had_one = readers_.forget(array, array);
    if (to) readers_.reads(*to, array, 1, now);
    if (to || had_one) save.arrays.push_back(array);
  }
  if (!save.arrays.empty()) actions_.push_back(std::move(save));
}

/// What has ended needs no reader, and what runs again runs for the user who asked for that.
void Engine::forget_readers() {
  for (const Action& action : actions_) {
    if (const auto* ended = std::get_if<SaveArrayEnded>(&action))
      readers_.forget(ended->array, ended->array);
    if (const auto* revived = std::get_if<SaveRevived>(&action))
      readers_.forget(revived->array, revived->array);
  }
}

void Engine::check_readers() const {
  for (const auto& [first, last] : readers_.arrays()) {
    for (std::uint64_t array = first.value; array <= last.value; ++array)
      HPCBATCH_CHECK(tasks_.find(ArrayId{array}));
  }
}

}  // namespace hpcbatch
