// Which request is whose: method and path, once each.
#pragma once

#include "api/http/http_server.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

using ReplyPtr = std::shared_ptr<HttpReply>;

/// On the loop's thread.
class Routes {
 public:
  using Handle = std::function<void(HttpRequest&, const ReplyPtr&)>;

  /// `path` is that behind /v1/, as `tasks/*/log`; `*` is any one word.  Of several that match the
  /// one that was added first is called.  `handle` answers, now or later, or throws BadRequest.
  void add(std::string_view method, std::string_view path, Handle handle);
  /// Answers itself where no route matches.
  void handle(HttpRequest& request, const ReplyPtr& reply) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> path;
    Handle handle;
  };
  std::vector<Route> routes_;
};

}  // namespace hpcbatch
