#include "split/split_planner.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::split {
namespace {

constexpr std::size_t kDigits = 6;

std::string name_of(std::size_t number) {
  std::string digits = std::to_string(number);
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

}  // namespace

std::vector<Part> cut_into_parts(const std::vector<std::uint64_t>& sizes,
                                 const PartBounds& bounds) {
  std::vector<Part> parts;
  std::uint64_t bytes = 0;
  for (std::size_t file = 0; file < sizes.size(); ++file) {
    const bool is_full =
        parts.empty() || parts.back().count >= std::max<std::size_t>(bounds.files, 1) ||
        (bounds.bytes != 0 && (bytes > bounds.bytes || sizes[file] > bounds.bytes - bytes));
    if (is_full) {
      parts.push_back({name_of(parts.size() + 1), file, 0});
      bytes = 0;
    }
    ++parts.back().count;
    bytes += sizes[file];
  }
  return parts;
}

std::pair<Part, Part> halves_of(const Part& part) {
  const std::size_t half = part.count / 2;
  return {{part.name + "a", part.first, half},
          {part.name + "b", part.first + half, part.count - half}};
}

SplitPlanner::SplitPlanner(std::vector<Part> parts, std::size_t at_once)
    : at_once_(at_once == 0 ? 0 : std::max<std::size_t>(at_once, 2)), to_run_(std::move(parts)) {
  for (const Part& part : to_run_) parts_[part.name] = {part, State::Runs};
  counts_.parts = parts_.size();
  is_over_ = parts_.empty();
}

void SplitPlanner::ended(const std::string& name, PartEnd end) {
  if (const auto at = parts_.find(name); at != parts_.end()) return part_ended(at, end);
  const auto at = merges_.find(name);
  if (at == merges_.end() || at->second != State::Runs) return;
  at->second = end == PartEnd::Done ? State::Done : State::Failed;
  if (end == PartEnd::Done) ++counts_.merged;
  const bool runs = std::any_of(merges_.begin(), merges_.end(),
                                [](const auto& one) { return one.second == State::Runs; });
  if (!runs) next_level();
}

void SplitPlanner::part_ended(std::map<std::string, Entry>::iterator at, PartEnd end) {
  Entry& entry = at->second;
  if (entry.state != State::Runs) return;
  if (end == PartEnd::TooLarge && entry.part.count > 1) {
    const auto [one, other] = halves_of(entry.part);
    parts_.erase(at);
    for (const Part& half : {one, other}) {
      parts_[half.name] = {half, State::Runs};
      to_run_.push_back(half);
    }
    ++counts_.parts;
    ++counts_.halved;
    return;
  }
  entry.state = end == PartEnd::Done ? State::Done : State::Failed;
  ++(end == PartEnd::Done ? counts_.done : counts_.failed);
  if (counts_.done + counts_.failed == counts_.parts) next_level();
}

/// All that was to be done before has ended.
void SplitPlanner::next_level() {
  std::vector<std::string> results;
  if (level_ == 0) {
    for (const auto& [name, entry] : parts_) results.push_back(name);
  } else {
    for (const auto& [name, state] : merges_) results.push_back(name);
  }
  const bool has_failed = counts_.failed != 0 ||
                          std::any_of(merges_.begin(), merges_.end(),
                                      [](const auto& one) { return one.second == State::Failed; });
  // Of one part, too, the result is what merging makes of it.
  if (has_failed || at_once_ == 0 || (level_ > 0 && results.size() == 1)) {
    is_over_ = true;
    return;
  }
  ++level_;
  merges_.clear();
  const bool is_last = results.size() <= at_once_;
  for (std::size_t first = 0; first < results.size(); first += at_once_) {
    const auto begin = results.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = std::min(at_once_, results.size() - first);
    std::string number = std::to_string(first / at_once_ + 1);
    number.insert(0, number.size() < 6 ? 6 - number.size() : 0, '0');
    Merge merge{"merge" + std::to_string(level_) + "-" + number,
                {begin, begin + static_cast<std::ptrdiff_t>(count)},
                is_last};
    merges_[merge.name] = State::Runs;
    to_merge_.push_back(std::move(merge));
    ++counts_.merges;
  }
}

std::vector<SplitPlanner::Action> SplitPlanner::decide() {
  std::vector<Action> actions;
  if (!to_run_.empty()) actions.emplace_back(RunParts{std::exchange(to_run_, {})});
  if (!to_merge_.empty()) actions.emplace_back(RunMerges{std::exchange(to_merge_, {})});
  if (is_over_ && !std::exchange(told_over_, true)) {
    Over over;
    for (const auto& [name, entry] : parts_) {
      if (entry.state == State::Failed) over.failed.push_back(name);
    }
    for (const auto& [name, state] : merges_) {
      if (state == State::Failed) over.failed.push_back(name);
    }
    actions.emplace_back(std::move(over));
  }
  return actions;
}

}  // namespace hpcbatch::split
