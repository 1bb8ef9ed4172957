// What is done beside the work: old history and old files go, the store is copied and looked for
// where it was.
#pragma once

#include "engine/engine.hpp"
#include "hpcbatch/result.hpp"
#include "loop/asio.hpp"
#include "loop/clock.hpp"
#include "loop/lane.hpp"
#include "loop/writer.hpp"
#include "sites/pilot_program.hpp"
#include "sites/site_client.hpp"
#include "sites/workspace_memory.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

// What is done beside the work: old history and old files go, the store is copied.

/// On the loop's thread.
class Housekeeping {
 public:
  /// All that is named outlives this.
  struct Dependencies {
    asio::io_context& loop;
    Writer& writer;
    const Engine& engine;
    std::map<std::string, std::unique_ptr<SiteClient>>& sites;
    const std::map<std::string, PilotProgram>& programs;  ///< by site
    const std::string& engine_name;
    const Clock& clock;
    std::function<bool()> is_stopped;  ///< the engine hears nothing more
    std::function<void(const CancelAllocation&)> cancel;
    std::function<void(const ForgetAllocation&)> forget;
  };
  explicit Housekeeping(Dependencies around);

  /// Goes on by itself from then on.
  void begin();
  /// Removes from the site's workspace what nobody needs, or, as a trial, says what that would be.
  void clean(const std::string& site, bool is_trial, std::function<void(Result<Cleaning>)> answer);
  /// Writes a copy of the store to a new file; `answer` when it is whole.
  void back_up(const std::string& file, std::function<void(Result<void>)> answer);

 private:
  SiteClient* site(const std::string& name) const;
  void prune_history(std::chrono::seconds later);
  void copy_on(std::function<void(Result<void>)> answer);
  /// Files of allocations that are over: an engine that died in between, or that did not know their
  /// site, has left them.
  void sweep_workspaces();
  void sweep_next(SiteClient& site, std::vector<AllocationId> found, std::vector<BatchJob> jobs);
  void clean_daily();
  KeepRules keep_rules(const Site& site, const std::vector<std::string>& pilots) const;

  Dependencies dependencies_;
  asio::steady_timer timer_;
  std::optional<std::chrono::steady_clock::time_point> cleaned_;  ///< all workspaces
};

// Looks once a second whether the store's files lie where they were, and says in the workspaces how
// far its ids have come.

/// On the loop's thread; what may block does so on the store's lane and on one for the workspaces.
class StoreWatch {
 public:
  /// `workspaces`: those that this machine sees.  All that is named outlives this.
  StoreWatch(asio::io_context& loop, Writer& writer, std::string engine_name,
             std::vector<std::string> workspaces);
  StoreWatch(const StoreWatch&) = delete;
  StoreWatch& operator=(const StoreWatch&) = delete;
  ~StoreWatch();

  /// Goes on by itself from then on.
  void begin();
  /// Tasks up to that submission are acknowledged.
  void given(std::uint64_t highest);
  /// The file of the store that somebody has removed or replaced; empty: none.
  const std::string& missing() const { return missing_; }

 private:
  void look_again();
  void seen(std::string missing, const GivenIds& given);
  void write();

  Writer& writer_;
  asio::steady_timer timer_, soon_;
  std::string engine_name_;
  std::vector<std::string> workspaces_;
  std::string missing_;
  GivenIds given_, written_;
  bool writes_soon_{false};
  std::shared_ptr<std::atomic<bool>> is_writing_{std::make_shared<std::atomic<bool>>(false)};
  Lane lane_;
};

}  // namespace hpcbatch
