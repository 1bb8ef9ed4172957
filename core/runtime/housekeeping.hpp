// What is done beside the work: old history and old files go, the store is copied.
#pragma once

#include "engine/engine.hpp"
#include "loop/asio.hpp"
#include "loop/clock.hpp"
#include "loop/writer.hpp"
#include "sites/pilot_program.hpp"
#include "sites/site_client.hpp"
#include "sites/workspace_cleaning.hpp"

#include "hpcbatch/result.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

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

}  // namespace hpcbatch
