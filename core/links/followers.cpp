#include "links/followers.hpp"

#include <algorithm>
#include <vector>

namespace hpcbatch {

FollowerId Followers::add(Follower follower) {
  const FollowerId id = next_++;
  by_task_.emplace(follower.task, id);
  followers_.emplace(id, std::make_shared<Follower>(std::move(follower)));
  return id;
}

void Followers::remove(FollowerId id) {
  const auto at = followers_.find(id);
  if (at == followers_.end()) return;
  const auto [first, last] = by_task_.equal_range(at->second->task);
  for (auto entry = first; entry != last; ++entry) {
    if (entry->second == id) {
      by_task_.erase(entry);
      break;
    }
  }
  followers_.erase(at);
}

Follower* Followers::find(FollowerId id) {
  const auto at = followers_.find(id);
  return at == followers_.end() ? nullptr : at->second.get();
}

std::uint64_t Followers::seen(const AttemptId& attempt, std::uint32_t stream) const {
  std::uint64_t least = UINT64_MAX;
  const auto [first, last] = by_task_.equal_range(attempt.task);
  for (auto entry = first; entry != last; ++entry) {
    const Follower& follower = *followers_.at(entry->second);
    least = std::min(least, follower.attempt == attempt ? follower.seen[stream] : 0);
  }
  return first == last ? 0 : least;
}

void Followers::chunk(const AttemptId& attempt, std::uint32_t stream, std::uint64_t offset,
                      const std::string& bytes) {
  if (stream != 1 && stream != 2) return;
  std::vector<std::shared_ptr<Follower>> told;
  const auto [first, last] = by_task_.equal_range(attempt.task);
  for (auto entry = first; entry != last; ++entry) told.push_back(followers_.at(entry->second));
  for (const auto& follower : told) {
    if (follower->attempt != attempt) {
      follower->attempt = attempt;
      follower->seen = {};
    }
    std::uint64_t& seen = follower->seen[stream];
    // What comes twice, after a link was lost, is passed on once; a gap is filled from the log at
    // the end.
    if (offset > seen || offset + bytes.size() <= seen) continue;
    const std::string fresh = bytes.substr(seen - offset);
    seen = offset + bytes.size();
    follower->output(stream, fresh);
  }
}

void Followers::end(ArrayId array, const std::function<bool(TaskId)>& is_over) {
  std::vector<FollowerId> over;
  for (auto entry = by_task_.lower_bound({array, 0});
       entry != by_task_.end() && entry->first.array == array; ++entry) {
    if (is_over(entry->first)) over.push_back(entry->second);
  }
  for (const FollowerId id : over) {
    const auto at = followers_.find(id);
    if (at == followers_.end()) continue;
    const std::shared_ptr<Follower> follower = at->second;
    follower->ended();
    remove(id);
  }
}

void InputQueue::push(TaskId task, Piece piece) {
  Line& line = lines_[task];
  line.pieces.push_back(std::move(piece));
  settle(line);
}

void InputQueue::wanted(TaskId task, std::uint64_t offset, bool ended) {
  Line& line = lines_[task];
  line.given = offset;
  line.ended = ended;
  line.wanted = true;
  settle(line);
}

/// Answers those at the front that the task has been given.
void InputQueue::settle(Line& line) {
  while (!line.pieces.empty()) {
    const Piece& front = line.pieces.front();
    const bool is_given = front.asks
                              ? line.wanted || line.given > 0
                              : front.offset && *front.offset + front.bytes.size() <= line.given &&
                                    (line.ended || !front.end);
    if (!is_given && !line.ended) return;
    const Piece piece = std::move(line.pieces.front());
    line.pieces.pop_front();
    piece.then(is_given);
  }
}

std::optional<InputQueue::Sending> InputQueue::next(TaskId task) {
  const auto at = lines_.find(task);
  if (at == lines_.end()) return std::nullopt;
  Line& line = at->second;
  while (line.wanted && !line.pieces.empty()) {
    Piece& front = line.pieces.front();
    if (!front.offset) front.offset = line.given;
    if (*front.offset <= line.given) {
      line.wanted = false;
      return Sending{front.bytes, *front.offset, front.end};
    }
    // Something before it never came.
    const Piece piece = std::move(front);
    line.pieces.pop_front();
    piece.then(false);
  }
  return std::nullopt;
}

void InputQueue::end(ArrayId array, const std::function<bool(TaskId)>& is_over) {
  for (auto at = lines_.lower_bound({array, 0}); at != lines_.end() && at->first.array == array;) {
    if (!is_over(at->first)) {
      ++at;
      continue;
    }
    Line line = std::move(at->second);
    at = lines_.erase(at);
    for (Piece& piece : line.pieces) piece.then(false);
  }
}

}  // namespace hpcbatch
