#include "engine/ready_queue.hpp"

#include "model/check.hpp"

#include <algorithm>
#include <limits>

namespace hpcbatch {

ClassId ReadyQueue::class_for(const Needs& needs) {
  const auto [at, is_new] = by_needs_.try_emplace(
      {class_of(needs), fits_shapes_(needs)}, ClassId(static_cast<std::uint32_t>(classes_.size())));
  if (is_new) {
    classes_.push_back(
        {ResourceClass{
             .needs = needs, .ready = 0, .mean_run = {}, .runs = 0, .passed_over_since = {}},
         {}});
  } else {
    Needs& widest = get(at->second).needs;
    for (const std::string_view name : {kMemory, kDisk}) {
      widest.amounts.set(name, std::max(widest.amounts.get(name), needs.amounts.get(name)));
    }
    if (needs.time) widest.time = std::max(*widest.time, *needs.time);
  }
  return at->second;
}

ClientId ReadyQueue::client_for(const std::string& name) {
  const auto [at, is_new] =
      by_name_.try_emplace(name, ClientId(static_cast<std::uint32_t>(clients_.size())));
  if (is_new) clients_.push_back({.id = at->second, .name = name});
  return at->second;
}

void ReadyQueue::count(const QueuePlace& place, std::int64_t change) {
  Client& owner = client(place.client);
  if (owner.queued == 0 && change > 0) {
    // Who comes back after a pause starts with the others and may not make up for the time away.
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const Client& c : clients_) {
      if (c.queued != 0) least = std::min(least, c.turns);
    }
    if (least != std::numeric_limits<std::uint64_t>::max())
      owner.turns = std::max(owner.turns, least);
  }
  const auto delta = static_cast<std::uint64_t>(change);  // wraps as intended for negative changes
  owner.queued += delta;
  size_ += delta;
  std::uint64_t& ready = get(place.in_class).ready;
  const bool waited = ready != 0;
  ready += delta;
  if (waited && ready == 0) waiting_.erase(place.in_class);
  if (!waited && ready != 0) {
    waiting_.insert(place.in_class);
    ++news_;
  }
}

const IndexSet* ReadyQueue::find(const QueuePlace& place) const {
  const Levels& levels = queue_of(place).levels;
  const auto level = levels.find(place.priority);
  if (level == levels.end()) return nullptr;
  const auto line = level->second.find(place.client);
  if (line == level->second.end()) return nullptr;
  const auto at = line->second.find(place.array);
  return at == line->second.end() ? nullptr : &at->second;
}

IndexSet& ReadyQueue::insert(const QueuePlace& place) {
  Line& line = queue_of(place).levels[place.priority][place.client];
  const auto head_of_line = [&](ArrayId array) {
    return Head{place.priority, array, place.in_class};
  };
  if (line.empty() || place.array < line.begin()->first) {
    std::set<Head>& heads = client(place.client).heads;
    if (!line.empty()) heads.erase(head_of_line(line.begin()->first));
    heads.insert(head_of_line(place.array));
  }
  // Most are the newest.
  return line.try_emplace(line.end(), place.array)->second;
}

void ReadyQueue::erase(const QueuePlace& place) {
  Levels& levels = queue_of(place).levels;
  const auto level = levels.find(place.priority);
  const auto line = level->second.find(place.client);
  const auto at = line->second.find(place.array);
  if (at == line->second.begin()) {
    std::set<Head>& heads = client(place.client).heads;
    auto head = heads.extract({place.priority, place.array, place.in_class});
    if (const auto next = std::next(at); next != line->second.end()) {
      head.value().array = next->first;
      heads.insert(std::move(head));
    }
  }
  line->second.erase(at);
  if (line->second.empty()) level->second.erase(line);
  if (level->second.empty()) levels.erase(level);
}

void ReadyQueue::add(const QueuePlace& place, const IndexSet& indices) {
  if (indices.empty()) return;
  IndexSet& there = insert(place);
  const std::uint64_t before = there.size();
  there.add(indices);
  count(place, static_cast<std::int64_t>(there.size() - before));
}

IndexSet ReadyQueue::remove(const QueuePlace& place, const IndexSet& indices) {
  IndexSet removed;
  if (IndexSet* there = find(place)) {
    removed = there->intersection(indices);
    there->remove(removed);
    count(place, -static_cast<std::int64_t>(removed.size()));
    if (there->empty()) erase(place);
  }
  Line& parked = queue_of(place).parked;
  if (const auto at = parked.find(place.array); at != parked.end()) {
    const IndexSet of_parked = at->second.intersection(indices);
    at->second.remove(of_parked);
    removed.add(of_parked);
    if (at->second.empty()) parked.erase(at);
  }
  return removed;
}

IndexSet ReadyQueue::queued(const QueuePlace& place) const {
  const IndexSet* there = find(place);
  return there ? *there : IndexSet{};
}

void ReadyQueue::park(const QueuePlace& place) {
  IndexSet* there = find(place);
  if (!there) return;
  IndexSet indices = std::move(*there);
  erase(place);
  count(place, -static_cast<std::int64_t>(indices.size()));
  add_parked(place, std::move(indices));
}

void ReadyQueue::unpark(const QueuePlace& place) {
  Line& parked = queue_of(place).parked;
  const auto at = parked.find(place.array);
  if (at == parked.end()) return;
  IndexSet indices = std::move(at->second);
  parked.erase(at);
  IndexSet& there = insert(place);
  count(place, static_cast<std::int64_t>(indices.size()));
  if (there.empty()) {
    there = std::move(indices);
  } else {
    there.add(indices);
  }
}

void ReadyQueue::add_parked(const QueuePlace& place, IndexSet indices) {
  if (indices.empty()) return;
  IndexSet& there = queue_of(place).parked[place.array];
  if (there.empty()) {
    there = std::move(indices);
  } else {
    there.add(indices);
  }
}

const IndexSet* ReadyQueue::parked(const QueuePlace& place) const {
  const Line& parked = queue_of(place).parked;
  const auto at = parked.find(place.array);
  return at == parked.end() ? nullptr : &at->second;
}

QueuePlace ReadyQueue::head_of(ClassId id) const {
  const Levels& levels = classes_[static_cast<std::size_t>(id)].levels;
  HPCBATCH_CHECK(!levels.empty());
  const auto& [priority, level] = *levels.begin();
  std::optional<QueuePlace> head;
  for (const auto& [who, line] : level) {
    const QueuePlace place{id, priority, who, line.begin()->first};
    if (!head || goes_before(place, *head)) head = place;
  }
  return *head;
}

bool ReadyQueue::goes_before(const QueuePlace& a, const QueuePlace& b) const {
  if (a.priority != b.priority) return a.priority > b.priority;
  const std::uint64_t turns_a = clients_[static_cast<std::size_t>(a.client)].turns;
  const std::uint64_t turns_b = clients_[static_cast<std::size_t>(b.client)].turns;
  if (a.client != b.client && turns_a != turns_b) return turns_a < turns_b;
  return a.array < b.array;
}

std::uint32_t ReadyQueue::take(const QueuePlace& place) {
  IndexSet* there = find(place);
  HPCBATCH_CHECK(there);
  const std::uint32_t index = there->pop_first();
  count(place, -1);
  ++client(place.client).turns;
  if (there->empty()) erase(place);
  return index;
}

void ReadyQueue::check_invariants() const {
  std::uint64_t size = 0;
  std::size_t lines = 0;
  std::size_t heads = 0;
  for (const Client& client : clients_) heads += client.heads.size();
  std::vector<std::uint64_t> queued(clients_.size());
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    std::uint64_t ready = 0;
    for (const auto& [priority, level] : classes_[i].levels) {
      HPCBATCH_CHECK(!level.empty());
      for (const auto& [who, line] : level) {
        HPCBATCH_CHECK(!line.empty());
        ++lines;
        HPCBATCH_CHECK(clients_[static_cast<std::size_t>(who)].heads.contains(
            {priority, line.begin()->first, ClassId(static_cast<std::uint32_t>(i))}));
        for (const auto& [array, indices] : line) {
          HPCBATCH_CHECK(!indices.empty());
          ready += indices.size();
          queued[static_cast<std::size_t>(who)] += indices.size();
        }
      }
    }
    HPCBATCH_CHECK(ready == classes_[i].facts.ready);
    HPCBATCH_CHECK(waiting_.contains(ClassId(static_cast<std::uint32_t>(i))) == (ready != 0));
    size += ready;
  }
  HPCBATCH_CHECK(size == size_);
  HPCBATCH_CHECK(lines == heads);
  for (std::size_t i = 0; i < clients_.size(); ++i) HPCBATCH_CHECK(queued[i] == clients_[i].queued);
}

std::uint64_t ReadyQueue::ahead_of(const QueuePlace& place) const {
  std::uint64_t ahead = 0;
  for (const auto& [priority, level] : classes_[static_cast<std::size_t>(place.in_class)].levels) {
    if (priority < place.priority) break;
    for (const auto& [who, line] : level) {
      for (const auto& [array, indices] : line) {
        if (priority > place.priority || array < place.array) ahead += indices.size();
      }
    }
  }
  return ahead;
}

}  // namespace hpcbatch
