// What runs used: `GET /v1/report`.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

namespace hpcbatch {

class Reports {
 public:
  explicit Reports(Runtime& runtime) : runtime_(runtime) {}
  void add_to(Routes& routes);

 private:
  void report(const HttpRequest& request, const ReplyPtr& reply);

  Runtime& runtime_;
};

}  // namespace hpcbatch
