// Sites: what they are like, checked, cleaned.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

#include <string>

namespace hpcbatch {

class SiteRoutes {
 public:
  explicit SiteRoutes(Runtime& runtime) : runtime_(runtime) {}
  void add_to(Routes& routes);

 private:
  void show(const HttpRequest& request, const ReplyPtr& reply);
  void check(const std::string& name, const ReplyPtr& reply);
  void clean(const HttpRequest& request, const ReplyPtr& reply);
  void resume(const std::string& name, const ReplyPtr& reply);
  void list_past(const HttpRequest& request, const ReplyPtr& reply);

  Runtime& runtime_;
};

}  // namespace hpcbatch
