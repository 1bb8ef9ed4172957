#include "api/engine_routes.hpp"

#include "api/answers/to_json.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::object rejected_peers_json(const RejectedPeers& rejected_peers) {
  json::object object;
  for (const auto& [reason, count] : rejected_peers.counts()) object[reason] = count;
  return object;
}

StopAsked::Mode mode_of(const json::object& body) {
  const json::value* said = body.if_contains("mode");
  if (!said) return StopAsked::Mode::Leave;
  const std::string_view mode = said->is_string() ? std::string_view(said->get_string()) : "?";
  if (mode == "leave") return StopAsked::Mode::Leave;
  if (mode == "drain") return StopAsked::Mode::Drain;
  if (mode == "now") return StopAsked::Mode::Now;
  throw BadRequest("'mode' must be leave, drain or now");
}

std::uint64_t queued_pilots(const SiteTable& sites) {
  std::uint64_t queued = 0;
  for (const auto& [id, entry] : sites.allocations()) {
    if (entry.facts.state == AllocationState::Ended ||
        entry.facts.state == AllocationState::Running)
      continue;
    const Shape* shape = sites.shape_of(id);
    queued += shape ? shape->nodes : 1;
  }
  return queued;
}

}  // namespace

void EngineRoutes::add_to(Routes& routes) {
  routes.add("GET", "engine",
             [this](HttpRequest&, const ReplyPtr& reply) { reply->answer(200, engine_json()); });
  routes.add("POST", "engine/stop",
             [this](HttpRequest& request, const ReplyPtr& reply) { stop(request, reply); });
  routes.add("POST", "engine/stay", [this](HttpRequest&, const ReplyPtr& reply) {
    stay_or_go_.stay();
    reply->answer(200, {{"stays", true}});
  });
  routes.add("POST", "engine/backup",
             [this](HttpRequest& request, const ReplyPtr& reply) { back_up(request, reply); });
}

void EngineRoutes::stop(const HttpRequest& request, const ReplyPtr& reply) {
  const json::value body = parse_body(request.body);
  const StopAsked::Mode how = mode_of(body.get_object());
  // Cancelling must be on the disk before the batch systems hear of it.
  if (const auto trouble = runtime_.store_refuses(); trouble && how != StopAsked::Mode::Leave) {
    return reply->error(503, *trouble +
                                 "; end the trouble first, or stop the engine without --now "
                                 "and --drain: pilots then go on and are found again");
  }
  const bool is_done = runtime_.stop(how);
  reply->answer(200, {{"stopping", true}, {"too_late", !is_done}});
}

void EngineRoutes::back_up(const HttpRequest& request, const ReplyPtr& reply) {
  const json::value body = parse_body(request.body);
  const json::value* file = body.get_object().if_contains("file");
  if (!file || !file->is_string() || !std::string_view(file->get_string()).starts_with('/'))
    throw BadRequest("'file' must be an absolute path");
  const std::string path(file->get_string());
  runtime_.housekeeping().back_up(path, [reply, path](const Result<void>& done) {
    if (done) return reply->answer(200, {{"file", path}});
    reply->error(done.error().kind == Error::Kind::Transient ? 503 : 400, done.error().text);
  });
}

/// Without the store, which may hang or be full: that is what it is asked for then.
json::object EngineRoutes::engine_json() const {
  const Engine& engine = runtime_.engine();
  const TaskCounts counts = engine.counts();
  const auto& totals = runtime_.totals();
  std::uint64_t running = 0;
  for (const auto& [id, pilot] : engine.pilots().all()) running += pilot.connected ? 1 : 0;
  const auto trouble = runtime_.store_trouble();
  json::object object{
      {"pid", ::getpid()},
      {"socket", facts_.socket()},
      {"version", HPCBATCH_VERSION},
      {"uptime_s", seconds(runtime_.now() - facts_.started)},
      {"started_at", seconds(facts_.started)},
      {"ends_when_idle", stay_or_go_.ends_when_idle()},
      {"state", trouble                ? "trouble"
                : engine.is_draining() ? "draining"
                                       : "running"},
      {"tasks", json::object{{"waiting", counts.waiting},
                             {"held", counts.held},
                             {"running", counts.running},
                             {"unknown", counts.unknown},
                             {"done", totals.done},
                             {"failed", totals.failed},
                             {"cancelled", totals.cancelled}}},
      {"pilots", json::object{{"queued", queued_pilots(engine.sites())}, {"running", running}}},
      {"rejected_peers", rejected_peers_json(runtime_.rejected_peers())},
      {"sites", engine.sites().sites().size()},
      {"home", facts_.home}};
  if (!facts_.configuration.empty()) object["config"] = facts_.configuration;
  if (trouble) object["message"] = *trouble;
  return object;
}

}  // namespace hpcbatch
