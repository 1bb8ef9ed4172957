// What is decided about one service: when it is started and renewed, which request it gets, and
// when its tasks are started without it.  No process, socket or clock is touched here.
//
//   down -> starting -> ready -> down, and again as long as somebody wants it
//
// A start that takes long holds up nobody: leases of tasks that wait for it go back, and come again
// when it is ready.  How long it may take is learned from starts before, and from signs of life.
//
// One request at a time is with the service, so that a service that dies or hangs has failed just
// that one, which is then tried again.  Nothing of a task has run before its process is let go, so
// that a request may be tried as often as it takes.
#pragma once

#include "pilot/policy/attempt.hpp"
#include "pilot/policy/decide.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

struct ServiceTerms {
  std::string name;
  std::uint64_t memory{};    // bytes; 0: no bound
  Duration idle{};           // zero: never
  std::uint32_t requests{};  // 0: no bound
  Duration start{};          // without a sign of life while it starts; zero: as is usual
  Duration longest_start{};  // that was seen before
};

class ServiceSupervisor {
 public:
  struct Start {};
  struct Ask {
    AttemptId id;
  };
  /// The process is to go: its end is not told by `died`.
  struct End {
    std::string why;
  };
  /// The task is started as any other, and told why.
  struct Plain {
    AttemptId id;
    std::string why;
  };
  /// The lease goes back: its service takes a while to be ready.
  struct HandBack {
    AttemptId id;
  };
  using Action = std::variant<Start, Ask, End, Plain, HandBack>;

  explicit ServiceSupervisor(ServiceTerms terms)
      : terms_(std::move(terms)), longest_start_(terms_.longest_start) {}

  /// A task wants it.
  void wanted(const AttemptId& id);
  /// That task wants it no more.
  void forget(const AttemptId& id);
  /// A task that runs will be followed by one that wants it: it starts, or stays, meanwhile.
  void foreseen(const AttemptId& id);
  void foreseen_no_more(const AttemptId& id, Time now);

  /// The process could not be started.
  void not_started(const std::string& why, Time now);
  /// Another that imports the same on this node goes first.
  void not_yet(Time now);
  bool may_wait_for_turn(Time now) const;
  /// Tasks that it has a part in run, or no more do.
  void works(bool is_working, Time now);
  /// It says that its start goes on.
  void lives(Time now);
  void ready(Time now);
  /// It starts itself anew, because what it has loaded has changed.
  void renewing(Time now);
  /// The request that it was asked for is a process now, or was refused for the task's own sake.
  void served(Time now);
  /// It gave that request up, and lives.
  void unserved(const std::string& why, Time now);
  void died(const std::string& why, Time now);
  void uses(std::uint64_t memory, Time now);
  /// Its room is wanted; ignored where it has a request.
  void end_asked();
  void suspended(Duration time);

  std::vector<Action> decide(Time now);
  std::optional<Time> next() const;

  bool is_down() const { return state_ == State::Down; }
  Duration longest_start() const { return longest_start_; }
  bool is_starting() const { return state_ == State::Starting; }
  /// It has been starting for a while.
  bool takes_long() const { return takes_long_; }
  /// Tasks went back that will come again when it is ready.
  bool is_awaited() const { return is_awaited_; }
  /// Nobody wants it, it does not run, and there is nothing to remember of it.
  bool is_forgettable(Time now) const;

 private:
  enum class State { Down, Starting, Ready };
  struct Request {
    AttemptId id;
    unsigned failures{0};
    bool is_wanted{true};
  };

  void go_down();
  void failed(const std::string& why, Time now);
  void give_up(const std::string& why, Time now);
  void begin_start(Time now);
  void watch_start(Time now);
  void hand_back(Time now);
  Duration patience() const;
  Time start_deadline() const;

  ServiceTerms terms_;
  State state_{State::Down};
  Time since_{};                 // of the state, of the last request, or of the last sign of life
  Time begun_{};                 // its process
  Time first_begun_{};           // it was to start: another may have gone first
  std::optional<Time> turn_at_;  // then it is asked again whether it may start
  Duration longest_start_;
  bool takes_long_{false};
  bool is_awaited_{false};
  bool is_working_{false};
  std::set<AttemptId> foreseen_;  // by these tasks
  std::deque<Request> waiting_;
  std::optional<Request> asked_;
  std::uint32_t served_{0};  // by this process
  bool too_large_{false};
  unsigned failures_in_a_row_{0};
  std::optional<Time> not_before_;  // it was given up; until then nobody waits for it
  Duration pause_{};
  std::string given_up_;  // why
  std::vector<Action> actions_;
};

}  // namespace hpcbatch::pilot
