#include "api/queue_waits.hpp"

#include "api/answers/to_json.hpp"
#include "engine/sites/site_outlook.hpp"

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::object score_json(const foresight::WaitScore& score) {
  return {{"waits", score.count},        {"by_50", score.by_half},
          {"by_90", score.by_most},      {"log_mse", score.mean_square},
          {"within_2x", score.within_2}, {"within_3x", score.within_3}};
}

json::object shape_waits_json(const std::string& site, const ShapeState& shape, Time now) {
  const foresight::WaitHistory& history = shape.wait_history;
  json::object object{{"site", site}, {"shape", shape.shape.name}, {"waits", history.count()}};
  if (const auto bound = history.bound()) {
    object["from"] = bound->from;
    object["wait_50"] = bound->half;
    object["wait_90"] = bound->most;
    object["start_50"] = seconds(now + std::chrono::seconds(bound->half));
    object["start_90"] = seconds(now + std::chrono::seconds(bound->most));
  } else {
    object["message"] = history.is_trusted()
                            ? "ten allocations must have waited before anything is said"
                            : "the last bounds did not hold, so none is told";
  }
  if (history.score().count != 0) object["score"] = score_json(history.score());
  return object;
}

json::object queued_json(const SiteOutlook& outlook, const AllocationEntry& entry, Time now) {
  const Allocation& facts = entry.facts;
  json::object object{{"name", facts.id.name},
                      {"site", facts.site},
                      {"shape", facts.shape},
                      {"waited", seconds(now - facts.opened)}};
  if (!facts.number.empty()) object["batch_id"] = facts.number;
  if (const auto bound = outlook.start_bound(entry)) {
    object["from"] = bound->from;
    object["start_50"] = seconds(bound->half);
    object["start_90"] = seconds(bound->most);
  }
  return object;
}

json::object queue_waits_json(const SiteBook& book, Time now) {
  json::array shapes, queued;
  for (const SiteState& site : book.sites()) {
    for (const ShapeState& shape : site.shapes)
      shapes.push_back(shape_waits_json(site.site.name, shape, now));
  }
  const SiteOutlook outlook(book, now);
  for (const auto& [id, entry] : book.allocations()) {
    if (entry.facts.state == AllocationState::Queued)
      queued.push_back(queued_json(outlook, entry, now));
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
