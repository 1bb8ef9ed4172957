// What there is besides tasks and sites: allocations, pilots, tools.
#pragma once

#include "api/make/make_submission.hpp"
#include "api/routes.hpp"
#include "model/resources.hpp"
#include "runtime/runtime.hpp"
#include "tools/tool_registry.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace hpcbatch {

/// Of `/v1/THINGS` all, of `/v1/THINGS/NAME` the one of that name.
void answer_listing(const HttpRequest& request, const ReplyPtr& reply, const char* plural,
                    boost::json::array things);
void put_amounts(boost::json::object& object, const Resources& amounts);

class Listings {
 public:
  Listings(Runtime& runtime, ToolRegistry& tools, ToolCalls& calls)
      : runtime_(runtime), tools_(tools), calls_(calls) {}
  void add_to(Routes& routes);

 private:
  void allocations(const HttpRequest& request, const ReplyPtr& reply);
  void pilots(const HttpRequest& request, const ReplyPtr& reply);
  void tools(const HttpRequest& request, const ReplyPtr& reply);
  void check_tool(const std::string& name, const ReplyPtr& reply);

  Runtime& runtime_;
  ToolRegistry& tools_;
  ToolCalls& calls_;
};

}  // namespace hpcbatch
