// The engine itself: how it is, stopped, kept, copied.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hpcbatch {

/// What `GET /v1/engine` says of how the engine was started.
struct EngineFacts {
  std::string home;
  std::function<std::string()> socket;  ///< where it listens now
  std::string configuration;            ///< empty: there is none
  Time started{};
  std::uint32_t umask{};  ///< as it was when the engine started: for tasks whose client names none
  std::vector<std::string> notify{};  ///< who is told of what people submit and say nobody
};

/// How long the engine stays without work, as whoever runs it decides.
struct StayOrGo {
  std::function<void()> stay;  ///< it does not end for lack of work any more
  std::function<bool()> ends_when_idle;
};

class EngineRoutes {
 public:
  EngineRoutes(Runtime& runtime, const EngineFacts& facts, StayOrGo stay_or_go)
      : runtime_(runtime), facts_(facts), stay_or_go_(std::move(stay_or_go)) {}
  void add_to(Routes& routes);

 private:
  void stop(const HttpRequest& request, const ReplyPtr& reply);
  void back_up(const HttpRequest& request, const ReplyPtr& reply);
  boost::json::object engine_json() const;

  Runtime& runtime_;
  const EngineFacts& facts_;
  StayOrGo stay_or_go_;
};

}  // namespace hpcbatch
