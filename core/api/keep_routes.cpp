#include "api/keep_routes.hpp"

#include "api/answers/to_json.hpp"
#include "api/read/bad_request.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "engine/sites/site_forecast.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMostKept = 10'000;
// A year is longer than anybody plans, and than any timer counts.
constexpr Duration kLongestKeep = std::chrono::hours{24 * 366};

json::object keep_json(const SiteTable& table, const ShapeState& shape, Time now) {
  const Keep& keep = *shape.keep;
  std::uint64_t queued = 0, running = 0;
  for (const auto& [id, entry] : table.allocations()) {
    if (entry.facts.site != keep.site || entry.facts.shape != keep.shape ||
        entry.facts.state == AllocationState::Ended)
      continue;
    ++(entry.facts.state == AllocationState::Running ? running : queued);
  }
  json::object object{{"site", keep.site},
                      {"shape", keep.shape},
                      {"allocations", keep.allocations},
                      {"since", seconds(keep.since)},
                      {"until", seconds(keep.until)},
                      {"running", running},
                      {"queued", queued},
                      {"missing", seconds(keep.missing)},
                      {"beyond", seconds(keep.beyond)}};
  if (!shape.may_be_asked(now)) {
    object["paused_until"] = seconds(*shape.back_off.until);
    object["message"] = shape.back_off.why;
  }
  if (const auto next = SiteForecast(table, now).next_start(shape)) {
    if (next->half) object["wait_50"] = seconds(std::max(Duration{}, *next->half - now));
    object["wait_90"] = seconds(std::max(Duration{}, next->most - now));
  }
  return object;
}

json::object keeps_json(const SiteTable& table, Time now) {
  json::array keeps;
  for (const SiteState& site : table.sites()) {
    for (const ShapeState& shape : site.shapes)
      if (shape.keep) keeps.push_back(keep_json(table, shape, now));
  }
  return {{"keeps", std::move(keeps)}};
}

KeepAsked read_keep(const json::object& body, Time now) {
  KeepAsked asked{.request = {}, .site = "", .shape = "", .allocations = 1, .until = now};
  for (const auto& [key, value] : body) {
    if (key == "site" || key == "shape") {
      (key == "site" ? asked.site : asked.shape) = text_of(value, "'" + std::string(key) + "'");
    } else if (key == "allocations") {
      asked.allocations =
          static_cast<std::uint32_t>(whole_of(value, "'allocations'", 0, kMostKept));
    } else if (key == "until") {
      // No amount, which json_values bounds.
      if (!value.is_number()) throw BadRequest("'until' must be a number");
      const auto until = value.to_number<double>();
      const double ahead = until - std::chrono::duration<double>(now.time_since_epoch()).count();
      if (!(ahead <= std::chrono::duration<double>(kLongestKeep).count()))
        throw BadRequest("'until' must be a moment within a year, in seconds since 1970");
      asked.until = now + std::chrono::duration_cast<Duration>(
                              std::chrono::duration<double>(std::max(ahead, -1.0)));
    } else {
      throw BadRequest("a keep has no '" + std::string(key) +
                       "'; it has site, shape, allocations and until");
    }
  }
  if (asked.shape.empty()) throw BadRequest("'shape' must name the shape to keep pilots of");
  return asked;
}

void keep(const HttpRequest& request, const ReplyPtr& reply, Runtime& runtime) {
  const json::value body = parse_body(request.body);
  KeepAsked asked = read_keep(body.as_object(), runtime.now());
  if (runtime.engine().is_draining())
    return reply->error(503, "the engine is being stopped; keep pilots when it runs again");
  if (const auto trouble = runtime.store_refuses()) return reply->error(503, *trouble);
  runtime.requests().keep(std::move(asked), [&runtime, reply](const Result<Changed>& done) {
    if (!done) return reply->error(400, done.error().text);
    reply->answer(200, keeps_json(runtime.engine().sites(), runtime.now()));
  });
}

}  // namespace

void add_keeps(Routes& routes, Runtime& runtime) {
  routes.add("GET", "keeps", [&runtime](const HttpRequest&, const ReplyPtr& reply) {
    reply->answer(200, keeps_json(runtime.engine().sites(), runtime.now()));
  });
  routes.add("POST", "keeps", [&runtime](const HttpRequest& request, const ReplyPtr& reply) {
    keep(request, reply, runtime);
  });
}

}  // namespace hpcbatch
