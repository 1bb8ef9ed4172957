// Sites: what they are like, checked, cleaned.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

#include <string>
#include <string_view>

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

// `/v1/keeps`: shapes of which pilots are kept, whatever there is for them to do.

/// `GET` lists them; `POST` keeps pilots of a shape until a time, or no longer.
void add_keeps(Routes& routes, Runtime& runtime);

// `GET /v1/waits`: how long allocations wait in the queues of their batch systems.

/// Each shape of each site, with how long an allocation that is asked for now would wait and how
/// good such words were, and the allocations that wait.
void add_queue_waits(Routes& routes, Runtime& runtime);

/// `queue`: it says so as it is; `model`: what was learned of the site's past; `waits`: those before
/// it do.
std::string_view word_for(StartBound::By by);

}  // namespace hpcbatch
