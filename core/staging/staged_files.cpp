#include "staging/staged_files.hpp"

#include "model/check.hpp"
#include "wire/file_store.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {
namespace {

// So often what is to be sent may turn out to be another file than the one that was hashed.
constexpr unsigned kMostChanges = 2;

}  // namespace

// --- owners --------------------------------------------------------------------------------------

void StagedFiles::want(const StageOwner& id, const std::vector<std::string>& paths,
                       std::uint64_t ticket) {
  Owner& owner = owners_[id];
  owner.tickets.push_back(ticket);
  for (const std::string& path : paths) {
    Place& place = owner.places[path];
    if (place.is_asked || (!place.key.empty() && !place.is_there)) continue;
    // What it was before is held until it is known what it is now.
    place.is_asked = true;
    place.is_there = false;
    ++owner.outstanding;
    const auto [at, is_new] = paths_.try_emplace(path);
    if (is_new) unidentified_.push_back(path);
    (at->second.is_under_way ? at->second.late : at->second.owners).insert(id);
  }
  decide_where_done(id, owner);
}

void StagedFiles::let_go(const StageOwner& id) {
  const auto at = owners_.find(id);
  if (at == owners_.end()) return;
  if (at->second.tickets.empty()) return release(id);
  fail(id, {true, Failure::StageInFailed,
            fmt::format("its files were given up before they were on {}", site_)});
}

std::optional<std::string> StagedFiles::key_of(const StageOwner& id,
                                               const std::string& path) const {
  const auto owner = owners_.find(id);
  if (owner == owners_.end() || !owner->second.tickets.empty()) return std::nullopt;
  const auto place = owner->second.places.find(path);
  if (place == owner->second.places.end()) return std::nullopt;
  return place->second.key;
}

void StagedFiles::decide_where_done(const StageOwner& id, Owner& owner) {
  if (owner.outstanding > 0) return;
  for (const std::uint64_t ticket : std::exchange(owner.tickets, {}))
    decided_.push_back({ticket, id, std::nullopt});
}

void StagedFiles::fail(const StageOwner& id, const StageError& error) {
  const auto at = owners_.find(id);
  if (at == owners_.end()) return;
  for (const std::uint64_t ticket : at->second.tickets) decided_.push_back({ticket, id, error});
  const StageOwner copy = id;  // it may stand in what is released
  release(copy);
}

// A copy, because the key may stand in what is let go.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void StagedFiles::fail_all(std::string key, const StageError& error) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  // Those that have it and wait for something else are not concerned.
  for (const auto& [owner, path] : std::exchange(at->second.waiting, {})) {
    const auto waits = owners_.find(owner);
    if (waits == owners_.end()) continue;
    const auto place = waits->second.places.find(path);
    if (place == waits->second.places.end() || place->second.key != key || place->second.is_there)
      continue;
    fail(owner, error);
  }
  settle(key);
}

void StagedFiles::release(const StageOwner& id) {
  auto node = owners_.extract(id);
  if (node.empty()) return;
  for (const auto& [path, place] : node.mapped().places) {
    if (place.is_asked) {
      const auto at = paths_.find(path);
      if (at != paths_.end()) {
        at->second.owners.erase(id);
        at->second.late.erase(id);
      }
    }
    if (!place.key.empty()) unhold(place.key, id);
  }
}

void StagedFiles::hold(const std::string& key, Entry& entry, const StageOwner& owner) {
  if (entry.holders.empty()) idle(key, entry, false);
  ++entry.holders[owner];
}

void StagedFiles::unhold(const std::string& key, const StageOwner& owner) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  const auto holder = at->second.holders.find(owner);
  if (holder == at->second.holders.end() || --holder->second > 0) return;
  at->second.holders.erase(holder);
  if (at->second.holders.empty()) {
    idle(key, at->second, true);
    settle(key);
  }
}

// --- paths on this machine -----------------------------------------------------------------------

std::vector<std::string> StagedFiles::take_unidentified(std::size_t most) {
  std::vector<std::string> paths;
  while (!unidentified_.empty() && paths.size() < most) {
    std::string path = std::move(unidentified_.front());
    unidentified_.pop_front();
    const auto at = paths_.find(path);
    if (at == paths_.end()) continue;
    if (at->second.owners.empty()) {
      paths_.erase(at);
      continue;
    }
    at->second.is_under_way = true;
    paths.push_back(std::move(path));
  }
  return paths;
}

void StagedFiles::identify_again(const std::string& path) {
  const auto at = paths_.find(path);
  if (at == paths_.end()) return;
  at->second.is_under_way = false;
  at->second.owners.merge(at->second.late);
  at->second.late.clear();
  // First: much of it may have been read.
  unidentified_.push_front(path);
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void StagedFiles::identified(const std::string& path, const std::optional<HashAnswer>& answer,
                             Time now) {
  if (!answer) return identify_again(path);
  const auto at = paths_.find(path);
  if (at == paths_.end()) return;
  const std::set<StageOwner> owners = std::exchange(at->second.owners, {});
  if (at->second.late.empty()) {
    paths_.erase(at);
  } else {
    at->second.owners = std::exchange(at->second.late, {});
    at->second.is_under_way = false;
    unidentified_.push_back(path);
  }
  if (const auto* error = std::get_if<StageError>(&*answer)) {
    changes_.erase(path);
    for (const StageOwner& owner : owners) fail(owner, *error);
    return;
  }
  if (owners.empty()) return;
  const auto& file = std::get<HashedFile>(*answer);
  const std::string key = wire::store_key(file.hash, wire::stored_name(path));
  const auto [found, is_new] = entries_.try_emplace(key);
  Entry& entry = found->second;
  if (is_new) entry.where = list_is_complete_ ? Where::Absent : Where::Unknown;
  if (entry.is_counted && entry.size != file.state.size) {
    // What was found there was cut off: it is not what its name says.
    idle(key, entry, false);
    count(entry, false);
    entry.where = Where::Absent;
  }
  if (!entry.is_counted) entry.size = file.state.size;
  entry.sources[path] = file.state;
  if (file.state.executable && !entry.executable) {
    entry.executable = true;
    // The site makes it one when it is asked.
    if (entry.where == Where::There) entry.where = Where::Listed;
  }
  const bool is_there = entry.where == Where::There && !entry.is_under_way;
  for (const StageOwner& id : owners) {
    Owner& owner = owners_.at(id);
    Place& place = owner.places.at(path);
    place.is_asked = false;
    if (place.key != key) {
      hold(key, entry, id);
      if (!place.key.empty()) unhold(place.key, id);
      place.key = key;
    }
    if (is_there) {
      place.is_there = true;
      --owner.outstanding;
      decide_where_done(id, owner);
    } else {
      entry.waiting.emplace_back(id, path);
    }
  }
  if (is_there) {
    entry.last_used = now;
    entry.sources.clear();
  } else {
    queue(key, entry);
  }
}

// --- the store there -----------------------------------------------------------------------------

void StagedFiles::count(Entry& entry, bool counted) {
  if (entry.is_counted == counted) return;
  entry.is_counted = counted;
  bytes_ = counted ? bytes_ + entry.size : bytes_ - entry.size;
  files_ = counted ? files_ + 1 : files_ - 1;
}

/// Only what lies there can be cleaned away.
void StagedFiles::idle(const std::string& key, const Entry& entry, bool is_idle) {
  const bool lies_there = entry.where == Where::There || entry.where == Where::Listed;
  if (!is_idle) {
    if (idle_.erase({entry.last_used, key}) > 0) idle_bytes_ -= entry.size;
  } else if (lies_there && entry.is_counted && !entry.is_under_way) {
    if (idle_.insert({entry.last_used, key}).second) idle_bytes_ += entry.size;
  }
}

bool StagedFiles::is_wanted(const std::string& key, Entry& entry) {
  std::erase_if(entry.waiting, [&](const auto& one) {
    const auto owner = owners_.find(one.first);
    if (owner == owners_.end()) return true;
    const auto place = owner->second.places.find(one.second);
    return place == owner->second.places.end() || place->second.key != key ||
           place->second.is_there || place->second.is_asked;
  });
  return !entry.waiting.empty();
}

void StagedFiles::queue(const std::string& key, Entry& entry) {
  if (entry.is_queued || entry.is_under_way || !is_wanted(key, entry)) return;
  entry.is_queued = true;
  if (entry.where != Where::Absent) {
    questions_.push_back(key);
  } else {
    (entry.size < kLargeFile ? small_ : large_).push_back(key);
  }
}

/// Of what nobody needs and what is not there nothing is kept.
void StagedFiles::settle(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || !at->second.holders.empty() || at->second.is_queued ||
      at->second.is_under_way || at->second.is_counted)
    return;
  entries_.erase(at);
}

void StagedFiles::listed(const std::string& key, std::uint64_t size, bool executable,
                         Time last_used) {
  const auto [at, is_new] = entries_.try_emplace(key);
  Entry& entry = at->second;
  if (entry.is_counted || entry.is_under_way) return;
  // One of another size is no whole one: it is replaced when it is sent.
  if (!is_new && entry.size != size) return;
  entry.size = size;
  entry.executable = entry.executable || executable;
  entry.where = Where::Listed;
  entry.last_used = last_used;
  count(entry, true);
  if (entry.holders.empty()) idle(key, entry, true);
}

std::vector<StagedFiles::Question> StagedFiles::take_questions(std::size_t most) {
  std::vector<Question> questions;
  while (questions.size() < most) {
    const auto at = next_wanted(questions_);
    if (at == entries_.end()) break;
    const std::string& key = at->first;
    Entry& entry = at->second;
    if (entry.where == Where::Absent || entry.where == Where::There) {
      queue(key, entry);
      continue;
    }
    entry.is_under_way = true;
    questions.push_back({key, entry.size, entry.executable});
  }
  return questions;
}

void StagedFiles::told(const std::string& key, bool there, Time now) {
  if (there) return sent(key, now);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  at->second.is_under_way = false;
  at->second.where = Where::Absent;
  count(at->second, false);
  queue(key, at->second);
  settle(key);
}

void StagedFiles::not_told(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  at->second.is_under_way = false;
  queue(key, at->second);
  if (at->second.holders.empty()) idle(key, at->second, true);
  settle(key);
}

StagedFiles::Entries::iterator StagedFiles::next_wanted(std::deque<std::string>& from) {
  while (!from.empty()) {
    const std::string key = std::move(from.front());
    from.pop_front();
    const auto at = entries_.find(key);
    if (at == entries_.end()) continue;
    at->second.is_queued = false;
    if (is_wanted(key, at->second)) return at;
    settle(key);
  }
  return entries_.end();
}

std::optional<StagedFiles::Sending> StagedFiles::take(std::deque<std::string>& from) {
  for (auto at = next_wanted(from); at != entries_.end(); at = next_wanted(from)) {
    const std::string& key = at->first;
    Entry& entry = at->second;
    if (entry.where != Where::Absent) {
      queue(key, entry);
      continue;
    }
    HPCBATCH_CHECK(!entry.sources.empty());
    if (!make_room(key, entry)) continue;
    entry.is_under_way = true;
    const auto& [path, state] = *entry.sources.begin();
    return Sending{key, path, state};
  }
  return std::nullopt;
}

std::vector<StagedFiles::Sending> StagedFiles::take_small(std::uint64_t bytes, std::size_t files) {
  std::vector<Sending> all;
  std::uint64_t sum = 0;
  while (all.size() < files && sum < bytes) {
    auto one = take(small_);
    if (!one) break;
    sum += one->state.size;
    all.push_back(std::move(*one));
  }
  return all;
}

std::optional<StagedFiles::Sending> StagedFiles::take_large() {
  return take(large_);
}

void StagedFiles::sent(const std::string& key, Time now) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  entry.is_under_way = false;
  entry.was_cleaned_for = false;
  entry.where = Where::There;
  entry.last_used = now;
  for (const auto& [path, state] : std::exchange(entry.sources, {})) changes_.erase(path);
  count(entry, true);
  is_wanted(key, entry);
  for (const auto& [id, path] : std::exchange(entry.waiting, {})) {
    Owner& owner = owners_.at(id);
    Place& place = owner.places.at(path);
    if (std::exchange(place.is_there, true)) continue;
    --owner.outstanding;
    decide_where_done(id, owner);
  }
  if (entry.holders.empty()) idle(key, entry, true);
}

bool StagedFiles::may_go_unread(const std::string& path, std::uint64_t size) const {
  const auto at = paths_.find(path);
  return list_is_complete_ && at != paths_.end() && !at->second.owners.empty() &&
         bytes_ + size <= limit_ &&
         std::none_of(entries_.begin(), entries_.end(),
                      [&](const auto& one) { return one.second.size == size; });
}

void StagedFiles::arrived(const std::string& key, const FileState& state, Time now) {
  const auto [at, is_new] = entries_.try_emplace(key);
  if (is_new) {
    at->second.size = state.size;
    at->second.executable = state.executable;
  }
  sent(key, now);
}

void StagedFiles::not_sent(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  at->second.is_under_way = false;
  count(at->second, false);
  queue(key, at->second);
  settle(key);
}

void StagedFiles::changed(const Sending& sending) {
  const auto at = entries_.find(sending.key);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  entry.sources.erase(sending.path);
  is_wanted(sending.key, entry);
  std::vector<StageOwner> concerned;
  std::erase_if(entry.waiting, [&](const auto& one) {
    if (one.second != sending.path) return false;
    concerned.push_back(one.first);
    return true;
  });
  // Nobody waits for it by this path any more: another one has the same.
  const bool is_too_often = !concerned.empty() && ++changes_[sending.path] >= kMostChanges;
  if (is_too_often) changes_.erase(sending.path);
  for (const StageOwner& id : concerned) {
    if (is_too_often) {
      fail(id, {false, Failure::InputChanged,
                fmt::format("the input {} was changed again and again while it was sent to {}; "
                            "submit again when it is finished",
                            sending.path, site_)});
      continue;
    }
    owners_.at(id).places.at(sending.path).is_asked = true;
    const auto [path, is_new] = paths_.try_emplace(sending.path);
    if (is_new) unidentified_.push_back(sending.path);
    (path->second.is_under_way ? path->second.late : path->second.owners).insert(id);
  }
  not_sent(sending.key);
}

void StagedFiles::no_room(const std::string& key, const std::string& text) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  if (!entry.was_cleaned_for && !keep_all_ && (!idle_.empty() || has_drops())) {
    entry.was_cleaned_for = true;
    while (drop_oldest()) {
    }
    return not_sent(key);
  }
  refused(key, {true, Failure::StageInFailed, text});
}

void StagedFiles::refused(const std::string& key, const StageError& error) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  at->second.is_under_way = false;
  at->second.was_cleaned_for = false;
  count(at->second, false);
  fail_all(key, error);
}

void StagedFiles::missed(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second.is_under_way) return;
  idle(key, at->second, false);
  count(at->second, false);
  at->second.where = Where::Unknown;
  settle(key);
}

// --- cleaning ------------------------------------------------------------------------------------

bool StagedFiles::drop_oldest() {
  if (keep_all_ || idle_.empty()) return false;
  const auto [used, key] = *idle_.begin();
  Entry& entry = entries_.at(key);
  idle(key, entry, false);
  count(entry, false);
  entry.where = Where::Absent;
  drops_.push_back(wire::place_of_key(key));
  settle(key);
  return true;
}

bool StagedFiles::make_room(const std::string& key, Entry& entry) {
  if (entry.size > limit_) {
    fail_all(key, {false, Failure::StageInFailed,
                   fmt::format("the file has {} bytes, and the store of {} takes {} in all; raise "
                               "'store' of the site",
                               entry.size, site_, limit_)});
    return false;
  }
  const std::uint64_t held = bytes_ - (keep_all_ ? 0 : idle_bytes_);
  if (held + entry.size > limit_) {
    fail_all(key, {true, Failure::StageInFailed,
                   fmt::format("no room in the store of {}: {} bytes more are wanted, and of its "
                               "limit of {} bytes {} are held for {}; wait for them, or raise "
                               "'store' of the site",
                               site_, entry.size, limit_, held,
                               keep_all_ ? "tasks of an engine before this one" : "other tasks")});
    return false;
  }
  while (bytes_ + entry.size > limit_ && drop_oldest()) {
  }
  count(entry, true);
  return true;
}

void StagedFiles::drop_unused_since(Time before) {
  while (!idle_.empty() && (idle_.begin()->first < before || bytes_ > limit_) && drop_oldest()) {
  }
}

void StagedFiles::not_dropped(std::vector<std::string> paths) {
  for (std::string& path : paths) {
    // Wanted again meanwhile and there: it is to stay.
    const std::string key = wire::key_of_place(path);
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.where == Where::Absent)
      drops_.push_back(std::move(path));
  }
}

}  // namespace hpcbatch
