// Looks at what others have in the queues, and plays on from there beside the loop's thread.
#pragma once

#include "foresight/watch/queue_watch.hpp"
#include "loop/asio.hpp"
#include "loop/call_lane.hpp"
#include "model/event.hpp"
#include "sites/site_client.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

/// On the loop's thread.
class QueueWatching {
 public:
  using Answer = std::function<void(QueueForeseen)>;
  explicit QueueWatching(asio::io_context& loop);

  /// `queued`: names of our allocations that wait there.
  void look(SiteClient& site, std::set<std::string> queued, Time now, Answer answer);

 private:
  struct Question {
    std::string site;
    std::vector<Shape> shapes;
    std::set<std::string> queued;
    Time now{};
  };
  void foresee(Question question, WatchedQueue queue, Answer answer);

  std::map<std::string, std::shared_ptr<foresight::QueueWatch>> watches_;  ///< by site; used on the
                                                                           ///< lane alone
  CallLane lane_;
};

}  // namespace hpcbatch
