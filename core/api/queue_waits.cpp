#include "api/queue_waits.hpp"

#include "api/answers/to_json.hpp"
#include "engine/sites/site_forecast.hpp"

#include <algorithm>
#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::object score_json(const foresight::WaitScore& score) {
  json::object object{{"waits", score.count}, {"by_90", score.by_most}};
  if (score.halves == 0) return object;
  object["by_50"] = score.by_half;
  object["log_mse"] = score.mean_square;
  object["within_2x"] = score.within_2;
  object["within_3x"] = score.within_3;
  return object;
}

/// `queue`: it says so as it is; `model`: what was learned of the site's past; `waits`: those before
/// it do.
const char* word_for(StartBound::By by) {
  switch (by) {
    case StartBound::By::Queue:
      return "queue";
    case StartBound::By::Model:
      return "model";
    case StartBound::By::Waits:
      break;
  }
  return "waits";
}

void put_bound(json::object& object, const StartBound& bound) {
  object["by"] = word_for(bound.by);
  if (bound.from != 0) object["from"] = bound.from;
  if (bound.half) object["start_50"] = seconds(*bound.half);
  object["start_90"] = seconds(bound.most);
}

std::string why_unknown(const SiteState& site, const ShapeState& shape, bool starts_nothing) {
  if (starts_nothing) return shape.blind;
  const std::string by_waits = shape.wait_history.is_trusted()
                                   ? "ten allocations must have waited before anything is said"
                                   : "the last bounds did not hold, so none is told";
  const std::string& blind = site.look.trouble.empty() ? shape.blind : site.look.trouble;
  return blind.empty() || site.look.is_impossible ? by_waits : blind + "; " + by_waits;
}

json::object shape_waits_json(const SiteTable& table, const SiteState& site,
                              const ShapeState& shape, Time now) {
  const foresight::WaitHistory& history = shape.wait_history;
  json::object object{
      {"site", site.site.name}, {"shape", shape.shape.name}, {"waits", history.count()}};
  const SiteForecast forecast(table, now);
  if (const auto bound = forecast.next_start(shape)) {
    put_bound(object, *bound);
    if (bound->half) object["wait_50"] = seconds(std::max(Duration{}, *bound->half - now));
    object["wait_90"] = seconds(std::max(Duration{}, bound->most - now));
    const std::string& trouble =
        site.look.model_trouble.empty() ? shape.blind : site.look.model_trouble;
    if (bound->by == StartBound::By::Waits && !trouble.empty()) object["message"] = trouble;
  } else {
    object["message"] = why_unknown(site, shape, forecast.starts_nothing(shape));
  }
  if (history.score().count != 0) object["score"] = score_json(history.score());
  json::array told;
  for (const auto& [by, score] : shape.told) {
    json::object one = score_json(score);
    one["by"] = word_for(by);
    told.push_back(std::move(one));
  }
  if (!told.empty()) object["told"] = std::move(told);
  return object;
}

json::object queued_json(const SiteForecast& forecast, const AllocationEntry& entry, Time now) {
  const Allocation& facts = entry.facts;
  json::object object{{"name", facts.id.name},
                      {"site", facts.site},
                      {"shape", facts.shape},
                      {"waited", seconds(now - facts.opened)}};
  if (!facts.number.empty()) object["batch_id"] = facts.number;
  if (const auto bound = forecast.start_bound(entry)) put_bound(object, *bound);
  return object;
}

json::object queue_waits_json(const SiteTable& table, Time now) {
  json::array shapes, queued;
  for (const SiteState& site : table.sites()) {
    for (const ShapeState& shape : site.shapes)
      shapes.push_back(shape_waits_json(table, site, shape, now));
  }
  const SiteForecast forecast(table, now);
  for (const auto& [id, entry] : table.allocations()) {
    if (entry.facts.state == AllocationState::Queued)
      queued.push_back(queued_json(forecast, entry, now));
  }
  return {{"shapes", std::move(shapes)}, {"queued", std::move(queued)}};
}

}  // namespace

void add_queue_waits(Routes& routes, Runtime& runtime) {
  routes.add("GET", "waits", [&runtime](const HttpRequest&, const ReplyPtr& reply) {
    reply->answer(200, queue_waits_json(runtime.engine().sites(), runtime.now()));
  });
}

}  // namespace hpcbatch
