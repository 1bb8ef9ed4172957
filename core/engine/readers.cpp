#include "engine/readers.hpp"

#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {

void Readers::set_end(All::iterator at, std::optional<Time> end) {
  Reader& reader = at->second;
  if (reader.ends) ends_.erase({*reader.ends, at->first});
  reader.ends = end;
  if (end) ends_.emplace(*end, at->first);
}

void Readers::reads(const ReadBy& by, ArrayId first, std::uint64_t arrays, Time now) {
  const auto at = readers_.try_emplace(by.reader).first;
  Gone& what = at->second.what;
  what.lease = std::max(what.lease, by.lease);
  const ArrayId last{first.value + arrays - 1};
  if (!what.arrays.empty() && what.arrays.back().second.value + 1 == first.value) {
    what.arrays.back().second = last;
  } else {
    what.arrays.emplace_back(first, last);
  }
  if (at->second.there == 0) set_end(at, now + what.lease);
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
  if (at->second.what.arrays.empty()) {
    readers_.erase(at);
  } else {
    set_end(at, now + at->second.what.lease);
  }
}

std::optional<Time> Readers::next_wake() const {
  return ends_.empty() ? std::nullopt : std::optional(ends_.begin()->first);
}

std::vector<Readers::Gone> Readers::take_gone(Time now) {
  std::vector<Gone> gone;
  while (!ends_.empty() && ends_.begin()->first <= now) {
    const auto at = readers_.find(ends_.begin()->second);
    gone.push_back(std::move(at->second.what));
    set_end(at, std::nullopt);
    readers_.erase(at);
  }
  return gone;
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

std::vector<Selection> TaskTable::unread(ArrayId first, ArrayId last, Duration lease) {
  std::vector<Selection> live;
  const auto end = arrays_.upper_bound(last);
  for (auto at = arrays_.lower_bound(first); at != end; ++at) {
    at->second.make_rare().unread_for = lease;
    live.push_back({at->first, std::nullopt});
  }
  // Who waits for others has a higher number, and is to be cancelled itself.
  std::reverse(live.begin(), live.end());
  return live;
}

void Engine::end_unread(Time now) {
  for (const Readers::Gone& gone : readers_.take_gone(now)) {
    for (const auto& [first, last] : gone.arrays)
      cancel_tasks(tasks_.unread(first, last, gone.lease), why_unread(gone.lease), now);
  }
}

}  // namespace hpcbatch
