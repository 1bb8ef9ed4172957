// What is decided about one service: when it is started and renewed, which request it gets, and
// when its tasks are started without it.  No process, socket or clock is touched here.
//
//   down -> starting -> ready -> down, and again as long as somebody wants it
//
// One request at a time is with the service, so that a service that dies or hangs has failed just
// that one, which is then tried again.  Nothing of a task has run before its process is let go, so
// that a request may be tried as often as it takes.
#pragma once

#include "attempt.hpp"
#include "decide.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

struct ServiceTerms {
  std::string name;
  std::uint64_t memory{};    // bytes; 0: no bound
  Duration idle{};           // zero: never
  std::uint32_t requests{};  // 0: no bound
};

class ServiceCare {
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
  using Action = std::variant<Start, Ask, End, Plain>;

  explicit ServiceCare(ServiceTerms terms) : terms_(std::move(terms)) {}

  /// A task wants it.
  void wanted(const AttemptId& id);
  /// That task wants it no more.
  void forget(const AttemptId& id);

  /// The process could not be started.
  void not_started(const std::string& why, Time now);
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

  ServiceTerms terms_;
  State state_{State::Down};
  Time since_{};  // of the state, or of the last request
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
