// The addresses under which the engine may be found, and which of them is tried.  By files (spool)
// all takes longer, and they are a way only when nothing else has answered for a while.
#pragma once

#include "hpcbatch/result.hpp"
#include "pilot/base/clock.hpp"
#include "posix/files.hpp"
#include "wire/pilot_file.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

class WaysToEngine {
 public:
  struct Way {
    wire::Address address;
    std::string name;
    bool is_slow{false};
  };

  WaysToEngine(std::string path, wire::PilotFile file, Time now);

  /// Begins a round of tries with the first way.  The pilot file is read again, unless this is the
  /// first round since the engine was there: it may have moved.
  void look(Time now);
  bool any() const { return !ways_.empty(); }
  /// Only where there are any.
  const Way& current() const { return ways_[at_]; }
  /// False: that was the last of the round.
  bool try_next();
  /// Until the next round is worth beginning.
  Duration pause() const;

  /// The current one leads to the engine.
  void found() { rounds_ = 1; }
  /// It did, and does no more; the others are not tried in this round.
  void lost(Time now);

  /// The pilot file stays away: the engine wants no more of this pilot.
  bool is_given_up() const { return is_given_up_; }
  const std::string& path() const { return path_; }
  const wire::Key& key() const { return file_.key; }

 private:
  void read_file(Time now);
  std::vector<Way> ways(Time now) const;

  std::string path_;
  wire::PilotFile file_;
  unsigned rounds_{0};
  std::optional<Time> missing_since_;  // the pilot file
  bool is_given_up_{false};
  std::vector<Way> ways_;
  std::size_t at_{0};
  Time alone_since_;
  bool came_by_files_{false};  // when it was not alone last
};

// Opens a socket to one address, without waiting and without looking up any name.

/// Connected or about to be: the socket is writable when that is settled, and `connection_error`
/// says how.
Result<Fd> start_connecting(const wire::Address& address);

/// 0: connected.
int connection_error(int socket);

}  // namespace hpcbatch::pilot
