// Everything that goes to the store, in order and in groups; what waits for it is done when it is
// written, or on disk.
#pragma once

#include "loop/asio.hpp"
#include "loop/group_commit.hpp"
#include "loop/lane.hpp"
#include "store/store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

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
  /// machine's).  `on_lane` runs on the store's lane before.
  void after_written(std::function<void(store::Store&)> on_lane, Then then);
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
    bool is_written{false};  ///< and those who wait for that are told
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
  std::optional<std::chrono::steady_clock::time_point> busy_since_;
  Lane lane_;
};

}  // namespace hpcbatch
