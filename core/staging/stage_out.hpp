// Results whose outputs lie on a site that does not see their destinations: the files are fetched
// and put where they belong, all or none, before the engine hears that the task has succeeded.
#pragma once

#include "loop/lane.hpp"
#include "loop/writer.hpp"
#include "model/event.hpp"
#include "staging/hash_files.hpp"
#include "staging/site_files.hpp"
#include "wire/wire.pb.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// Of the loop's thread only.  What the site or this machine cannot do now is tried again for as
/// long as it takes; a pilot keeps its result until then.
class StageOut {
 public:
  /// The end as the engine is to hear it: never from within a call of ours.
  using Then = std::function<void(const PilotId&, AttemptEnd)>;
  /// Why it is tried again.
  using Delayed = std::function<void(const AttemptId&, const std::string& why)>;
  using IsCurrent = std::function<bool(const AttemptId&)>;

  /// `folder`: on this machine, ours alone, for what is on its way.  What is not its task's current
  /// attempt any more is not published.
  StageOut(asio::io_context& loop, Writer& writer, std::string folder, IsCurrent is_current,
           Then then, Delayed delayed);
  StageOut(const StageOut&) = delete;
  StageOut& operator=(const StageOut&) = delete;
  ~StageOut();

  /// One that is under way already is not begun again.
  void add(const Site& site, SiteFiles& files, const PilotId& pilot, AttemptEnd end);
  /// Those under way of an allocation's pilots.
  std::vector<AttemptId> of(const AllocationId& allocation) const;
  /// Cancelled, unless its outputs are being put in place.
  void stop(const AttemptId& attempt);
  /// The engine has the result on disk: the site's copies may go.
  void forget(const AttemptId& attempt);
  /// They go with all that the allocation has left.
  void forget_all(const AllocationId& allocation);

 private:
  struct Under {
    const Site* site;
    SiteFiles* files;
    PilotId pilot;
    AttemptEnd end;
    std::vector<wire::Output> outputs;
    unsigned failures{0};
    bool is_published{false};  // or is being
    bool is_stopped{false};
  };
  void fetch(const AttemptId& attempt);
  void fetched(const AttemptId& attempt, const std::string& folder,
               const std::vector<std::optional<StageError>>& errors);
  void publish(const AttemptId& attempt);
  void done(const AttemptId& attempt, Failure failure, std::string message);
  void again(const AttemptId& attempt, const std::string& why);
  std::string folder_of(const Under& under) const;
  Lane& next_lane() { return *lanes_[next_lane_++ % lanes_.size()]; }
  void clear(const std::string& folder);

  asio::io_context& loop_;
  Writer& writer_;
  std::string folder_;
  IsCurrent is_current_;
  Then then_;
  Delayed delayed_;
  std::map<AttemptId, Under> under_way_;
  struct Left {
    SiteFiles* files;
    AllocationId allocation;
    std::string folder;
  };
  std::map<AttemptId, Left> left_;  ///< on sites, of results that are not on disk yet
  std::shared_ptr<bool> lives_{std::make_shared<bool>(true)};
  std::array<std::unique_ptr<Lane>, 4> lanes_;  ///< they sync files
  std::size_t next_lane_{0};
};

// A result that is written on this machine: as a whole or not at all.

/// Makes the directories above `path`, writes aside, syncs and renames.  Blocks.
std::optional<StageError> write_whole_file(const std::string& path, std::string_view bytes,
                                           std::uint32_t mode);
/// Whether a file could be written there.
std::optional<StageError> make_folder_of(const std::string& path);

}  // namespace hpcbatch
