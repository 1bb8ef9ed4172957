// What the engine needs to go on after a restart, as the store reads it back.
#pragma once

#include "model/action.hpp"
#include "model/event.hpp"
#include "model/ids.hpp"
#include "model/site.hpp"
#include "model/task.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// An array of which something has not ended.
struct LiveArray {
  ArrayId id;
  std::string client;
  NewArray array;  ///< `indices` are all it ever had
  Time submitted{};
  IndexSet ok;
  IndexSet not_ok;
  IndexSet failed;  ///< of those, where an array is given up after so many
  IndexSet held;
};

/// The live arrays one by one in the order of their ids, each until the next call; null after the
/// last.  There may be millions: nobody holds all of them in this form.
using LiveArrays = std::function<const LiveArray*()>;

struct StoredLease {
  AttemptId attempt;
  PilotId pilot;
  bool cancelled{false};
  bool permitted{false};                 ///< to publish
  std::vector<std::uint32_t> members{};  ///< ranks of the other pilots that it has
};

struct StoredKey {
  std::string client;
  std::string key;
  std::uint64_t content{0};
  std::vector<ArrayId> ids;
};

struct StoredReader {
  ArrayId array;
  ReadBy by;
};

/// An allocation that has begun to run, however it went on.
struct PastStart {
  std::string site;
  std::string shape;
  Time opened{};
  Time running_since{};
};

/// How long tasks of a kind took on a device, by the logarithms of their seconds.
struct KnownSpeed {
  std::string kind;
  std::string device;
  double mean{0};
  double variance{0};
  double count{0};
};

/// All but the live arrays.
struct Snapshot {
  std::uint64_t engine_start{1};  ///< this one's number; begins at 1
  std::string
      engine_name;  ///< 5 letters and digits: beginning of every allocation's name after `h`
  std::uint64_t next_array{1};
  std::vector<StoredLease> leases;
  std::vector<SaveFailedAttempt> failed_attempts;  ///< of live arrays
  std::vector<Allocation> allocations;             ///< that have not ended
  std::vector<EndedArray> ended;                   ///< that live arrays wait for
  std::vector<StoredKey> keys;
  std::vector<StoredReader> readers;  ///< of live arrays, in the order of their ids
  std::vector<std::pair<std::string, std::string>> proven;  ///< site, shape: accepted before
  std::vector<PastStart> past_starts;                       ///< the latest ones, oldest first
  std::vector<Keep> keeps;
  std::vector<KnownSpeed> speeds;
};

}  // namespace hpcbatch
