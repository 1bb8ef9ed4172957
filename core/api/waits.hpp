// Requests that wait for tasks to end: `wait`, and the feed of changes.
#pragma once

#include "api/routes.hpp"
#include "loop/asio.hpp"
#include "runtime/runtime.hpp"

#include <functional>
#include <list>
#include <memory>
#include <string>

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

// `/v1/readers`: programs that wait for what they have submitted say that they are there.

/// Called when a reader is there once more than before, or once less.
using HearReader = std::function<void(const std::string& reader, bool is_there)>;

/// A reader is there while such a request of it is open.  The request has no answer and no time
/// limit: a program that is busy or stopped for hours could not ask again.  The kernel closes the
/// connection of a program that was killed.  `heard` is called on the loop's thread, and never once
/// `routes` is gone.
void add_readers(Routes& routes, HearReader heard);

}  // namespace hpcbatch
