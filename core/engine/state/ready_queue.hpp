// Tasks that could start now, by resource class; within and between classes: priority, then turns
// between clients, then age.
#pragma once

#include "engine/trust/node_trust.hpp"
#include "model/ids.hpp"
#include "model/index_set.hpp"
#include "model/needs.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hpcbatch {

enum class ClassId : std::uint32_t {};
enum class ClientId : std::uint32_t {};

/// What keeps tasks from others that ask for the same.
struct Apart {
  NodeName not_at{};  ///< where they failed; they are to go elsewhere
  /// So many pilots died that had them, 2 for more: one of them at a time to a pilot, and the third
  /// time, which decides, beside nothing else that it could have been.
  std::uint8_t suspect{0};
  bool any() const { return suspect != 0 || !not_at.empty(); }
  friend auto operator<=>(const Apart&, const Apart&) = default;
};

/// Tasks that can run in the same places.  `needs` is what the most demanding of them asks for; its
/// members differ by less than the rounding of class_of(), and every shape could run either all of
/// them or none.
struct ResourceClass {
  Needs needs;
  std::uint64_t ready{0};
  std::optional<Duration> mean_run;  ///< of those that ran, the latest counting most
  std::uint64_t runs{0};             ///< how many these were
  std::optional<Time>
      passed_over_since;     ///< others went first where these would fit an empty pilot
  ArrayId passed_over_by{};  ///< what went first then
  std::optional<Time>
      left_since;  ///< to pilots that have its service, since it has something ready
  std::optional<Time> not_left_until;  ///< called back from such a pilot, for any
  Apart apart{};
  bool keeps_away{false};          ///< from `apart.not_at`, or a suspect from what is dear
  std::optional<Time> away_since;  ///< since it has something ready
};

/// One array's tasks in the queue.
struct QueuePlace {
  ClassId in_class{};
  std::int32_t priority{0};
  ClientId client{};
  ArrayId array;
};

class ReadyQueue {
 public:
  /// For each shape whether it could run a task of such needs.
  using FitsShapes = std::function<std::vector<bool>(const Needs&)>;
  explicit ReadyQueue(FitsShapes fits_shapes) : fits_shapes_(std::move(fits_shapes)) {}

  ClassId class_for(Needs needs, const Apart& apart = {});
  /// The class of such needs where there is one already.
  std::optional<ClassId> find_class(const Needs& needs, const Apart& apart = {}) const;
  /// Those of `waiting` that are kept from others.
  const std::set<ClassId>& waiting_apart() const { return waiting_apart_; }
  /// Those of `waiting` that leave open on which device they run.
  const std::set<ClassId>& waiting_open() const { return waiting_open_; }
  /// What found no room may find some now.
  void note_news() { ++news_; }
  ResourceClass& get(ClassId id) { return classes_[static_cast<std::size_t>(id)].facts; }
  const ResourceClass& get(ClassId id) const {
    return classes_[static_cast<std::size_t>(id)].facts;
  }
  std::size_t classes() const { return classes_.size(); }
  /// Those of which something is ready: few, however many there have been.
  const std::set<ClassId>& waiting() const { return waiting_; }
  ClientId client_for(const std::string& name);
  const std::string& name_of(ClientId client) const {
    return clients_[static_cast<std::size_t>(client)].name;
  }

  void add(const QueuePlace& place, const IndexSet& indices);
  /// Takes those of `indices` out that are queued or parked there, and says which.
  IndexSet remove(const QueuePlace& place, const IndexSet& indices);
  /// What is queued at a place; empty where nothing is.
  IndexSet queued(const QueuePlace& place) const;
  /// Takes a place out of the order of turns and back, as a whole: that costs the same for one task
  /// as for a million.
  void park(const QueuePlace& place);
  void unpark(const QueuePlace& place);
  /// Adds to what is parked at a place.
  void add_parked(const QueuePlace& place, IndexSet indices);
  /// What is parked at a place; nothing where nothing is.
  const IndexSet* parked(const QueuePlace& place) const;
  IndexSet queued_or_parked(const QueuePlace& place) const;

  /// The place whose turn it is among the classes that `may` admits; asks for few of them where
  /// most are admitted.
  template <class May>
  std::optional<QueuePlace> best(May may) const {
    std::optional<QueuePlace> found;
    for (const ClientId waiting : waiting_clients_) {
      const Client& client = clients_[static_cast<std::size_t>(waiting)];
      const auto head = std::find_if(client.heads.begin(), client.heads.end(),
                                     [&](const Head& h) { return may(h.in_class); });
      if (head == client.heads.end()) continue;
      const QueuePlace place{head->in_class, head->priority, waiting, head->array};
      if (!found || goes_before(place, *found)) found = place;
    }
    return found;
  }
  /// The same where `rank` says of a class how good a place it would be, the less the better, or
  /// that it may not be.  Of one client's most urgent the best goes first.  Between clients turns
  /// decide, but one for whom the place is poor lends its turn to one for whom it is good.
  template <class Rank>
  std::optional<QueuePlace> best_by_rank(Rank rank) const {
    std::optional<Ranked> found;
    for (const ClientId waiting : waiting_clients_) {
      std::optional<Ranked> best;
      for (const Head& head : clients_[static_cast<std::size_t>(waiting)].heads) {
        if (best && head.priority != best->place.priority) break;
        const std::optional<double> its_rank = rank(head.in_class);
        if (its_rank && (!best || *its_rank < best->rank))
          best = Ranked{{head.in_class, head.priority, waiting, head.array}, *its_rank};
      }
      if (best && (!found || goes_before(*best, *found))) found = best;
    }
    return found ? std::optional(found->place) : std::nullopt;
  }
  /// Calls `look` for each class in which some client's first is more urgent, or as urgent and
  /// older; once for each such client.
  template <class Look>
  void each_before(const QueuePlace& place, Look look) const {
    const Head end{place.priority, place.array, ClassId{}};
    for (const ClientId waiting : waiting_clients_) {
      for (const Head& head : clients_[static_cast<std::size_t>(waiting)].heads) {
        if (!(head < end)) break;
        look(head.in_class);
      }
    }
  }
  /// Grows when a class has something ready that had nothing.  Until then, what found no room in a
  /// pilot finds none, unless the pilot's room has grown or is kept for nobody any more.
  std::uint64_t news() const { return news_; }
  /// First in the order of turns of one class, which may not be empty.
  QueuePlace head_of(ClassId id) const;
  bool goes_before(const QueuePlace& a, const QueuePlace& b) const;
  /// Takes the lowest index out and counts the client's turn.
  std::uint32_t take(const QueuePlace& place);
  /// How many tasks stand before a place in its own class.
  std::uint64_t ahead_of(const QueuePlace& place, std::uint32_t index) const;
  std::uint64_t size() const { return size_; }
  /// What is counted is what is there; for tests.
  void check_invariants() const;

 private:
  using Line = std::map<ArrayId, IndexSet>;                    // of one priority, by age
  using Lines = std::map<std::int32_t, Line, std::greater<>>;  // one client's
  struct Queue {
    ResourceClass facts;
    std::map<ClientId, Lines> clients;
    Line parked;
  };
  /// What of one client goes first in one class.
  struct Head {
    std::int32_t priority{0};
    ArrayId array;
    ClassId in_class{};
    friend bool operator<(const Head& a, const Head& b) {
      return std::tie(b.priority, a.array, a.in_class) < std::tie(a.priority, b.array, b.in_class);
    }
  };
  struct Client {
    std::string name;
    std::uint64_t turns{0};
    std::uint64_t queued{0};
    std::set<Head> heads;  ///< one for each class, in the order of their turns
  };
  struct Ranked {
    QueuePlace place;
    double rank;
  };
  bool goes_before(const Ranked& a, const Ranked& b) const;
  Client& client(ClientId id) { return clients_[static_cast<std::size_t>(id)]; }
  void count(const QueuePlace& place, std::int64_t change);
  Queue& queue_of(const QueuePlace& place) {
    return classes_[static_cast<std::size_t>(place.in_class)];
  }
  const Queue& queue_of(const QueuePlace& place) const {
    return classes_[static_cast<std::size_t>(place.in_class)];
  }
  /// The indices queued at a place, or none.
  const IndexSet* find(const QueuePlace& place) const;
  IndexSet* find(const QueuePlace& place) {
    return const_cast<IndexSet*>(std::as_const(*this).find(place));
  }
  static std::optional<Head> head_of(ClassId id, const Lines& lines);
  void renew_head(ClientId client, const std::optional<Head>& before,
                  const std::optional<Head>& now);
  /// The indices at a place, which is made where nothing is there.
  IndexSet& insert(const QueuePlace& place);
  void erase(const QueuePlace& place);

  std::vector<Queue> classes_;
  std::set<ClassId> waiting_;
  std::set<ClassId> waiting_apart_;
  std::set<ClassId> waiting_open_;
  FitsShapes fits_shapes_;
  // One that asks for a little more than a shape has may not speak for those that the shape could
  // run.
  std::map<std::tuple<Needs, std::vector<bool>, Apart>, ClassId> by_needs_;
  std::vector<Client> clients_;
  std::set<ClientId> waiting_clients_;
  std::unordered_map<std::string, ClientId> by_name_;
  std::uint64_t size_{0};
  std::uint64_t news_{0};
};

}  // namespace hpcbatch
