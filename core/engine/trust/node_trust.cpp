#include "engine/trust/node_trust.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// So unlikely a row of failures makes a node doubtful, and one so unlikely bad.
constexpr double kDoubtfulChance = 0.07;
constexpr double kBadChance = 1e-6;
constexpr std::uint64_t kLeastRow = 3;
constexpr std::uint32_t kProofs = 2;
constexpr std::uint32_t kAcquittals = 2;
// So long it is waited for a word of another node.
constexpr Duration kUntilOthersTell = 2min;
constexpr Duration kUntilOthersTellWithProof = 10min;
constexpr Duration kFirstRest = 1s;
constexpr Duration kLongestRest = 30s;
constexpr Duration kFirstAvoided = 30min;
constexpr Duration kLongestAvoided = 8h;
// A bad node that is used for want of another is good again after so many.
constexpr std::uint32_t kWellAgain = 3;
constexpr std::size_t kMostKinds = 256;

}  // namespace

const NodeTrust::Node* NodeTrust::find(const NodeName& node) const {
  const auto at = nodes_.find(node);
  return at == nodes_.end() ? nullptr : &at->second;
}

bool NodeTrust::is_doubted(const NodeName& node) const {
  const Node* found = find(node);
  return found && !found->doubts.empty();
}

bool NodeTrust::is_bad(const NodeName& node) const {
  const Node* found = find(node);
  return found && found->bad_until;
}

Time NodeTrust::next_try(const NodeName& node) const {
  const Node* found = find(node);
  return found ? found->next_try : Time{};
}

std::string NodeTrust::why(const NodeName& node) const {
  const Node* found = find(node);
  if (!found) return "";
  if (found->bad_until) return "tasks fail there at once that do well elsewhere: " + found->why;
  return "tasks of a kind fail there at once, and are tried elsewhere: " +
         found->doubts.begin()->second.why;
}

NodeTrust::Kind& NodeTrust::kind_of(TaskKind kind, Time now) {
  if (kinds_.size() >= kMostKinds && !kinds_.contains(kind)) {
    kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(), [](const auto& a, const auto& b) {
      return a.second.latest < b.second.latest;
    }));
  }
  Kind& found = kinds_[kind];
  found.latest = now;
  return found;
}

/// How likely the failures in a row here would be if this node were like the others (Laplace's rule
/// of succession for the rate at which tasks fail there).
double NodeTrust::chance(const Kind& kind, const Tally& here) {
  const auto failed = static_cast<double>(kind.all.failed - here.failed);
  const auto well = static_cast<double>(kind.all.well - here.well);
  return std::pow((failed + 1) / (failed + well + 2), static_cast<double>(here.in_a_row));
}

void NodeTrust::well(const NodeName& node, TaskKind kind, Time now) {
  if (kinds_.empty()) return;
  const auto at = kinds_.find(kind);
  if (at == kinds_.end()) return;
  Kind& its_kind = at->second;
  its_kind.latest = now;
  Tally& here = its_kind.at[node];
  ++here.well;
  ++its_kind.all.well;
  here.in_a_row = 0;
  for (auto& [other, tally] : its_kind.at) {
    if (other != node) tally.let_be = false;
  }
  if (const auto there = nodes_.find(node); there != nodes_.end()) {
    there->second.doubts.erase(kind);
    if (there->second.bad_until && ++there->second.well_since >= kWellAgain) {
      there->second.bad_until.reset();
      were_bad_.erase(node);
    }
    forget_if_good(node);
  }
  weigh_all(kind, now);
}

bool NodeTrust::failed(const NodeName& node, TaskKind kind, const Failed& how, Time now) {
  Kind& its_kind = kind_of(kind, now);
  Tally& here = its_kind.at[node];
  ++here.failed;
  ++its_kind.all.failed;
  if (how.quick) ++here.in_a_row;
  weigh_all(kind, now);
  if (!how.quick || here.let_be) return false;
  const bool nowhere_else = its_kind.all.failed == here.failed;
  const bool doubtful = (here.in_a_row >= kLeastRow && chance(its_kind, here) <= kDoubtfulChance) ||
                        (how.never_ran && nowhere_else && here.well == 0) || is_bad(node);
  if (!doubtful || !how.can_go_elsewhere()) return false;
  Node& there = nodes_[node];
  there.pause = std::clamp<Duration>(2 * there.pause, kFirstRest, kLongestRest);
  there.next_try = now + there.pause;
  if (there.bad_until) return true;
  Doubt& doubt = there.doubts[kind];
  if (doubt.since == Time{}) doubt.since = now;
  doubt.why = how.why;
  weigh(node, kind, now);
  return true;
}

void NodeTrust::well_elsewhere(const NodeName& node, TaskKind kind, Time now) {
  const auto there = nodes_.find(node);
  if (there == nodes_.end()) return;
  const auto doubt = there->second.doubts.find(kind);
  if (doubt == there->second.doubts.end()) return;
  ++doubt->second.proofs;
  weigh(node, kind, now);
}

void NodeTrust::failed_elsewhere(const NodeName& node, TaskKind kind) {
  const auto there = nodes_.find(node);
  if (there == nodes_.end()) return;
  const auto doubt = there->second.doubts.find(kind);
  if (doubt == there->second.doubts.end()) return;
  ++doubt->second.acquittals;
  if (doubt->second.acquittals < kAcquittals || doubt->second.acquittals <= doubt->second.proofs)
    return;
  there->second.doubts.erase(doubt);
  if (const auto at = kinds_.find(kind); at != kinds_.end()) at->second.at[node].in_a_row = 0;
  forget_if_good(node);
}

void NodeTrust::weigh_all(TaskKind kind, Time now) {
  if (nodes_.empty()) return;
  std::vector<NodeName> doubted;
  for (const auto& [name, node] : nodes_) {
    if (node.doubts.contains(kind)) doubted.push_back(name);
  }
  for (const NodeName& name : doubted) weigh(name, kind, now);
}

/// What has become of a doubt by what is known now.
void NodeTrust::weigh(const NodeName& node, TaskKind kind, Time now) {
  const auto its_kind = kinds_.find(kind);
  if (its_kind == kinds_.end()) return;
  const Tally& here = its_kind->second.at[node];
  const double likely = chance(its_kind->second, here);
  Node& there = nodes_.at(node);
  const Doubt doubt = there.doubts.at(kind);
  const bool fails_elsewhere = its_kind->second.all.failed > here.failed;
  if (likely > kDoubtfulChance && fails_elsewhere) {
    there.doubts.erase(kind);
    forget_if_good(node);
  } else if (doubt.proofs >= kProofs && here.in_a_row >= kLeastRow && likely <= kBadChance) {
    const std::uint32_t before = std::min<std::uint32_t>(were_bad_[node]++, 8);
    there.bad_until = now + std::min<Duration>(kLongestAvoided, kFirstAvoided * (1 << before));
    there.why = doubt.why;
    there.well_since = 0;
    there.doubts.clear();
  }
}

void NodeTrust::forget_if_good(const NodeName& node) {
  const auto at = nodes_.find(node);
  if (at != nodes_.end() && at->second.doubts.empty() && !at->second.bad_until) nodes_.erase(at);
}

void NodeTrust::on_time(Time now) {
  for (auto at = nodes_.begin(); at != nodes_.end();) {
    const auto next = std::next(at);
    const NodeName& name = at->first;
    auto& node = at->second;
    std::erase_if(node.doubts, [&](const auto& entry) {
      const auto& [kind, doubt] = entry;
      if (now - doubt.since < (doubt.proofs == 0 ? kUntilOthersTell : kUntilOthersTellWithProof))
        return false;
      if (const auto its_kind = kinds_.find(kind); its_kind != kinds_.end())
        its_kind->second.at[name].let_be = true;
      return true;
    });
    if (node.bad_until && *node.bad_until <= now) node.bad_until.reset();
    forget_if_good(name);
    at = next;
  }
}

}  // namespace hpcbatch
