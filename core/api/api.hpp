// The engine's API: requests in, answers out.  docs/api.md is its contract.
#pragma once

#include "api/changes.hpp"
#include "api/engine_routes.hpp"
#include "api/http/http_server.hpp"
#include "api/listings.hpp"
#include "api/logs.hpp"
#include "api/make/make_submission.hpp"
#include "api/reports.hpp"
#include "api/routes.hpp"
#include "api/site_routes.hpp"
#include "api/submissions.hpp"
#include "api/submit_routes.hpp"
#include "api/task_views.hpp"
#include "api/waits.hpp"
#include "runtime/runtime.hpp"
#include "tools/tool_registry.hpp"

namespace hpcbatch {

/// On the loop's thread.
class Api {
 public:
  Api(Runtime& runtime, ToolRegistry& tools, EngineFacts facts, StayOrGo stay_or_go);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  void handle(HttpRequest request, ReplyPtr reply);
  /// For those whose handlers are no part of this.
  Routes& routes() { return routes_; }
  const EngineFacts& facts() const { return facts_; }
  TaskViews& tasks() { return tasks_; }
  Logs& logs() { return logs_; }
  ToolCalls& tool_calls() { return tool_calls_; }

 private:
  Runtime& runtime_;
  EngineFacts facts_;
  Submissions submissions_;
  TaskViews tasks_;
  Logs logs_;
  ToolCalls tool_calls_;
  SubmitRoutes submits_;
  Waits waits_;
  Changes changes_;
  SiteRoutes sites_;
  Listings listings_;
  Reports reports_;
  EngineRoutes engine_;
  Routes routes_;
  std::uint64_t requests_{0};
};

}  // namespace hpcbatch
