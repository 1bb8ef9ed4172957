// One site's plugins at work: the scheduler writes commands and reads answers, the transport runs
// them on a lane.
#pragma once

#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"
#include "hpcbatch/scheduler.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "model/event.hpp"
#include "model/site.hpp"
#include "plugin_host/plugin_host.hpp"
#include "sites/pilot_program.hpp"
#include "sites/site_check.hpp"
#include "wire/pilot_file.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

// What a batch job printed last before it ended without a pilot: most often why.

/// One line, by the allocation's name.
using OutputTails = std::map<std::string, std::string>;

/// Those of the names that a list shows as ended, or lacks.
std::vector<std::string> not_living(const std::vector<std::string>& names,
                                    const std::vector<BatchJob>& jobs);

/// Prints the end of `NAME.out` in the directory of each that is there.
CommandLine ask_output_tails(const std::string& directory, const std::vector<std::string>& names);
/// Of each that printed something the last line with anything in it, as plain text of one line and
/// 300 bytes at most.
OutputTails read_output_tails(const std::vector<std::string>& names, const std::string& output);

/// Every call returns at once; answers come on the loop.  A call that outlives its deadline is
/// given up: its thread and transport are left behind and new ones are made.
class SiteClient {
 public:
  SiteClient(asio::io_context& loop, const PluginHost& plugins, Site site, PilotProgram program);
  SiteClient(const SiteClient&) = delete;
  SiteClient& operator=(const SiteClient&) = delete;

  /// Loads the plugins; to be called once, before anything else.  Then `site` says what tasks may
  /// choose.
  Result<void> open();
  const Site& site() const { return site_; }
  /// Some call has not come back yet.
  bool is_busy() const { return calls_.is_busy(); }
  /// A sentence that names what has had no answer for ten seconds or longer, such as a command of the
  /// batch system or a file system that hangs; empty: nothing.
  std::string waits_for() const;

  /// Puts pilot program, pilot file and script in place and submits.  `avoided` are nodes that it
  /// is not to come to, where the batch system has a word for that.
  void submit(const AllocationId& id, const Shape& shape, wire::PilotFile file,
              const std::vector<std::string>& avoided,
              std::function<void(std::variant<AllocationAccepted, AllocationRefused>)> answer);
  /// Replaces the pilot file of an allocation that may still start or run.
  void renew_pilot_file(const AllocationId& id, wire::PilotFile file);
  struct Listed {
    std::vector<BatchJob> jobs;
    OutputTails output_tail;
  };
  /// `silent`: those of the names of which no pilot was ever there; what their batch jobs printed
  /// last is read where they have ended or are not listed.
  void poll(const std::string& prefix, std::vector<std::string> names,
            std::vector<std::string> silent, std::function<void(Result<Listed>)> answer);
  /// What all users have in the queue; nothing: its scheduler plugin has no word for that.
  struct QueueSeen {
    WatchedQueue queue;
    WatchedRoom room;  ///< what its scheduler plugin has a word for of that
  };
  void look_at_queue(std::function<void(Result<std::optional<QueueSeen>>)> answer);
  /// What accounting keeps of jobs that were eligible, or ran, in that time.  Rejected
  /// where there is none, or its scheduler plugin has no word for it.
  void list_past(std::chrono::seconds from, std::chrono::seconds until,
                 std::function<void(Result<PastJobs>)> answer);
  void cancel(const AllocationId& id, const std::string& number);
  /// Serialized wire::Result messages that the allocation's pilots left behind.
  void read_outbox(const AllocationId& id,
                   std::function<void(Result<std::vector<std::string>>)> answer);
  void forget(const AllocationId& id);
  /// Allocations whose names begin with `prefix` and of which there are pilot files, outboxes or
  /// working directories; nothing where the workspace cannot be read.
  void find_left(const std::string& prefix, std::function<void(std::vector<AllocationId>)> answer);
  /// With a transport for the time of the call; `work` runs on the lane.
  void with_transport(std::function<void(Transport&, Deadline)> work,
                      std::function<void(bool given_up)> then);
  void check(std::function<void(SiteReport)> answer);
  /// What the transport keeps for those that come later.
  void end_connection();

 private:
  // What a lane needs stays alive as long as a call that was given up may still use it.
  struct Tools {
    std::unique_ptr<Transport> transport;
    std::shared_ptr<Scheduler> scheduler;
    std::optional<Deadline> pilot_seen;  // the program, in a workspace that was ours alone
  };
  /// `what` is done, in words that follow "while".
  void call(const char* what, std::chrono::seconds limit,
            std::function<void(Tools&, Deadline)> work, std::function<void(bool)> then);
  void begins(const char* what, std::chrono::seconds limit);
  Result<void> new_tools();
  std::string file_path(const AllocationId& id) const;
  AllocationRequest request(const AllocationId& id, const Shape& shape,
                            const std::vector<std::string>& avoided) const;

  const PluginHost& plugins_;
  Site site_;
  PilotProgram program_;
  std::shared_ptr<Scheduler> scheduler_;
  std::shared_ptr<Tools> tools_;
  CallLane calls_;
  struct Going {
    const char* what;
    std::chrono::steady_clock::time_point since;
    std::chrono::seconds limit;
    std::uint64_t number;
  };
  std::optional<Going> going_;
  std::uint64_t begun_{0};
  bool is_told_{false};  ///< of a site that hangs the log says so once
  asio::steady_timer slow_;
};

}  // namespace hpcbatch
