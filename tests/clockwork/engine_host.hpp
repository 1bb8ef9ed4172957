// What is around the engine in its process: performs its actions in the order of the store's
// commits, brings it events, dies between any two actions, and starts again from what was
// committed.
#pragma once

#include "engine/engine.hpp"
#include "engine/history_of.hpp"
#include "engine/saved.hpp"
#include "link.hpp"
#include "loop/writer.hpp"
#include "wire/wire.pb.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::clockwork {

class World;

class EngineHost {
 public:
  explicit EngineHost(World& world);
  void start();

  bool is_up() const { return engine_ != nullptr; }
  const Engine* engine() const { return engine_.get(); }
  /// What is written: a kill of the engine does not touch it.
  const Saved& saved() const { return saved_; }
  /// Nothing where that waits for its commit.
  std::optional<Time> sent_at(const Lease& lease) const;
  bool commits_are_done() const { return order_.is_quiet(); }

  // The API; answers come with the request's number through `Users`.
  void submit(TasksSubmitted event);
  void ask(const Event& event) { feed(event); }
  void retry(RequestId request, ArrayId array);

  // The listener for pilots.
  /// Whether the pilot could prove itself.
  bool accept(const PilotId& pilot, const std::shared_ptr<Link>& link);

  /// What happens around it later, unless it is dead by then.
  std::function<void()> if_alive(std::function<void()> then);

  // Faults.
  void kill_after(std::uint64_t actions, Duration down, bool power);
  void stop(StopAsked::Mode mode, Duration down);
  void fail_commits(Duration length);
  void slow_commits(Duration length);
  /// At its next start it does not know this site.
  void leave_out(const std::string& site) { left_out_ = site; }
  bool knows_all_sites() const;
  /// The links that are welcome, for faults to be done to one.
  std::vector<std::shared_ptr<Link>> links() const;

 private:
  struct NoRead {};
  using Order = GroupCommit<Action, NoRead>;
  struct PilotLink {
    std::shared_ptr<Link> link;
    PilotId pilot;
    std::uint64_t incarnation{0};
    std::unique_ptr<wire::ToPilot> outgoing;
    bool closing{false};
  };

  void feed(const Event& event);
  void arm_timer();
  void die();

  // engine_store.cpp: what is saved, and what waits for it
  void look();
  void ship();
  void commit(std::vector<Action> writes, bool durable, std::function<void()> then);
  void apply(const std::vector<Action>& writes, bool durable);
  void after(WaitsFor what, std::function<void()> then);
  void restore_what_is_on_disk();

  // engine_links.cpp
  void received(const std::shared_ptr<PilotLink>& link, const std::string& bytes);
  void feed_ends(AttemptsEnded ended);
  void feed_outbox(OutboxRead read);
  void measure(const std::shared_ptr<PilotLink>& link);
  void closed(const std::shared_ptr<PilotLink>& link);
  wire::ToPilot& outgoing(const std::shared_ptr<PilotLink>& link);
  std::shared_ptr<PilotLink> link_of(const PilotId& pilot) const;

  // engine_actions.cpp
  void perform(const Action& action);
  void send(const SendLeases& action);
  void welcome(const WelcomePilot& action);
  void fence(const FencePilot& action);
  template <class ToOnePilot>
  void pass_on(const ToOnePilot& action);
  /// The answer to a command, for the engine that gave it.
  std::function<void(const Event&)> answer();
  /// What the model of the store has against it, if anything.
  void must(const std::string& wrong);
  void record(const Noted& noted);
  void note(std::vector<Noted> noted);

  World& world_;
  std::unique_ptr<Engine> engine_;
  std::uint64_t life_{0};  ///< what was begun in an earlier one comes to nothing
  std::optional<Time> timer_at_;
  std::vector<Site> configured_;
  std::string left_out_;

  Saved saved_;
  struct Entry {
    bool start{false};  ///< of the engine
    Action action;
  };
  std::vector<Entry> log_;  ///< all that `saved_` was made of
  std::size_t on_disk_{0};  ///< so much of it survives the machine
  Order order_;
  bool shipping_soon_{false};
  bool waiting_for_company_{false};
  std::vector<Action> in_flight_;
  std::uint64_t commits_{0};
  Time commits_fail_until_{};
  Time commits_slow_until_{};

  std::map<PilotId, std::shared_ptr<PilotLink>> links_, unproven_;
  std::map<std::uint64_t, Time> sent_;  ///< in this life, by epoch

  std::optional<std::uint64_t> actions_left_;
  Duration down_{};
  bool power_{false};
  bool stopping_{false};  ///< in order
};

}  // namespace hpcbatch::clockwork
