// What changes tasks that there are: cancel, hold, release, retry, and their input.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

#include <string>

namespace hpcbatch {

class Changes {
 public:
  explicit Changes(Runtime& runtime) : runtime_(runtime) {}
  void add_to(Routes& routes);

 private:
  void change(const std::string& verb, const HttpRequest& request, const ReplyPtr& reply);
  void take_input(TaskId task, const HttpRequest& request, const ReplyPtr& reply);

  Runtime& runtime_;
};

}  // namespace hpcbatch
