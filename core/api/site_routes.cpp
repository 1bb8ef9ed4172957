#include "api/api.hpp"

#include "api/answers/to_json.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "api/routes.hpp"
#include "documents/site_proposal.hpp"
#include "engine/sites/site_forecast.hpp"
#include "foresight/learned/features.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kLongestPast = std::chrono::hours{24};

json::object shape_json(const SiteTable& table, const SiteState& site, const ShapeState& state,
                        Time now) {
  const Shape& shape = state.shape;
  json::object object{
      {"name", shape.name},
      {"nodes", shape.nodes},
      {"max_queued", shape.max_queued == 0 ? site.site.max_queued : shape.max_queued},
      {"max_running", shape.max_running == 0 ? site.site.max_running : shape.max_running}};
  if (!shape.partition.empty()) object["partition"] = shape.partition;
  put_amounts(object, shape.capacity);
  if (shape.walltime != Duration{}) object["walltime"] = seconds(shape.walltime);
  if (!shape.tags.empty()) object["tags"] = json::array(shape.tags.begin(), shape.tags.end());
  std::uint64_t queued = 0, running = 0;
  for (const auto& [id, entry] : table.allocations()) {
    if (entry.facts.site != site.site.name || entry.facts.shape != shape.name ||
        entry.facts.state == AllocationState::Ended)
      continue;
    ++(entry.facts.state == AllocationState::Running ? running : queued);
  }
  object["queued"] = queued;
  object["running"] = running;
  const SiteForecast forecast(table, now);
  if (const auto wait = forecast.expected_wait(site, state);
      wait && !forecast.starts_nothing(state))
    object["expected_wait"] = seconds(*wait);
  return object;
}

json::array nodes_json(const NodeTrust& trust, const std::string& site) {
  json::array nodes;
  for (const auto& [name, node] : trust.nodes()) {
    if (name.site != site) continue;
    json::object line{{"name", name.node},
                      {"state", node.bad_until ? "avoided" : "doubted"},
                      {"message", trust.why(name)}};
    if (node.bad_until) line["until"] = seconds(*node.bad_until);
    nodes.push_back(std::move(line));
  }
  return nodes;
}

/// By key its values, or "any".
void put_choices(json::object& object, const Site& site) {
  if (!site.choices || site.choices->empty()) return;
  json::object choices;
  for (const auto& [key, values] : *site.choices) {
    choices[key] = values.empty() ? json::value("any")
                                  : json::value(json::array(values.begin(), values.end()));
  }
  object["choices"] = std::move(choices);
}

/// What keeps the whole site from working; empty: nothing.
std::string trouble_of(const SiteState& state, const std::string& waits_for) {
  if (!state.trouble.empty()) return state.trouble;
  if (!waits_for.empty()) return waits_for;
  if (state.shapes.empty()) {
    return fmt::format(
        "it has no shapes, so no task can run there; 'hpcbatch sites check {}' "
        "proposes some",
        state.site.name);
  }
  if (state.workspace_trouble.empty()) return {};
  return fmt::format("{} of {} cannot use the workspace: {}", state.workspace_trouble.size(),
                     show_count(state.workspace_trouble.size() + state.writers.size(), "pilot"),
                     state.workspace_trouble.begin()->second);
}

/// `waits_for`: what has no answer there; empty: nothing.
json::object site_json(const Engine& engine, const SiteState& state, const std::string& waits_for,
                       Time now) {
  const SiteTable& table = engine.sites();
  const Site& site = state.site;
  json::object object{{"name", site.name},
                      {"scheduler", site.scheduler},
                      {"transport", site.transport},
                      {"workspace", site.workspace},
                      {"max_queued", site.max_queued},
                      {"max_running", site.max_running}};
  if (!site.options.empty())
    object["options"] = json::array(site.options.begin(), site.options.end());
  put_choices(object, site);
  std::uint64_t queued = 0, running = 0;
  json::array shapes;
  if (!waits_for.empty()) object["waits_for"] = waits_for;
  std::string message = trouble_of(state, waits_for);
  std::optional<Time> until;
  for (const ShapeState& shape : state.shapes) {
    json::object line = shape_json(table, state, shape, now);
    queued += line.at("queued").to_number<std::uint64_t>();
    running += line.at("running").to_number<std::uint64_t>();
    if (!shape.may_be_asked(now)) {
      line["until"] = seconds(*shape.back_off.until);
      line["message"] = shape.back_off.why;
      // What one task has chosen is no trouble of the site.
      if (shape.shape.made_for.empty()) {
        if (message.empty()) message = "shape " + shape.shape.name + ": " + shape.back_off.why;
        until = until ? std::min(*until, *shape.back_off.until) : *shape.back_off.until;
      }
    }
    shapes.push_back(std::move(line));
  }
  object["queued"] = queued;
  object["running"] = running;
  object["state"] = message.empty() ? "ok" : "waiting";
  json::array nodes = nodes_json(engine.trust(), site.name);
  if (message.empty() && !nodes.empty()) {
    const json::object& first = nodes[0].as_object();
    message =
        fmt::format("node {} is {}: {}", first.at("name").as_string().c_str(),
                    first.at("state").as_string().c_str(), first.at("message").as_string().c_str());
  }
  if (!nodes.empty()) object["nodes"] = std::move(nodes);
  if (!message.empty()) object["message"] = message;
  if (until) object["until"] = seconds(*until);
  object["shapes"] = std::move(shapes);
  return object;
}

json::object copy_json(const SiteFiles::Figures& files) {
  const SiteFiles::Figures::Copy& copy = *files.copy;
  return {{"path", copy.path},
          {"direction", copy.is_sent ? "in" : "out"},
          {"bytes", copy.moved},
          {"of_bytes", copy.size},
          {"seconds", seconds(std::chrono::duration_cast<Duration>(copy.since))},
          {"text", files.copy_in_words()}};
}

json::object files_json(const SiteFiles::Figures& files) {
  json::object object{{"bytes_sent", files.bytes_sent},   {"files_sent", files.files_sent},
                      {"bytes_taken", files.bytes_taken}, {"files_taken", files.files_taken},
                      {"store_bytes", files.store_bytes}, {"store_files", files.store_files},
                      {"to_send", files.to_send},         {"to_take", files.to_take}};
  if (files.copy) object["copy"] = copy_json(files);
  if (!files.trouble.empty()) object["message"] = files.trouble;
  return object;
}

json::object site_report_json(const Site& site, const SiteReport& report) {
  json::array lines;
  bool ok = true;
  for (const SiteCheck& check : report.checks) {
    ok = ok && check.ok;
    lines.push_back({{"check", check.check}, {"ok", check.ok}, {"text", check.text}});
  }
  json::object object{{"ok", ok}, {"checks", std::move(lines)}};
  if (!report.survey) return object;
  const SiteProposal proposal = propose_site(site, *report.survey);
  json::array notes;
  for (const std::string& note : proposal.notes) notes.emplace_back(note);
  object["notes"] = std::move(notes);
  if (!proposal.yaml.empty()) object["proposal"] = proposal.yaml;
  return object;
}

json::object cleaning_json(const Cleaning& cleaning, bool is_trial) {
  json::array files;
  for (const WorkspaceFile& file : cleaning.gone)
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"age", seconds(file.age)}});
  return {{"dry_run", is_trial},
          {"removed", std::move(files)},
          {"removed_bytes", cleaning.gone_bytes},
          {"kept_files", cleaning.kept_files},
          {"kept_bytes", cleaning.kept_bytes}};
}

}  // namespace

void SiteRoutes::add_to(Routes& routes) {
  for (const char* path : {"sites", "sites/*"})
    routes.add("GET", path,
               [this](HttpRequest& request, const ReplyPtr& reply) { show(request, reply); });
  routes.add("POST", "sites/*/check", [this](HttpRequest& request, const ReplyPtr& reply) {
    check(request.path[2], reply);
  });
  routes.add("POST", "sites/*/clean",
             [this](HttpRequest& request, const ReplyPtr& reply) { clean(request, reply); });
  routes.add("POST", "sites/*/resume", [this](HttpRequest& request, const ReplyPtr& reply) {
    resume(request.path[2], reply);
  });
  routes.add("GET", "sites/*/past-jobs",
             [this](HttpRequest& request, const ReplyPtr& reply) { list_past(request, reply); });
}

void SiteRoutes::check(const std::string& name, const ReplyPtr& reply) {
  SiteClient* client = runtime_.site(name);
  if (!client) return reply->error(404, fmt::format("there is no site '{}'", name));
  client->check([reply, site = client->site()](const SiteReport& report) {
    reply->answer(200, site_report_json(site, report));
  });
}

void SiteRoutes::resume(const std::string& name, const ReplyPtr& reply) {
  runtime_.requests().resume(name, [reply](const Result<Changed>& done) {
    if (!done) return reply->error(404, done.error().text);
    reply->answer(200, {{"shapes", done->tasks}});
  });
}

void SiteRoutes::list_past(const HttpRequest& request, const ReplyPtr& reply) {
  const std::string& name = request.path[2];
  SiteClient* client = runtime_.site(name);
  if (!client) return reply->error(404, fmt::format("there is no site '{}'", name));
  const std::chrono::seconds from{bytes_in(request, "from", 0, "moment in seconds since 1970")};
  const std::chrono::seconds until{bytes_in(request, "until", 0, "moment in seconds since 1970")};
  if (until <= from || until - from > kLongestPast)
    throw BadRequest(
        "'from' and 'until' must be moments, in seconds since 1970, a day apart at most");
  client->list_past(from, until, [reply, name](const Result<PastJobs>& past) {
    if (!past) {
      const bool is_final = past.error().kind == Error::Kind::Rejected;
      return reply->error(is_final ? 400 : 503,
                          fmt::format("site {}: {}", name, past.error().text));
    }
    reply->answer(200, {{"jobs", foresight::past_text(past->jobs)}, {"cut", past->is_cut}});
  });
}

void SiteRoutes::show(const HttpRequest& request, const ReplyPtr& reply) {
  const SiteTable& table = runtime_.engine().sites();
  json::array things;
  for (const SiteState& state : table.sites()) {
    const SiteClient* client = runtime_.site(state.site.name);
    json::object object = site_json(runtime_.engine(), state,
                                    client ? client->waits_for() : std::string(), runtime_.now());
    if (const SiteFiles* files = runtime_.files_of(state.site.name))
      object["files"] = files_json(files->figures());
    things.push_back(std::move(object));
  }
  answer_listing(request, reply, "sites", std::move(things));
}

void SiteRoutes::clean(const HttpRequest& request, const ReplyPtr& reply) {
  const json::value body = parse_body(request.body);
  bool is_trial = false;
  for (const auto& [key, value] : body.get_object()) {
    if (key != "dry_run" || !value.is_bool())
      throw BadRequest("known is: 'dry_run', which is true or false");
    is_trial = value.get_bool();
  }
  const std::string& name = request.path[2];
  if (!runtime_.site(name)) return reply->error(404, fmt::format("there is no site '{}'", name));
  runtime_.housekeeping().clean(
      name, is_trial, [reply, is_trial, name](const Result<Cleaning>& cleaning) {
        if (!cleaning)
          return reply->error(503,
                              fmt::format("cannot clean the workspace of {}: {}; look at it with "
                                          "'hpcbatch sites check {}'",
                                          name, cleaning.error().text, name));
        reply->answer(200, cleaning_json(*cleaning, is_trial));
      });
}

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

std::string_view word_for(StartBound::By by) {
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

void add_queue_waits(Routes& routes, Runtime& runtime) {
  routes.add("GET", "waits", [&runtime](const HttpRequest&, const ReplyPtr& reply) {
    reply->answer(200, queue_waits_json(runtime.engine().sites(), runtime.now()));
  });
}

}  // namespace hpcbatch
