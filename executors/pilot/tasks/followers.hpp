// Output that somebody watches: sent as it comes, from any offset on, and never more than the link
// takes.
#pragma once

#include "pilot/policy/attempt.hpp"
#include "pilot/tasks/pack_file.hpp"
#include "wire/wire.pb.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace hpcbatch::pilot {

class Followers {
 public:
  /// Up to `limit` bytes of a stream of a task that runs, from `offset` on; nothing where the task
  /// does not run.
  using ReadRunning = std::function<std::optional<std::string>(
      const AttemptId&, unsigned stream, std::uint64_t offset, std::size_t limit)>;
  using Send = std::function<void(wire::Chunk)>;

  Followers(PackFile& pack, ReadRunning read) : pack_(pack), read_(std::move(read)) {}

  void follow(const AttemptId& id, std::uint64_t out_offset, std::uint64_t err_offset);
  void stop(const AttemptId& id) { followed_.erase(id); }
  void stop_all() { followed_.clear(); }
  /// The task has ended; the rest is where `log` says.
  void ended(const AttemptId& id, const wire::LogPlace& log);
  bool is_followed(const AttemptId& id) const { return followed_.contains(id); }
  bool any() const { return !followed_.empty(); }

  /// Sends what there is, at most `room` bytes.  Tasks that ended are forgotten when all of theirs
  /// is sent.
  /// True where there may be more than that.
  bool send(std::size_t room, const Send& send);

 private:
  struct Followed {
    std::array<std::uint64_t, 2> sent{};
    std::optional<wire::LogPlace> log;  // ended
  };
  std::string read(const AttemptId& id, const Followed& followed, unsigned stream,
                   std::size_t limit);

  PackFile& pack_;
  ReadRunning read_;
  std::map<AttemptId, Followed> followed_;
};

}  // namespace hpcbatch::pilot
