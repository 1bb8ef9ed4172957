#include "engine/state/ready_queue.hpp"

#include "model/check.hpp"

#include <algorithm>
#include <limits>

namespace hpcbatch {

ClassId ReadyQueue::class_for(Needs needs, const Apart& apart) {
  // A class has no limit: its time is what must be left.
  needs.time = time_to_begin(needs);
  needs.time_request.reset();
  const auto [at, is_new] =
      by_needs_.try_emplace({class_of(needs), fits_shapes_(needs), apart},
                            ClassId(static_cast<std::uint32_t>(classes_.size())));
  if (is_new) {
    ResourceClass fresh{.needs = needs,
                        .ready = 0,
                        .mean_run = {},
                        .runs = 0,
                        .passed_over_since = {},
                        .passed_over_by = {},
                        .left_since = {},
                        .not_left_until = {},
                        .apart = apart,
                        .keeps_away = false,
                        .away_since = {}};
    if (apart.any()) {
      // They take as long as the others do.
      if (const auto plain = find_class(needs)) {
        fresh.mean_run = get(*plain).mean_run;
        fresh.runs = get(*plain).runs;
      }
    }
    classes_.push_back({std::move(fresh), {}});
  } else {
    Needs& widest = get(at->second).needs;
    const auto widen = [](Resources& wide, const Resources& other) {
      for (const std::string_view name : {kMemory, kDisk})
        wide.set(name, std::max(wide.get(name), other.get(name)));
    };
    widen(widest.amounts, needs.amounts);
    for (std::size_t i = 0; i < widest.device->instead.size(); ++i)
      widen(widest.device.edit().instead[i], needs.device->instead[i]);
    if (needs.time) widest.time = std::max(*widest.time, *needs.time);
  }
  return at->second;
}

std::optional<ClassId> ReadyQueue::find_class(const Needs& needs, const Apart& apart) const {
  const auto at = by_needs_.find({class_of(needs), fits_shapes_(needs), apart});
  if (at == by_needs_.end()) return std::nullopt;
  return at->second;
}

ClientId ReadyQueue::client_for(const std::string& name) {
  const auto [at, is_new] =
      by_name_.try_emplace(name, ClientId(static_cast<std::uint32_t>(clients_.size())));
  if (is_new) clients_.push_back({.name = name});
  return at->second;
}

void ReadyQueue::count(const QueuePlace& place, std::int64_t change) {
  Client& owner = client(place.client);
  if (owner.queued == 0 && change > 0) {
    // Who comes back after a pause starts with the others and may not make up for the time away.
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const ClientId other : waiting_clients_) least = std::min(least, client(other).turns);
    if (!waiting_clients_.empty()) owner.turns = std::max(owner.turns, least);
    waiting_clients_.insert(place.client);
  }
  const auto delta = static_cast<std::uint64_t>(change);  // wraps as intended for negative changes
  owner.queued += delta;
  if (owner.queued == 0) waiting_clients_.erase(place.client);
  size_ += delta;
  ResourceClass& its_class = get(place.in_class);
  std::uint64_t& ready = its_class.ready;
  const bool waited = ready != 0;
  ready += delta;
  if (waited && ready == 0) {
    waiting_.erase(place.in_class);
    waiting_apart_.erase(place.in_class);
    waiting_open_.erase(place.in_class);
  }
  if (!waited && ready != 0) {
    waiting_.insert(place.in_class);
    if (its_class.apart.any()) waiting_apart_.insert(place.in_class);
    if (leaves_device_open(its_class.needs)) waiting_open_.insert(place.in_class);
    its_class.left_since.reset();
    its_class.away_since.reset();
    its_class.keeps_away = its_class.apart.any();
    ++news_;
  }
}

const IndexSet* ReadyQueue::find(const QueuePlace& place) const {
  const auto& clients = queue_of(place).clients;
  const auto lines = clients.find(place.client);
  if (lines == clients.end()) return nullptr;
  const auto line = lines->second.find(place.priority);
  if (line == lines->second.end()) return nullptr;
  const auto at = line->second.find(place.array);
  return at == line->second.end() ? nullptr : &at->second;
}

std::optional<ReadyQueue::Head> ReadyQueue::head_of(ClassId id, const Lines& lines) {
  if (lines.empty()) return std::nullopt;
  const auto& [priority, line] = *lines.begin();
  return Head{priority, line.begin()->first, id};
}

void ReadyQueue::renew_head(ClientId id, const std::optional<Head>& before,
                            const std::optional<Head>& now) {
  std::set<Head>& heads = client(id).heads;
  if (!before) {
    heads.insert(*now);
  } else if (!now) {
    heads.erase(*before);
  } else if (*before < *now || *now < *before) {
    auto node = heads.extract(*before);
    node.value() = *now;
    heads.insert(std::move(node));
  }
}

IndexSet& ReadyQueue::insert(const QueuePlace& place) {
  Lines& lines = queue_of(place).clients[place.client];
  const auto before = head_of(place.in_class, lines);
  Line& line = lines[place.priority];
  // Most are the newest.
  IndexSet& there = line.try_emplace(line.end(), place.array)->second;
  renew_head(place.client, before, head_of(place.in_class, lines));
  return there;
}

void ReadyQueue::erase(const QueuePlace& place) {
  auto& clients = queue_of(place).clients;
  const auto of_client = clients.find(place.client);
  Lines& lines = of_client->second;
  const auto before = head_of(place.in_class, lines);
  const auto line = lines.find(place.priority);
  line->second.erase(place.array);
  if (line->second.empty()) lines.erase(line);
  renew_head(place.client, before, head_of(place.in_class, lines));
  if (lines.empty()) clients.erase(of_client);
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

IndexSet ReadyQueue::queued_or_parked(const QueuePlace& place) const {
  IndexSet all = queued(place);
  if (const IndexSet* there = parked(place)) all.add(*there);
  return all;
}

QueuePlace ReadyQueue::head_of(ClassId id) const {
  std::optional<QueuePlace> first;
  for (const auto& [who, lines] : classes_[static_cast<std::size_t>(id)].clients) {
    const Head head = *head_of(id, lines);
    const QueuePlace place{id, head.priority, who, head.array};
    if (!first || goes_before(place, *first)) first = place;
  }
  HPCBATCH_CHECK(first);
  return *first;
}

bool ReadyQueue::goes_before(const QueuePlace& a, const QueuePlace& b) const {
  if (a.priority != b.priority) return a.priority > b.priority;
  const std::uint64_t turns_a = clients_[static_cast<std::size_t>(a.client)].turns;
  const std::uint64_t turns_b = clients_[static_cast<std::size_t>(b.client)].turns;
  if (a.client != b.client && turns_a != turns_b) return turns_a < turns_b;
  return a.array < b.array;
}

bool ReadyQueue::goes_before(const Ranked& a, const Ranked& b) const {
  // So many turns a client lends at most, to one for whom a place is so much better.
  constexpr std::uint64_t kTurnsLent = 32;
  constexpr double kMuchBetter = 1.5;
  if (a.place.priority != b.place.priority) return a.place.priority > b.place.priority;
  const std::uint64_t turns_a = clients_[static_cast<std::size_t>(a.place.client)].turns;
  const std::uint64_t turns_b = clients_[static_cast<std::size_t>(b.place.client)].turns;
  if (b.rank > kMuchBetter * a.rank && turns_a < turns_b + kTurnsLent) return true;
  if (a.rank > kMuchBetter * b.rank && turns_b < turns_a + kTurnsLent) return false;
  return goes_before(a.place, b.place);
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

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void ReadyQueue::check_invariants() const {
  std::uint64_t size = 0;
  std::size_t heads = 0;
  std::vector<std::uint64_t> queued(clients_.size());
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const auto id = ClassId(static_cast<std::uint32_t>(i));
    std::uint64_t ready = 0;
    for (const auto& [who, lines] : classes_[i].clients) {
      ++heads;
      HPCBATCH_CHECK(clients_[static_cast<std::size_t>(who)].heads.contains(*head_of(id, lines)));
      for (const auto& [priority, line] : lines) {
        HPCBATCH_CHECK(!line.empty());
        for (const auto& [array, indices] : line) {
          HPCBATCH_CHECK(!indices.empty());
          ready += indices.size();
          queued[static_cast<std::size_t>(who)] += indices.size();
        }
      }
    }
    HPCBATCH_CHECK(ready == classes_[i].facts.ready);
    HPCBATCH_CHECK(waiting_.contains(id) == (ready != 0));
    size += ready;
  }
  HPCBATCH_CHECK(size == size_);
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    HPCBATCH_CHECK(queued[i] == clients_[i].queued);
    heads -= clients_[i].heads.size();
    HPCBATCH_CHECK(waiting_clients_.contains(ClientId(static_cast<std::uint32_t>(i))) ==
                   (queued[i] != 0));
  }
  HPCBATCH_CHECK(heads == 0);
}

std::uint64_t ReadyQueue::ahead_of(const QueuePlace& place, std::uint32_t index) const {
  std::uint64_t ahead = 0;
  for (const auto& [who, lines] : classes_[static_cast<std::size_t>(place.in_class)].clients) {
    for (const auto& [priority, line] : lines) {
      if (priority < place.priority) break;
      for (const auto& [array, indices] : line) {
        if (priority > place.priority || array < place.array)
          ahead += indices.size();
        else if (array == place.array && index > 0)
          ahead += indices.intersection(IndexRange{0, index - 1}).size();
      }
    }
  }
  return ahead;
}

}  // namespace hpcbatch
