// Files of tasks whose sites do not see them: staged in before the tasks are leased, named as the
// site names them, and staged out when the tasks have ended.
#pragma once

#include "engine/engine.hpp"
#include "loop/asio.hpp"
#include "loop/writer.hpp"
#include "model/event.hpp"
#include "plugin_host/plugin_host.hpp"
#include "sites/pilot_program.hpp"
#include "sites/site_client.hpp"
#include "staging/site_files.hpp"
#include "staging/stage_out.hpp"
#include "wire/wire.pb.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

/// On the loop's thread.
class StagingOfTasks {
 public:
  /// All that is named outlives this; the engine is there before anything but `open` is called.
  struct Dependencies {
    asio::io_context& loop;
    const PluginHost& plugins;
    Writer& writer;
    const std::unique_ptr<Engine>& engine;
    const std::map<std::string, std::unique_ptr<SiteClient>>& sites;
    const std::map<std::string, PilotProgram>& programs;  ///< by site
    std::string home;
    std::function<void(const Event&)> feed;
  };
  explicit StagingOfTasks(Dependencies around) : dependencies_(std::move(around)) {}

  /// Where the last engine ended.
  void open(const Snapshot& snapshot, const std::vector<Site>& sites);
  bool sees_everything(const std::string& site) const;
  /// Null for a site that sees all files of this machine.
  const SiteFiles* files_of(const std::string& site) const;

  void stage_in(const StageIn& action);
  /// A start as its pilot is told of it.  Nothing where a file of the task is not on its pilot's
  /// site: then the engine hears of it.
  std::optional<wire::Start> shown_at(const PilotId& pilot, wire::Start start);

  /// Feeds the ends whose outputs are where they belong; the others follow when they are.
  void feed_ends(AttemptsEnded event);
  void feed_outbox(OutboxRead event, const std::string& site);
  /// No more is to come of it.
  void stop(const AttemptId& attempt) { stage_out_->stop(attempt); }
  void forget(const AttemptId& attempt) { stage_out_->forget(attempt); }
  void forget_all(const AllocationId& allocation) { stage_out_->forget_all(allocation); }

  // Nobody needs their files any more.
  void task_over(TaskId task);
  void tasks_over(ArrayId array, const IndexSet& indices);
  void array_over(ArrayId array);
  void not_leased_before(TaskId task);

 private:
  SiteClient* site(const std::string& name) const;
  std::string site_of(const PilotId& pilot) const;
  /// Made when it is first needed; null where the site is not in the configuration.
  SiteFiles* files_at(const std::string& site);
  /// A site that has cleaned its file systems has taken files that were staged in: they are staged
  /// in again, and the attempt is not the task's fault.
  void mind_files_gone(const std::string& site, const PilotId& pilot, const AttemptEnd& end);
  /// Its files are not where they were taken to be: its lease goes back, and they are staged in
  /// again.
  void give_back_without_files(const std::string& site, const PilotId& pilot,
                               const AttemptId& attempt, const std::string& why);
  bool is_current(const AttemptId& attempt) const;
  /// Its outputs lie on its site, and nobody has put them where they belong.
  bool must_be_fetched(const AttemptEnd& end) const;

  Dependencies dependencies_;
  std::map<std::string, std::unique_ptr<SiteFiles>> files_;  ///< of sites that do not see all
  std::unique_ptr<StageOut> stage_out_;
  std::map<ArrayId, std::set<std::string>> staged_to_;  ///< sites that hold files for an array
  std::set<TaskId> leased_before_;  ///< by an earlier engine, on those sites: their files are held
                                    ///< by nobody
};

}  // namespace hpcbatch
