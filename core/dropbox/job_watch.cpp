#include "dropbox/job_watch.hpp"

#include <algorithm>

namespace hpcbatch {

bool JobWatch::seen(const std::string& name, const FileStamp& stamp, bool closed, Time now) {
  const auto [at, is_new] = files_.try_emplace(name);
  File& file = at->second;
  if (is_new) file.first_seen = now;
  const bool is_news = is_new || file.stamp != stamp;
  if (is_news) {
    file.stamp = stamp;
    file.changed = now;
    file.closed = false;
    file.was_read = false;
  }
  if (closed) file.closed = true;
  return is_news;
}

void JobWatch::forget(const std::string& name) {
  files_.erase(name);
}

void JobWatch::keep_only(const std::vector<std::string>& names) {
  std::erase_if(files_, [&](const auto& entry) {
    return !std::binary_search(names.begin(), names.end(), entry.first);
  });
}

Time JobWatch::due_at(const File& file) const {
  if (file.was_read) return file.changed + patience_.grace;
  return file.closed ? file.changed : file.changed + patience_.quiet;
}

std::vector<std::string> JobWatch::due(Time now, std::size_t most, const RoomOf& room_of) const {
  struct Turn {
    Time first_seen;
    const std::string* name;
  };
  std::map<std::uint32_t, std::vector<Turn>> by_owner;
  for (const auto& [name, file] : files_) {
    if (due_at(file) <= now) by_owner[file.stamp.owner].push_back({file.first_seen, &name});
  }
  for (auto& [owner, turns] : by_owner) {
    std::stable_sort(turns.begin(), turns.end(),
                     [](const Turn& a, const Turn& b) { return a.first_seen < b.first_seen; });
    if (room_of) turns.resize(std::min(turns.size(), room_of(owner)));
  }
  std::vector<std::string> names;
  for (std::size_t turn = 0; names.size() < most; ++turn) {
    const std::size_t before = names.size();
    for (const auto& [owner, turns] : by_owner) {
      if (turn < turns.size() && names.size() < most) names.push_back(*turns[turn].name);
    }
    if (names.size() == before) break;
  }
  return names;
}

JobWatch::Verdict JobWatch::not_yet(const std::string& name, Time now) {
  File& file = files_.at(name);
  file.was_read = true;
  return now >= file.changed + patience_.grace ? Verdict::Refuse : Verdict::Wait;
}

std::optional<Time> JobWatch::next_due(const RoomOf& room_of) const {
  std::optional<Time> next;
  for (const auto& [name, file] : files_) {
    if (room_of && room_of(file.stamp.owner) == 0) continue;
    const Time at = due_at(file);
    if (!next || at < *next) next = at;
  }
  return next;
}

}  // namespace hpcbatch
