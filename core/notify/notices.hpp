// Tells those who asked for it when a submission has ended.
//
// Who is to be told lies in the store from the submit on, and is forgotten only when the program that
// carries the message has ended well: a message comes at least once, and twice where the engine dies
// between these two.
#pragma once

#include "loop/asio.hpp"
#include "notify/delivery.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// On the loop's thread.
class Notices {
 public:
  /// The runtime outlives this.
  explicit Notices(Runtime& runtime);
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;
  ~Notices();

  /// With what earlier engines have left.
  void begin();
  /// Nobody is about to be told.
  bool is_quiet() const;

 private:
  /// All messages to one target, one after another: what ends meanwhile goes into the next.
  struct Carrier {
    explicit Carrier(asio::io_context& loop) : timer(loop) {}
    NotifyTarget target;
    std::deque<store::Notice> waiting;
    bool is_busy{false};    ///< with a message
    bool is_paused{false};  ///< until the timer
    std::uint32_t failures{0};
    asio::steady_timer timer;
    std::shared_ptr<Delivery> delivery{};
  };
  using Batch = std::vector<store::Notice>;

  void add(const store::Notice& notice);
  void ended(ArrayId array);
  bool has_ended(const store::Notice& notice) const;
  void carry(const store::Notice& notice);
  void go(const std::string& target);
  void send(const std::string& target, const Batch& batch,
            const std::vector<std::optional<store::SubmissionEnd>>& ends);
  void sent(const std::string& target, const Batch& batch, const std::optional<std::string>& why);
  void pause(const std::string& target, std::chrono::seconds time);
  /// `told`: who was, for the log; empty: nobody.
  void forget(const Batch& batch, const std::string& told);

  Runtime& runtime_;
  std::string own_mailbox_;                     ///< the user's name
  std::multimap<ArrayId, store::Notice> open_;  ///< by their first arrays
  std::map<std::string, Carrier> carriers_;     ///< by their targets as they were written
};

}  // namespace hpcbatch
