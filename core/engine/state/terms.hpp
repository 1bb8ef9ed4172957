// What many arrays have in common, kept once for all of them, and whether a task that did not
// succeed is tried again.
#pragma once

#include "engine/state/ready_queue.hpp"
#include "engine/trust/node_trust.hpp"
#include "model/ids.hpp"
#include "model/task.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace hpcbatch {

// What many arrays have in common; kept once for all of them.

/// How an array is to be run, as its user said.
struct Terms {
  Needs needs;
  std::int32_t priority{0};
  std::uint32_t retries{0};
  std::uint32_t max_running{0};  ///< 0: no bound
  std::uint32_t give_up_at{0};   ///< failures; 0: never
  bool gives_up_running{false};
  bool streams_input{false};
  std::optional<TaskId> within{};  ///< the task whose command submitted it
  Rare<Course> course{};
  ClassId in_class{};  ///< of the needs
};

class TermsPool {
 public:
  explicit TermsPool(ReadyQueue& queue) : queue_(queue) {}

  std::shared_ptr<const Terms> of(const NewArray& array);
  /// Gives terms back; the last to do so forgets them.
  void release(std::shared_ptr<const Terms> terms);
  std::size_t size() const { return pool_.size(); }
  /// Each set of terms that some array has.
  template <class Look>
  void each(Look look) const {
    for (const auto& terms : pool_) look(*terms);
  }

 private:
  struct Less {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const;
  };

  ReadyQueue& queue_;
  std::set<std::shared_ptr<const Terms>, Less> pool_;
};

// Whether a task that did not succeed is tried again, and who pays for it.

/// What went before, of a task that failed at least once.
struct TaskHistory {
  std::uint32_t attempts{0};
  std::uint32_t charged{0};  ///< of the user's retries
  std::uint32_t unexplained_deaths{0};
  std::array<std::uint8_t, kFailures> free{};  ///< retries without asking, by class
  std::optional<Duration> needs_more_than;  ///< of remaining walltime: a pilot's end cut it there
  std::string evidence;                     ///< of the unexplained deaths
  std::uint8_t elsewhere{0};                ///< retries because its node was in doubt
  bool doubted{false};                      ///< the last attempt failed at such a node
  NodeName failed_at{};                     ///< the last attempt, and
  bool keeps_away{false};                   ///< it is not tried there again while it can be helped
  bool guess_failed{false};  ///< it needs what was asked for, and not what was guessed
  /// Retries because it had too little memory, or time, which its course may give it more of.
  std::uint8_t ooms{0}, timeouts{0};
};

struct Ending {
  Failure failure{Failure::Ok};
  bool unexplained{false};   ///< its pilot died and nobody knows why
  bool alone{true};          ///< and it was the only suspect that it had
  bool doubted{false};       ///< its node is in doubt: the task is to be tried at another first
  NodeName failed_at{};      ///< a node that can be the cause
  bool keeps_away{false};    ///< the next attempt is to be at another
  bool guess_failed{false};  ///< it had what was guessed of memory, and that was too little
  bool runs_once{false};     ///< but for its user's retries: it has begun, or may have
  std::optional<Duration>
      had;  ///< remaining walltime when it started, where the pilot's end cut it
};

enum class Verdict : std::uint8_t { Final, RetryFree, RetryCharged, SetAside };

/// What a task that a pilot's end cut is taken to need: a little more than it had.
constexpr Duration more_than(Duration had) {
  return had + had / 100 + Duration{1};
}

/// A task that a pilot's end cut asks for no more than any shape can give, with room for the time that
/// a fresh pilot takes to start: pilots end late, so that what it had may be more.
void note_longest(TaskHistory& history, Duration longest);

/// Ways in which a task ends that had too little because that was guessed: beside others on a GPU it
/// is slower too.
constexpr bool may_be_by_guess(Failure failure) {
  return failure == Failure::OomTask || failure == Failure::OomGpu || failure == Failure::TimeTask;
}

/// `longest` is the most remaining walltime that any shape can give the task; no value: no bound.
Verdict judge(const Ending& ending, const TaskHistory& history, std::uint32_t retries,
              bool streams_input, std::optional<Duration> longest);

}  // namespace hpcbatch
