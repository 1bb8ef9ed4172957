// Everything that goes to the store, in order and in groups; what waits for it is done when it is
// written, or on disk.
#pragma once

#include "runtime/asio.hpp"
#include "runtime/group_commit.hpp"
#include "runtime/lane.hpp"
#include "store/store.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// Called from the loop; the store itself is used on a lane of its own.
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
  ~Writer();

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

 private:
  using Order = GroupCommit<store::Write, std::function<void(store::Store&)>>;
  /// Whatever is due is shipped, now or soon.
  void look();
  void hurry();
  void ship();
  void work(const std::shared_ptr<Order::Batch>& batch);
  bool commit(const std::vector<store::Write>& writes, bool durable);

  asio::io_context& loop_;
  std::unique_ptr<store::Store> store_;
  std::function<void(std::string)> fatal_;
  std::function<void(std::optional<std::string>)> trouble_;
  Order order_;
  bool shipping_soon_{false};
  bool waiting_for_company_{false};
  asio::steady_timer company_;
  std::atomic<bool> ending_{false};
  Lane lane_;
};

}  // namespace hpcbatch
