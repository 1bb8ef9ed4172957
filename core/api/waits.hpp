// Requests that wait for tasks to end: `wait`, and the feed of changes.
#pragma once

#include "api/routes.hpp"
#include "loop/asio.hpp"
#include "runtime/runtime.hpp"

#include <functional>
#include <list>
#include <memory>

namespace hpcbatch {

class Waits {
 public:
  explicit Waits(Runtime& runtime);
  void add_to(Routes& routes);

 private:
  struct Waiter {
    std::function<bool(bool timed_out)> check;  ///< true: answered
    asio::steady_timer timer;
    bool answered{false};
  };
  void wait(const HttpRequest& request, const ReplyPtr& reply);
  void events(const HttpRequest& request, const ReplyPtr& reply);
  /// Given up where the client goes.
  void wait_for_ends(double seconds, const ReplyPtr& reply, std::function<bool(bool)> check);

  Runtime& runtime_;
  std::list<std::shared_ptr<Waiter>> waiters_;
};

}  // namespace hpcbatch
