// Does what the engine decides and brings back what happens.  Everything here runs on the loop's
// one thread.
#pragma once

#include "engine/engine.hpp"
#include "links/recipe.hpp"
#include "loop/asio.hpp"
#include "loop/clock.hpp"
#include "loop/writer.hpp"
#include "model/event.hpp"
#include "runtime/client_requests.hpp"
#include "runtime/engine_history.hpp"
#include "runtime/housekeeping.hpp"
#include "runtime/learning.hpp"
#include "runtime/pilot_links.hpp"
#include "runtime/pilot_listeners.hpp"
#include "runtime/queue_watching.hpp"
#include "runtime/staging_of_tasks.hpp"
#include "sites/site_client.hpp"

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch {

class Runtime {
 public:
  struct Options {
    std::string home;  ///< existing, ours alone
    std::string pilot_program;
    std::vector<Site> sites;
    std::size_t most_links{SIZE_MAX};  ///< to pilots, and to those who may be some
  };
  /// When the engine has nothing left to do after being asked to stop, or cannot go on.
  struct WhenEnding {
    std::function<void()> hears_nothing;            ///< what comes from now on gets no answer
    std::function<void(std::string reason)> ended;  ///< no reason: as asked
  };
  Runtime(asio::io_context& loop, const PluginHost& plugins, Options options, WhenEnding when);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// Loads the plugins of all sites, opens the store, listens for pilots, goes on where the last
  /// engine ended. `Transient` errors mean that another engine holds the home.
  Result<void> open(std::unique_ptr<store::Store> store);

  /// What clients ask the engine to do.
  ClientRequests& requests() { return *requests_; }
  /// False: it ends already and leaves what runs to the next engine, so that draining or cancelling
  /// is too late.
  bool stop(StopAsked::Mode mode);
  /// Called whenever tasks of an array have ended and that is on disk.
  void on_ended(std::function<void(ArrayId)> listener) {
    ended_listeners_.push_back(std::move(listener));
  }
  /// Called whenever something was submitted of whose end somebody is to be told, once for each of
  /// these, when that is written.
  void on_notice(std::function<void(const store::Notice&)> listener) {
    notice_listener_ = std::move(listener);
  }
  /// Reads of the store, behind everything that was saved before.
  template <class Read, class Answer>
  void read(Read read, Answer answer) {
    writer_->read(std::move(read), std::move(answer));
  }
  /// For what clients are shown: does not wait for a store that cannot be written.
  template <class Read, class Answer>
  void look(Read read, Answer answer) {
    writer_->look(std::move(read), std::move(answer));
  }
  /// Of all tasks, without asking the store.
  const store::Totals& totals() const { return writer_->totals(); }
  const store::Happened& happened() const { return writer_->happened(); }
  const DiskHistogram& commit_times() const { return writer_->commit_times(); }

  /// Copies of the store, cleaned workspaces.
  Housekeeping& housekeeping() { return *housekeeping_; }
  /// What runs used.
  Learning& learning() { return *learning_; }

  const Engine& engine() const { return *engine_; }
  const Clock& clock() const { return clock_; }
  Time now() const { return clock_.now(); }
  SiteClient* site(const std::string& name);
  /// Null for a site that sees all files of this machine.
  const SiteFiles* files_of(const std::string& site) const { return staging_->files_of(site); }
  /// Output and input of running tasks.
  PilotLinks& links() { return *links_; }
  /// Peers at the listeners for pilots, since this engine's start.
  const RejectedPeers& rejected_peers() const { return listeners_->rejected_peers(); }
  /// Why nothing new can be accepted: one sentence, with the place.
  std::optional<std::string> store_refuses() const;
  /// That, or that it is slow to answer.
  std::optional<std::string> store_trouble() const;
  /// Something that waits for an answer of the store or a site.
  asio::io_context& loop() { return loop_; }

 private:
  Result<void> open_sites();
  void feed(const Event& event);
  void perform_all(const Event& event, Actions actions);
  void arm_timer();
  void store_is_damaged(const std::string& what);
  // Parts of `open`, in this order.
  void make_writer(std::unique_ptr<store::Store> store);
  void make_staging();
  void make_requests();
  void make_links();
  Result<void> listen(std::string secret);
  void make_housekeeping();
  void look_through_store();
  std::vector<std::string> workspaces_here() const;
  void raise_given_ids(store::Store& store) const;

  template <class Save>
  requires std::constructible_from<decltype(store::Write::what), const Save&>
  void perform(const Save& action) { writer_->add({action, {}}); }
  template <class Answer>
  requires requires(ClientRequests& requests, const Answer& answer) { requests.answer(answer); }
  void perform(const Answer& action) { requests_->answer(action); }
  // perform.cpp: one function for each action of which more is to be done.
  void perform(SaveArrays action);
  void perform(const DropLeases& action);
  void perform(const SaveFailedAttempt& action);
  void perform(SaveResult action);
  void perform(const SaveResults& action);
  void perform(const SaveArrayEnded& action);
  void perform(const SaveAllocation& action);
  void perform(const TellEnded& action);
  void perform(const SendLeases& action);
  void perform(const RecallLeases& action);
  void perform(const KillAttempt& action);
  void perform(const AcknowledgeResults& action);
  void perform(const PermitPublish& action);
  void perform(const WelcomePilot& action);
  void perform(const EndPilot& action);
  void perform(const ConfirmPilot& action);
  void perform(const StayPilot& action);
  void perform(const FencePilot& action);
  void perform(const StageIn& action);
  void perform(const OpenAllocation& action);
  void submit_allocation(const OpenAllocation& action, SiteClient& client, const Shape& shape,
                         const std::vector<std::string>& avoided);
  void perform(const CancelAllocation& action);
  void perform(const PollSite& action);
  void perform(const LookAtQueue& action);
  void perform(const ReadOutbox& action);
  void perform(const ForgetAllocation& action);
  void perform(const EngineIdle& action);

  std::string site_of(const PilotId& pilot) const;
  void after(WaitsFor what, Writer::Then then);
  void stop_when_quiet(std::chrono::steady_clock::time_point latest);

  asio::io_context& loop_;
  const PluginHost& plugins_;
  Options options_;
  struct End {
    WhenEnding when;
    std::string damage{};           ///< of the store, where that is why it ends
    bool leaves{false};             ///< what runs, to the next engine
    bool hears_nothing{false};      ///< more
    std::uint32_t open_submits{0};  ///< commands whose answer is not there yet
    bool keeps_connections{true};   ///< to sites
    bool has_come{false};
  };
  End end_;
  Clock clock_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineHistory> history_;        ///< where one is asked for
  std::map<std::string, PilotProgram> programs_;  ///< by site
  std::map<std::string, std::unique_ptr<SiteClient>> sites_;
  std::string engine_name_;
  std::unique_ptr<PilotListeners> listeners_;
  std::unique_ptr<StagingOfTasks> staging_;
  std::unique_ptr<Housekeeping> housekeeping_;
  std::unique_ptr<Learning> learning_;
  std::unique_ptr<StoreWatch> store_watch_;
  std::unique_ptr<QueueWatching> queue_watching_;
  std::unique_ptr<PilotLinks> links_;
  std::unique_ptr<LeaseSender> lease_sender_;
  std::vector<std::function<void(ArrayId)>> ended_listeners_;
  std::function<void(const store::Notice&)> notice_listener_;
  std::unique_ptr<ClientRequests> requests_;
  std::optional<std::string> store_trouble_;
  asio::steady_timer timer_;
  std::optional<Time> timer_at_;
};

}  // namespace hpcbatch
