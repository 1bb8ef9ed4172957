// Everything that goes to the store, in order and in groups; what waits for it is done when it is
// written, or on disk.
#pragma once

#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "model/action.hpp"
#include "model/histogram.hpp"
#include "planted/planted.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hpcbatch {

// What goes into one commit, and who is told of it when: collects while the store is busy, so that
// the more there is to do the more one commit carries.  No store, clock or thread: the writer
// drives it in real time, the tests of the whole system in theirs.

/// `Write` is what is saved, `Read` what is done with the store between two commits.
template <class Write, class Read>
class GroupCommit {
 public:
  using Then = std::function<void()>;
  struct Batch {
    std::vector<Write> writes;
    std::vector<std::pair<Read, Then>> written;
    std::vector<Then> durable;
    bool synced{false};  ///< nobody is told that something is written before it is on disk
    /// Most leases and reads do not wait for the disk: whoever does gets a commit of his own behind
    /// them.
    bool in_two_steps() const { return !synced && !written.empty() && !durable.empty(); }
    bool needs_disk() const { return synced || !durable.empty(); }
    bool needs_commit() const { return !writes.empty() || needs_disk(); }
  };
  /// When the next batch is to be taken: now behind what the loop has in hand, or within
  /// `kCompany`.
  enum class Due : std::uint8_t { Never, Soon, Now };
  static constexpr std::chrono::milliseconds kCompany{20};

  void add(Write write) { gathering_.writes.push_back(std::move(write)); }
  /// `on_disk`: in the same order, and all of it is on disk then.
  void after_written(Read read, Then then, bool on_disk = false) {
    gathering_.written.emplace_back(std::move(read), std::move(then));
    gathering_.synced = gathering_.synced || on_disk;
  }
  void after_durable(Then then, bool haste) {
    gathering_.durable.push_back(std::move(then));
    haste_ = haste_ || haste;
  }

  Due due() const {
    if (busy_ || (!gathering_.needs_commit() && gathering_.written.empty())) return Due::Never;
    return haste_ || !gathering_.written.empty() ? Due::Now : Due::Soon;
  }
  /// The store is busy with it until `done`.
  Batch take() {
    busy_ = true;
    haste_ = false;
    return std::exchange(gathering_, {});
  }
  void done() { busy_ = false; }
  /// Nothing is gathered and nothing under way.
  bool is_quiet() const {
    return !busy_ && !gathering_.needs_commit() && gathering_.written.empty();
  }

 private:
  Batch gathering_;
  bool haste_{false};
  bool busy_{false};
};

/// Called from the loop; the store itself is used on a lane of its own.  There is one connection to
/// it: SQLite keeps the index of a write-ahead log that nobody shares in that connection's memory,
/// and shared memory is what breaks on network file systems.  So a store that cannot be written
/// must not hold the lane: it is tried again later, and looks go in between.
class Writer {
 public:
  using Then = std::function<void()>;
  /// `fatal` is told when nothing can be believed any more; `trouble` when the store cannot take
  /// anything for now, and again, without a value, when it can.
  Writer(asio::io_context& loop, std::unique_ptr<store::Store> store,
         std::function<void(std::string)> fatal,
         std::function<void(std::optional<std::string>)> trouble);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void add(store::Write write);
  /// On the loop, once everything added so far is written (it then survives our death, not the
  /// machine's; `on_disk`: that, too).  `on_lane` runs on the store's lane before.
  void after_written(std::function<void(store::Store&)> on_lane, Then then, bool on_disk = false);
  /// On the loop, once everything added so far is on disk.  Without haste it may wait up to 20 ms
  /// for company.
  void after_durable(Then then, bool haste);
  /// Reads on the store's lane, behind everything added so far, then goes on with the answer on the
  /// loop.
  template <class Read, class Answer>
  void read(Read read, Answer answer) {
    using T = std::invoke_result_t<Read, store::Store&>;
    auto result = std::make_shared<std::optional<T>>();
    after_written([result, read = std::move(read)](
                      store::Store& store) mutable { result->emplace(read(store)); },
                  [result, answer = std::move(answer)]() mutable { answer(std::move(**result)); });
  }
  /// The same, but what it reads does not wait for a store that cannot be written: it is then as
  /// the last commit has left it, and whatever was added since has been told to nobody.
  template <class Read, class Answer>
  void look(Read read, Answer answer) {
    using T = std::invoke_result_t<Read, store::Store&>;
    auto result = std::make_shared<std::optional<T>>();
    add(std::make_shared<Look>(
        Look{[result, read = std::move(read)](store::Store& store) mutable {
               result->emplace(read(store));
             },
             [result, answer = std::move(answer)]() mutable { answer(std::move(**result)); }}));
  }
  /// Of all that is written.
  const store::Totals& totals() const { return totals_; }
  const store::Happened& happened() const { return happened_; }
  /// How long commits took, those that failed left out.
  const DiskHistogram& commit_times() const { return commit_times_; }
  /// How long the store has been at what it is doing now; zero: it does nothing.
  std::chrono::steady_clock::duration busy_for() const;

 private:
  struct Look {
    std::function<void(store::Store&)> on_lane;
    Then then;
    bool begun{false};  ///< used on the lane alone
    bool told{false};   ///< used on the loop alone
  };
  void add(const std::shared_ptr<Look>& look);
  void look_at_once(const std::shared_ptr<Look>& look);
  using Order = GroupCommit<store::Write, std::function<void(store::Store&)>>;
  /// Whatever is due is shipped, now or soon.
  void look();
  void hurry();
  void ship();
  /// What is left to be done of what was shipped.
  struct Work {
    Order::Batch batch;
    bool is_written{false};         ///< and those who wait for that are told
    std::vector<double> commits{};  ///< how many seconds each took; at most two
  };
  void work(const std::shared_ptr<Work>& work);
  bool commit(const std::shared_ptr<Work>& work, const std::vector<store::Write>& writes,
              bool durable);
  void tell_written(const std::shared_ptr<Work>& work);
  void stuck(const std::shared_ptr<Work>& work, const std::string& why);
  void unstuck();
  void cannot_read(const std::exception& error);
  void fail(const std::string& why);

  asio::io_context& loop_;
  std::unique_ptr<store::Store> store_;
  std::function<void(std::string)> fatal_;
  std::function<void(std::optional<std::string>)> trouble_;
  Order order_;
  bool shipping_soon_{false};
  bool waiting_for_company_{false};
  asio::steady_timer company_;
  asio::steady_timer again_;
  bool is_stuck_{false};
  std::vector<std::weak_ptr<Look>> looks_;  ///< that wait for their turn, and some that had it
  std::size_t looks_kept_{64};
  store::Totals totals_;
  store::Happened happened_;
  DiskHistogram commit_times_;
  std::optional<std::chrono::steady_clock::time_point> busy_since_;
  Lane lane_;
};

// What of the store each action waits for before it is done: the order on which the promises about
// crashes rest.
//
// A lease is written before it is sent, so that no kill of the engine loses one; one of a task that
// starts once at most is on disk, for a loss of power must not lose it.  Whatever tells somebody that something is safe (answers, acknowledgements, an allocation's intent) waits for the
// disk.  What is said to a pilot goes behind the leases that were decided before it.

enum class WaitsFor : std::uint8_t {
  Nothing,
  Written,        ///< all saved before is written: it survives our death, not the machine's
  WrittenToDisk,  ///< the same in its turn among those, and on disk
  Disk,           ///< all saved before is on disk
  DiskAtOnce      ///< somebody waits for it: no time is spent on waiting for company
};

template <class T, class... Others>
concept OneOf = (std::is_same_v<T, Others> || ...);

/// What is saved, and what nobody takes for a promise.
template <OneOf<SaveArrays, SaveHold, SaveTerms, SaveLeases, DropLeases, SaveCancelled,
                SavePermitted, SaveFailedAttempt, SaveResult, SaveResults, SaveArrayEnded,
                SaveRevived, SaveAllocation, SaveKeep, SaveReader, AnswerRefused, WelcomePilot,
                StayPilot, FencePilot, CancelAllocation, PollSite, LookAtQueue, ReadOutbox>
              NoPromise>
WaitsFor order_of(const NoPromise&) {
  return WaitsFor::Nothing;
}
template <OneOf<RecallLeases, KillAttempt, PermitPublish, StageIn> BehindLeases>
WaitsFor order_of(const BehindLeases&) {
  return WaitsFor::Written;
}
/// A file, too, is removed only when what it says is on disk here.
template <OneOf<TellEnded, ConfirmPilot, ForgetAllocation> OnDisk>
WaitsFor order_of(const OnDisk&) {
  return WaitsFor::Disk;
}
/// A pilot ends behind its acknowledgements: it must not keep what it was about to be told.
template <OneOf<AnswerCount, EndPilot, OpenAllocation, EngineIdle> Awaited>
WaitsFor order_of(const Awaited&) {
  return WaitsFor::DiskAtOnce;
}
inline WaitsFor order_of(const SendLeases& action) {
  if (HPCBATCH_PLANTED(lease_sent_before_written)) return WaitsFor::Nothing;
  const bool any_once = std::any_of(action.leases.begin(), action.leases.end(),
                                    [](const SendLeases::Lease& lease) { return lease.runs_once; });
  return any_once ? WaitsFor::WrittenToDisk : WaitsFor::Written;
}
inline WaitsFor order_of(const AcknowledgeResults&) {
  return HPCBATCH_PLANTED(acknowledged_before_commit) ? WaitsFor::Nothing : WaitsFor::Disk;
}
inline WaitsFor order_of(const AnswerSubmit&) {
  return HPCBATCH_PLANTED(answered_before_commit) ? WaitsFor::Nothing : WaitsFor::DiskAtOnce;
}
inline WaitsFor order_of(const Action& action) {
  return std::visit([](const auto& a) { return order_of(a); }, action);
}

}  // namespace hpcbatch
