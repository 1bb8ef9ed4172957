// What a pilot decides: which lease starts next, what is ended and why, when it leaves.  Events and
// the time go in, actions come out; no process, file, link or clock is touched here.
//
//   a lease   waiting -> running -> (staged -> publishing ->) delivered -> forgotten
//             waiting -> returned
//   a pilot   working -> draining -> leaving -> gone
//
// A lease is forgotten when its result was acknowledged.  A pilot that drains starts nothing more,
// one that leaves is empty and waits for acknowledgements.
#pragma once

#include "failure/failure.hpp"
#include "pilot/base/clock.hpp"
#include "pilot/policy/attempt.hpp"
#include "pilot/policy/leaving.hpp"
#include "pilot/policy/room.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

/// How a task is told that its time ends, as its user said.
struct Farewell {
  Duration grace{};     ///< between TERM and KILL; zero: not said
  int early_signal{0};  ///< 0: none
  Duration early{};     ///< so long before its limit, or the pilot's end where that is earlier
};

struct Lease {
  AttemptId id;
  Amounts granted;
  Duration time_limit{};  // zero: none
  bool begins_later{
      false};  // it waits for its service or its image: its time does not run before `began`
  CpuWish cpus{};
  Farewell farewell{};
  bool holds_room{false};  ///< for a task whose head is another pilot; never given back unasked
};

struct Terms {
  std::optional<Time> usable_until;  // walltime less margin
  Duration margin{};
  Duration idle{};         // zero: never ends for having nothing to do
  Duration until_found{};  // for so long it is not idle while it has not found the engine
};

struct Launch {
  AttemptId id;
  Placement placement;
  std::optional<Duration> left;  ///< until it is asked to end; no value: it is not
};
/// Which processes of a task: all, its first alone, or those that an srun in it has started.
enum class SignalTo : std::uint8_t { All, First, Steps };
struct Signal {
  AttemptId id;
  int number{};
  SignalTo to{SignalTo::All};
};
/// Give the lease back unstarted.
struct Return {
  AttemptId id;
};
/// Ask the task to end, or (`by_force`) end it and all its descendants.  `failure` is what its
/// result is to say, with `message`; none: what was said before.
struct Stop {
  AttemptId id;
  bool by_force{};
  std::optional<Failure> failure;
  std::string message;
};
struct Publish {
  AttemptId id;
};
/// Staged outputs are not to be published: remove them.
struct Discard {
  AttemptId id;
};
/// Something that never ran, or whose outputs may not be published, ends with this failure: deliver
/// that.
struct Fail {
  AttemptId id;
  Failure failure{Failure::EngineError};
  std::string message;
};
/// The engine has the result, or wants none: forget it.
struct Forget {
  AttemptId id;
};
struct SayLeaving {
  std::string reason;
};
struct WriteOutbox {};
struct Exit {
  int code{};
};
using Action = std::variant<Launch, Return, Signal, Stop, Publish, Discard, Fail, Forget,
                            SayLeaving, WriteOutbox, Exit>;

/// Why it may not go on.
enum class LeaveCause {
  EngineEnds,
  Fenced,           ///< the engine has given its tasks to others
  GivenUp,          ///< the pilot file is gone
  ChecksFailed,     ///< of its node
  WorkspaceFailed,  ///< what tasks say can be kept no more
  GpusFailed,       ///< the last of those for which it was asked
  Terminated,       ///< by the batch system or a person
  KeeperDied        ///< the process whose end is its own
};

class Decide {
 public:
  enum class State { Waiting, Running, Staged, Publishing, Delivered };

  Decide(Room room, Terms terms, Time now);

  // What the engine asks.  A repeat changes nothing.
  void leased(const Lease& lease);
  void recalled(std::uint32_t count);
  void kill_asked(const AttemptId& id, Failure failure, bool silent, Time now);
  void signal_asked(const Signal& signal);
  void publish_allowed(const AttemptId& id);
  void acknowledged(const AttemptId& id, Time now);

  /// Until then having nothing to do is no reason to leave.
  void stay_until(Time until, Time now) { idleness_.stays_until(until, now); }
  void must_leave(LeaveCause cause, Time now);

  // What happened here.
  void welcomed(Time now);
  /// An engine's start has registered this process, and that is on disk there.  The first one is
  /// told to those that come after it.
  void confirmed(std::uint64_t engine_start) {
    if (confirmed_by_ == 0) confirmed_by_ = engine_start;
  }
  std::uint64_t confirmed_by() const { return confirmed_by_; }
  void link_lost();
  /// Nothing can be written to the workspace, which may pass: nothing starts meanwhile, and no
  /// task's time runs.
  void workspace_stuck(Time now);
  void workspace_well(Time now);
  /// Pilot and tasks were stopped for that long: no time has passed for them, nor for their
  /// walltime.
  void suspended(Duration time);
  /// The process of a task that begins later is there.
  void began(const AttemptId& id, Time now);
  /// Nothing of the task has run, and will not soon: its lease goes back.
  void handed_back(const AttemptId& id, Time now);
  /// Something is being made ready here for which leases will come: it is not idle, unless there is
  /// no link by which they could.
  void preparing(bool is_preparing) { preparing_ = is_preparing; }
  /// The task and all its descendants are gone.  `staged`: it waits to publish; else this is its
  /// last result.  False: nobody wants a result of it.
  [[nodiscard]] bool ended(const AttemptId& id, bool staged, std::size_t result_bytes, Time now);
  [[nodiscard]] bool published(const AttemptId& id, std::size_t result_bytes, Time now);
  /// A result from before this process, found in the outbox.
  void found_result(const AttemptId& id, std::size_t result_bytes);
  /// The last WriteOutbox did not succeed.
  void outbox_failed(Time now) { outbox_.failed(now); }
  void over_memory(const AttemptId& id, const std::string& message) {
    end_for(id, Failure::OomTask, message);
  }
  /// It has taken more than its part of a GPU's memory, which others need.
  void over_gpu_memory(const AttemptId& id, const std::string& message) {
    end_for(id, Failure::OomGpu, message);
  }
  /// The GPU of that number is set aside: what runs on it ends, and what it takes to run goes back.
  void gpu_broke(unsigned device, const std::string& why, Time now);
  /// What of the node's capacity is left.
  Amounts capacity() const { return room_.total(); }

  /// Everything to be done now.
  std::vector<Action> decide(Time now);
  /// When to call `decide` again though nothing happened.
  std::optional<Time> next() const;

  std::vector<std::pair<AttemptId, State>> held() const;
  std::optional<State> state_of(const AttemptId& id) const;
  /// Nothing waits here: whatever ends now may leave room unused.
  bool is_short_of_work() const { return counts_.waiting == 0; }
  std::size_t running() const { return counts_.running; }

 private:
  enum class Phase { Working, Draining, Leaving, Gone };
  struct Held {
    State state{State::Waiting};
    std::shared_ptr<const Room::Needs> needs;  // shared with neighbours
    Placement placement;
    Duration time_limit{};
    bool begins_later{false};
    CpuWish cpus;
    Farewell farewell;
    unsigned passed_over{0};
    bool holds_room{false};
    bool silent{false};
    bool stopping{false};
    bool by_force{false};
    std::optional<Time> alarm;          // its time limit, or its second signal
    std::optional<Time> warning;        // its early signal
    bool ends_with_pilot{false};        // earlier than at its limit
    std::optional<Duration> time_left;  // to its time limit, while the workspace is stuck
    std::size_t result_bytes{0};
  };
  using Holds = std::unordered_map<AttemptId, Held, AttemptHash>;

  void engine_ends(Time now);
  void fenced(Time now);
  void given_up();
  void terminated(Time now);
  void keeper_died(Time now);
  void end_for(const AttemptId& id, Failure failure, const std::string& message);
  void return_what_never_fits();
  void start_what_fits(Time now);
  bool fits_in_time(const Held& held, Time now) const;
  void return_waiting();
  void stop_running(Failure failure, const std::string& message, bool by_force, Time now);
  void set_alarm(const AttemptId& id, Held& held, std::optional<Time> time);
  void set_warning(const AttemptId& id, Held& held, std::optional<Time> time);
  std::optional<Time> pilots_end_for(const Held& held) const;
  std::optional<Time> end_of(const Held& held, std::optional<Duration> limit, Time now) const;
  void watch_end(const AttemptId& id, Held& held, std::optional<Duration> limit, Time now);
  Time second_signal(const Held& held, Failure failure, Time now) const;
  void stop(const AttemptId& id, Held& held, Failure failure, const std::string& message,
            bool by_force, Time now);
  void fail_staged(Failure failure, const std::string& message);
  void deliver(const AttemptId& id, Held& held, std::size_t result_bytes);
  void forget(Holds::iterator at);
  void leave(const std::string& reason);
  std::optional<Time> idle_ends() const;
  void due(Time now);
  void leave_if_done(Time now);
  void write_outbox(Time now);
  bool outbox_is_hopeless(Time now) const;
  bool waits_for_workspace() const { return stuck_ && outbox_.owes(); }
  bool has_nothing_to_do() const { return is_empty() && !(preparing_ && linked_); }
  bool is_empty() const {
    return counts_.waiting + counts_.running + counts_.staged + counts_.publishing == 0;
  }
  bool time_is_up(Time now) const {
    return terms_.usable_until && now >= *terms_.usable_until - terms_.margin;
  }
  Time farewell_ends() const;

  Room room_;
  Terms terms_;
  Phase phase_{Phase::Working};
  int exit_code_{0};
  bool linked_{false};
  std::uint64_t confirmed_by_{0};
  bool preparing_{false};
  bool no_engine_{false};  // nobody to wait for: given up, fenced, told to end
  bool checks_failed_{false};
  bool results_wanted_{true};  // false once fenced
  bool stuck_{false};          // the workspace cannot be written
  Idleness idleness_;
  std::optional<Time> empty_since_;
  std::optional<Time>
      haste_since_;  // from then on staged outputs get no more than a few seconds to be allowed
  Holds held_;
  // Neighbours ask for the same.
  struct Granted {
    Amounts amounts;
    std::shared_ptr<const Room::Needs> needs;  // what of it this node counts
  };
  Granted last_granted_;
  std::deque<AttemptId> queue_;  // waiting ones in order, and some that no longer wait
  struct Counts {
    std::size_t waiting{0};
    std::size_t running{0};
    std::size_t staged{0};  // waiting to be allowed
    std::size_t publishing{0};
  };
  Counts counts_;
  Outbox outbox_;
  std::set<std::pair<Time, AttemptId>> alarms_;    // time limits and second signals
  std::set<std::pair<Time, AttemptId>> warnings_;  // early ones
  std::vector<Action> actions_;
};

// What the engine says, as far as it is for what the pilot decides.  Pure.

/// How many neighbours it stands for.
std::uint32_t leased_by(const wire::Start& start);

/// In the order in which it was meant: what is acknowledged and leased before what is taken back.
void apply_message(Decide& decide, const wire::ToPilot& message, Time now);

/// What the pilot holds, for its registration.
void say_held(const Decide& decide, wire::Register& registration);

}  // namespace hpcbatch::pilot
