// Does what the engine decides and brings back what happens.  Everything here runs on the loop's
// one thread.
#pragma once

#include "engine/engine.hpp"
#include "links/followers.hpp"
#include "links/link_server.hpp"
#include "links/recipe.hpp"
#include "links/relay_keeper.hpp"
#include "links/spool_keeper.hpp"
#include "loop/action_order.hpp"
#include "loop/asio.hpp"
#include "loop/clock.hpp"
#include "loop/writer.hpp"
#include "model/event.hpp"
#include "runtime/engine_history.hpp"
#include "sites/direct_addresses.hpp"
#include "sites/site_hands.hpp"
#include "sites/workspace_cleaning.hpp"
#include "staging/site_files.hpp"
#include "staging/stage_out.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch {

struct LeaseRun;

/// Work as a client hands it over: what the engine sees, and what the store keeps beside it.
struct Submission {
  std::string client;
  std::string key;
  std::uint64_t content{0};  ///< hash of the request
  std::vector<NewArray> arrays;
  std::vector<store::Recipe> recipes;  ///< one for each array
};

struct SubmitRefusal {
  std::string text;
  bool conflict{false};
  bool not_now{false};
};
using SubmitAnswer = std::function<void(std::variant<std::vector<ArrayId>, SubmitRefusal>)>;

/// How many tasks were changed.
using CountAnswer = std::function<void(const Result<std::uint64_t>&)>;

/// Ended tasks that are to run again.
struct Retry {
  std::vector<Selection> tasks;
  bool failed_only{false};  ///< not what was cancelled
  NeedsChange change;       ///< of the arrays' needs
};

class Runtime {
 public:
  struct Options {
    std::string home;  ///< existing, ours alone
    std::string pilot_program;
    std::vector<Site> sites;
    std::size_t most_links{SIZE_MAX};  ///< to pilots, and to those who may be some
  };
  /// `stop` is called when the engine has nothing left to do after being asked to stop, or cannot
  /// go on (with the reason).
  Runtime(asio::io_context& loop, const PluginHost& plugins, Options options,
          std::function<void(std::string)> stop);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// Loads the plugins of all sites, opens the store, listens for pilots, goes on where the last
  /// engine ended. `Transient` errors mean that another engine holds the home.
  Result<void> open(std::unique_ptr<store::Store> store);

  // Requests of clients; answers come on the loop, once they are durable.
  void submit(Submission submission, SubmitAnswer answer);
  void cancel(std::vector<Selection> tasks, CountAnswer answer);
  void hold(std::vector<Selection> tasks, bool hold, CountAnswer answer);
  void retry(Retry asked, CountAnswer answer);
  void stop(StopAsked::Mode mode);
  /// Removes from the site's workspace what nobody needs, or, as a trial, says what that would be.
  void clean(const std::string& site, bool is_trial, std::function<void(Result<Cleaning>)> answer);
  FollowerId follow(Follower follower);
  void unfollow(FollowerId id);
  const Follower* follower(FollowerId id) { return followers_.find(id); }
  void input(TaskId task, InputQueue::Piece piece);
  /// Called whenever tasks of an array have ended and that is on disk.
  void on_ended(std::function<void(ArrayId)> listener) {
    ended_listeners_.push_back(std::move(listener));
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
  const store::Store::Totals& totals() const { return writer_->totals(); }
  /// Writes a copy of the store to a new file; `answer` when it is whole.
  void back_up(const std::string& file, std::function<void(Result<void>)> answer);

  const Engine& engine() const { return *engine_; }
  const Clock& clock() const { return clock_; }
  Time now() const { return clock_.now(); }
  SiteHands* site(const std::string& name);
  /// Nothing for a site that sees all files of this machine.
  const SiteFiles* files_of(const std::string& site) const;
  /// How the pilot reaches this engine, in its own words; empty where it does not.
  std::string way_of(const PilotId& pilot) const;
  /// Peers at the listeners for pilots, since this engine's start.
  const RejectedPeers& rejected_peers() const { return server_->rejected_peers(); }
  /// Why nothing new can be accepted: one sentence, with the place.
  std::optional<std::string> store_refuses() const;
  /// That, or that it is slow to answer.
  std::optional<std::string> store_trouble() const;
  /// Something that waits for an answer of the store or a site.
  asio::io_context& loop() { return loop_; }

 private:
  Result<void> open_sites();
  void follow_leased(PilotLink& link, const PilotId& pilot, const std::vector<LeaseRun>& runs);
  void feed(const Event& event);
  void perform_all(const Event& event, Actions actions);
  void arm_timer();
  void prune_history(std::chrono::seconds later);
  void store_is_damaged(const std::string& what);
  void copy_on(std::function<void(Result<void>)> answer);
  /// Files of allocations that are over: an engine that died in between, or that did not know their
  /// site, has left them.
  void sweep_workspaces();
  void sweep_next(SiteHands& site, std::vector<AllocationId> found, std::vector<BatchJob> jobs);
  // clean.cpp
  void clean_daily();
  KeepRules keep_rules(const Site& site, const std::vector<std::string>& pilots) const;
  std::optional<wire::Key> key_of(const wire::PilotName& pilot) const;
  wire::PilotFile pilot_file(const AllocationId& id, const Site& site, const Shape& shape) const;
  Result<void> listen();
  void keep_addresses();
  void renew_pilot_files();
  void open_ways(const Site& site);
  /// Relays and spools are there for sites that have allocations.
  void keep_ways();
  void feed_submission(RequestId request, std::vector<EndedArray> ended);
  std::vector<ArrayId> unheld_dependencies(const std::vector<NewArray>& arrays) const;
  RequestId new_request() { return RequestId{next_request_++}; }

  // messages.cpp: from pilots
  void received(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message);
  void registered(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message);
  void measure(const std::shared_ptr<PilotLink>& link, std::uint64_t heartbeat);
  void closed(const std::shared_ptr<PilotLink>& link);
  void follow_again(const PilotId& pilot);
  void ask_for_output(const Lease& lease);

  // perform.cpp: one function for each action
  void perform(SaveArrays action);
  void perform(const SaveHold& action);
  void perform(const SaveLeases& action);
  void perform(const DropLeases& action);
  void perform(const SaveCancelled& action);
  void perform(const SavePermitted& action);
  void perform(const SaveFailedAttempt& action);
  void perform(SaveResult action);
  void perform(const SaveResults& action);
  void perform(const SaveArrayEnded& action);
  void perform(const SaveRevived& action);
  void perform(const SaveAllocation& action);
  void perform(const AnswerSubmit& action);
  void perform(const AnswerRefused& action);
  void perform(const AnswerCount& action);
  void perform(const TellEnded& action);
  void perform(const SendLeases& action);
  void perform(const RecallLeases& action);
  void perform(const KillAttempt& action);
  void perform(const AcknowledgeResults& action);
  void perform(const PermitPublish& action);
  void perform(const WelcomePilot& action);
  void perform(const EndPilot& action);
  void perform(const FencePilot& action);
  void perform(const StageIn& action);
  void perform(const OpenAllocation& action);
  void submit_allocation(const OpenAllocation& action, SiteHands& hands, const Shape& shape,
                         const std::vector<std::string>& avoided);
  void perform(const CancelAllocation& action);
  void perform(const PollSite& action);
  void perform(const ReadOutbox& action);
  void perform(const ForgetAllocation& action);
  void perform(const EngineIdle& action);

  // task_files.cpp: files of tasks on sites that do not see them
  void open_files(const Snapshot& snapshot);
  bool sees_everything(const std::string& site) const;
  /// Made when it is first needed; null where the site is not in the configuration.
  SiteFiles* files_at(const std::string& site);
  /// A site that has cleaned its file systems has taken files that were brought: they are brought
  /// again, and the attempt is not the task's fault.
  void mind_files_gone(const std::string& site, const PilotId& pilot, const AttemptEnd& end);
  /// Its files are not where they were taken to be: its lease goes back, and they are brought
  /// again.
  void give_back_without_files(const std::string& site, const PilotId& pilot,
                               const AttemptId& attempt, const std::string& why);
  bool is_current(const AttemptId& attempt) const;
  /// Its outputs lie on its site, and nobody has put them where they belong.
  bool must_be_fetched(const AttemptEnd& end) const;
  void not_leased_before(TaskId task);
  /// Nothing where a file of the task is not on its pilot's site: then the engine hears of it.
  std::optional<wire::Start> shown_at(const PilotId& pilot, wire::Start start);
  /// Feeds the ends whose outputs are where they belong; the others follow when they are.
  void feed_ends(AttemptsEnded event);
  void feed_outbox(OutboxRead event, const std::string& site);
  void task_over(TaskId task);
  void array_over(ArrayId array);
  std::string site_of(const PilotId& pilot) const;
  void after(WaitsFor what, Writer::Then then);
  /// Behind the leases that were saved before, so that a pilot hears things in the order in which
  /// they were decided. `bytes`: what `say_it` adds at most.
  void tell_pilot(const PilotId& pilot, std::function<void(wire::ToPilot&)> say_it,
                  std::size_t bytes = 64);
  template <class ToOnePilot>
  void pass_on(const ToOnePilot& action);
  PilotLink* link_of(const PilotId& pilot);
  void send_input(TaskId task);
  void stop_when_quiet(std::chrono::steady_clock::time_point latest);

  asio::io_context& loop_;
  const PluginHost& plugins_;
  Options options_;
  std::function<void(std::string)> stop_;
  Clock clock_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineHistory> history_;        ///< where one is asked for
  std::map<std::string, PilotProgram> programs_;  ///< by site
  std::map<std::string, std::unique_ptr<SiteHands>> sites_;
  std::string secret_;
  std::string engine_name_;
  std::string pilots_socket_;
  std::unique_ptr<LinkServer> server_;
  std::unique_ptr<DirectAddresses> direct_addresses_;
  unsigned listeners_{0};  ///< of relays and spools; 0 is our own
  std::map<std::string, std::unique_ptr<RelayKeeper>> relays_;  ///< by site
  std::map<std::string, std::unique_ptr<SpoolKeeper>> spools_;
  std::map<std::string, std::unique_ptr<SiteFiles>> files_;  ///< of sites that do not see all
  std::unique_ptr<StageOut> stage_out_;
  std::map<ArrayId, std::set<std::string>> staged_to_;  ///< sites that hold files for an array
  std::set<TaskId> leased_before_;  ///< by an earlier engine, on those sites: their files are held
                                    ///< by nobody
  std::map<PilotId, std::shared_ptr<PilotLink>> links_;     ///< welcomed
  std::map<PilotId, std::shared_ptr<PilotLink>> unproven_;  ///< registered, not answered yet
  Followers followers_;
  InputQueue inputs_;
  std::vector<std::function<void(ArrayId)>> ended_listeners_;
  std::unordered_map<std::uint64_t, SubmitAnswer> submit_answers_;
  std::unordered_map<std::uint64_t, CountAnswer> count_answers_;
  std::unordered_map<std::uint64_t, Submission> submissions_;
  std::optional<std::string> store_trouble_;
  std::string store_damage_;  ///< why it ends, where that is no wish of anybody
  std::uint64_t next_request_{1};
  asio::steady_timer timer_;
  std::optional<Time> timer_at_;
  asio::steady_timer prune_timer_;
  asio::steady_timer address_timer_;
  bool stopped_{false};                                           ///< hears nothing more
  std::optional<std::chrono::steady_clock::time_point> cleaned_;  // all workspaces
  std::uint32_t open_submits_{0};  ///< commands whose answer is not there yet
  bool keeps_connections_{true};   // to sites, when it ends
  bool ended_{false};
};

}  // namespace hpcbatch
