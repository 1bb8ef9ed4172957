#include "api/readers.hpp"

#include "api/query.hpp"
#include "api/read/bad_request.hpp"
#include "loop/asio.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace hpcbatch {
namespace {

// The connection says who has gone; a timer that counts longer may not be kept.
constexpr double kLongestHold = 86400;

/// Only its timer owns it.  With the loop both go, later than the runtime: nothing is said then.
class Held : public std::enable_shared_from_this<Held> {
 public:
  Held(Runtime& runtime, std::string reader, ReplyPtr reply)
      : runtime_(runtime),
        reader_(std::move(reader)),
        reply_(std::move(reply)),
        timer_(runtime.loop()) {}

  void hold(double seconds) {
    runtime_.requests().reader_heard(reader_, true);
    reply_->on_gone([weak = weak_from_this()] {
      if (const auto held = weak.lock()) held->over();
    });
    timer_.expires_after(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (error) return;
      self->over();
      self->reply_->answer(200, {{"reader", self->reader_}});
    });
  }

 private:
  void over() {
    if (std::exchange(is_over_, true)) return;
    timer_.cancel();
    runtime_.requests().reader_heard(reader_, false);
  }

  Runtime& runtime_;
  std::string reader_;
  ReplyPtr reply_;
  asio::steady_timer timer_;
  bool is_over_{false};
};

}  // namespace

void add_readers(Routes& routes, Runtime& runtime) {
  routes.add("GET", "readers", [&runtime](const HttpRequest& request, const ReplyPtr& reply) {
    std::string reader = text_in(request, "reader");
    if (reader.empty()) throw BadRequest("'reader' is missing: the one that submits have named");
    const double wait = std::min(seconds_in(request, "wait", 0), kLongestHold);
    std::make_shared<Held>(runtime, std::move(reader), reply)->hold(wait);
  });
}

}  // namespace hpcbatch
