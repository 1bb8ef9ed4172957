// Which nodes fail tasks that do well elsewhere.  Told of ends alone, it says whose tasks are to be
// tried elsewhere without a charge, which nodes get one task at a time, and which none for a while.
//
// A node comes into doubt with one kind of task where so many quick failures in a row would hardly
// happen at the rate at which that kind fails elsewhere; one whose commands cannot even be started
// at the first of them.  What fails there meanwhile is tried elsewhere.  Where it fails elsewhere
// too, the rate grows and the doubt is over: the tasks are at fault.  Where several do well
// elsewhere and chance is as good as excluded, the node is bad.
#pragma once

#include "model/ids.hpp"

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

namespace hpcbatch {

// One node of one site, by the name that its pilots give.

struct NodeName {
  std::string site;
  std::string node;
  bool empty() const { return node.empty(); }
  friend auto operator<=>(const NodeName&, const NodeName&) = default;
};

/// Tasks that may be expected to end alike: those of one array, or one client's single ones that
/// ask for the same.
using TaskKind = std::uint64_t;

class NodeTrust {
 public:
  struct Failed {
    bool quick{true};       ///< long before others of its kind would have ended
    bool never_ran{false};  ///< its command could not be started
    std::string why;        ///< for people
    /// Whether another node is there, or may be had; asked where it matters.
    std::function<bool()> can_go_elsewhere;
  };
  /// A task ended well at a node.
  void well(const NodeName& node, TaskKind kind, Time now);
  /// One failed.  True where the node is in doubt for that: it is to be tried elsewhere.
  bool failed(const NodeName& node, TaskKind kind, const Failed& how, Time now);
  /// One that failed at `node` while that was in doubt did well at another.
  void well_elsewhere(const NodeName& node, TaskKind kind, Time now);
  /// One did not.
  void failed_elsewhere(const NodeName& node, TaskKind kind);
  /// Doubts that nothing has come of are given up, and bad nodes are tried again.
  void on_time(Time now);
  /// Of others nothing is remembered, and `well` does nothing.
  bool knows(TaskKind kind) const { return kinds_.contains(kind); }

  bool is_doubted(const NodeName& node) const;
  bool is_bad(const NodeName& node) const;
  /// One of the two; such a node gets one task at a time, and none before `next_try`.
  bool is_braked(const NodeName& node) const { return any() && find(node) != nullptr; }
  Time next_try(const NodeName& node) const;
  bool any() const { return !nodes_.empty(); }

  struct Doubt {
    Time since{};
    std::uint32_t proofs{0};      ///< tasks that did well elsewhere
    std::uint32_t acquittals{0};  ///< that failed there too
    std::string why;
  };
  struct Node {
    std::map<TaskKind, Doubt> doubts;
    Duration pause{};  ///< after the last failure
    Time next_try{};
    std::optional<Time> bad_until;
    std::string why;              ///< for people, of a bad one
    std::uint32_t well_since{0};  ///< tasks that did well there while it was bad
  };
  /// Those in doubt and the bad ones.
  const std::map<NodeName, Node>& nodes() const { return nodes_; }
  /// For people: why a node is in doubt or bad; empty where it is neither.
  std::string why(const NodeName& node) const;

 private:
  struct Tally {
    std::uint64_t well{0};
    std::uint64_t failed{0};
    std::uint64_t in_a_row{0};  ///< quick failures since the last that did well
    bool let_be{false};         ///< a doubt came to nothing, and nothing did well elsewhere since
  };
  struct Kind {
    std::map<NodeName, Tally> at;
    Tally all;
    Time latest{};
  };
  const Node* find(const NodeName& node) const;
  Kind& kind_of(TaskKind kind, Time now);
  static double chance(const Kind& kind, const Tally& here);
  void weigh(const NodeName& node, TaskKind kind, Time now);
  void weigh_all(TaskKind kind, Time now);
  void forget_if_good(const NodeName& node);

  std::unordered_map<TaskKind, Kind> kinds_;  ///< that have failed; few
  std::map<NodeName, Node> nodes_;
  std::map<NodeName, std::uint32_t> were_bad_;  ///< tried again since; how often in a row
};

}  // namespace hpcbatch
