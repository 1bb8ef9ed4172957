// Pilots that have a link to us: what they say becomes events, what the engine decides is said to
// them, and output and input of their tasks go to and from those who ask for it.
#pragma once

#include "engine/engine.hpp"
#include "links/followers.hpp"
#include "links/link_server.hpp"
#include "links/pilot_messages.hpp"
#include "loop/clock.hpp"
#include "loop/writer.hpp"
#include "model/event.hpp"
#include "runtime/staging_of_tasks.hpp"
#include "sites/site_client.hpp"
#include "wire/wire.pb.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

struct TaskSignal {
  enum class To : std::uint8_t { All, First, Steps };  ///< as wire::Signal counts them
  std::uint32_t number{};
  To to{To::All};
};

/// On the loop's thread.
class PilotLinks {
 public:
  /// All that is named outlives this; the engine is there before anything is called.
  struct Dependencies {
    const std::unique_ptr<Engine>& engine;
    const Clock& clock;
    std::function<void(WaitsFor, Writer::Then)> after;
    std::function<void(const Event&)> feed;
    std::function<void(AttemptsEnded)> feed_ends;
  };
  explicit PilotLinks(Dependencies around) : dependencies_(std::move(around)) {}

  // For the listener.
  void received(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message);
  void closed(const std::shared_ptr<PilotLink>& link);

  /// Null where the pilot has none, or is not welcomed yet.
  PilotLink* find(const PilotId& pilot) const;
  std::weak_ptr<PilotLink> linked(const PilotId& pilot) const;
  /// How the pilot reaches this engine, in its own words; empty where it does not.
  std::string way_of(const PilotId& pilot) const;
  void welcome(const WelcomePilot& action);
  void confirm(const ConfirmPilot& action);
  void fence(const FencePilot& action);
  /// When it is as sure as its order asks.
  template <class ToOnePilot>
  void pass_on(const ToOnePilot& action) {
    dependencies_.after(order_of(action), [this, action] { tell(action); });
  }
  /// At once.
  template <class ToOnePilot>
  void tell(const ToOnePilot& action) {
    if (PilotLink* link = find(action.pilot)) say(action, link->outgoing());
  }

  FollowerId follow(Follower follower);
  void unfollow(FollowerId id);
  const Follower* follower(FollowerId id) { return followers_.find(id); }
  bool is_followed(ArrayId array) const;
  /// Those of the leases whose output somebody follows.
  void follow_leased(PilotLink& link, const PilotId& pilot, const std::vector<LeaseRun>& runs);
  void input(TaskId task, InputQueue::Piece piece);
  /// Of the chosen tasks those that run at a pilot with a link are sent the signal, once and if they
  /// still run when it arrives; how many.
  std::size_t signal(const std::vector<Selection>& chosen, const TaskSignal& asked);
  /// Some of its tasks have, and that is on disk.
  void have_ended(ArrayId array);

 private:
  using Links = std::map<PilotId, std::shared_ptr<PilotLink>>;
  void registered(const std::shared_ptr<PilotLink>& link, const wire::ToEngine& message);
  /// What of it the pilot may not say; nothing of such a message is acted upon.
  std::optional<std::string> overstep(const PilotId& pilot, const wire::ToEngine& message) const;
  bool holds(const PilotId& pilot, const AttemptId& attempt) const;
  void put_out(const std::shared_ptr<PilotLink>& link, std::string why);
  void measure(const std::shared_ptr<PilotLink>& link, std::uint64_t heartbeat);
  void follow_again(const PilotId& pilot);
  void ask_for_output(const Lease& lease);
  void send_input(TaskId task);
  /// Behind the leases that were saved before, so that a pilot hears things in the order in which
  /// they were decided. `bytes`: what `say_it` adds at most.
  void tell_pilot(const PilotId& pilot, std::function<void(wire::ToPilot&)> say_it,
                  std::size_t bytes = 64);

  Dependencies dependencies_;
  Links links_;     ///< welcomed
  Links unproven_;  ///< registered, not answered yet
  Followers followers_;
  InputQueue inputs_;
};

// Leases on their way to a pilot: saved, read with their recipes on the store's lane, sent.

/// On the loop's thread.
class LeaseSender {
 public:
  /// All that is named outlives this.
  struct Dependencies {
    Writer& writer;
    const std::unique_ptr<Engine>& engine;
    const std::map<std::string, std::unique_ptr<SiteClient>>& sites;
    StagingOfTasks& staging;
    PilotLinks& links;
    std::function<std::string(const PilotId&)> site_of;
  };
  explicit LeaseSender(Dependencies around) : dependencies_(std::move(around)) {}

  void send(const SendLeases& action);

 private:
  Dependencies dependencies_;
};

}  // namespace hpcbatch
