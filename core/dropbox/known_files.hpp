// Files that are known by what they are, whatever their names.
#pragma once

#include "dropbox/job_watch.hpp"

#include <deque>
#include <set>
#include <tuple>

namespace hpcbatch {

/// Of one file system.  Only whoever may write a file can make it look like another one.
class KnownFiles {
 public:
  void add(const FileStamp& stamp) {
    if (!files_.insert(key_of(stamp)).second) return;
    order_.push_back(key_of(stamp));
    if (order_.size() <= kMost) return;
    files_.erase(order_.front());
    order_.pop_front();
  }
  bool contains(const FileStamp& stamp) const { return files_.contains(key_of(stamp)); }

 private:
  /// An inode's number is given again, at another time.
  using Key = std::tuple<std::uint64_t, std::int64_t, std::int64_t>;
  static Key key_of(const FileStamp& stamp) { return {stamp.inode, stamp.modified_ns, stamp.size}; }
  static constexpr std::size_t kMost = 100'000;
  std::set<Key> files_;
  std::deque<Key> order_;  // the oldest first
};

}  // namespace hpcbatch
