// What there is besides tasks: sites, allocations, pilots, tools, drop boxes, the engine itself.
#include "api/api.hpp"
#include "api/to_json.hpp"
#include "documents/site_proposal.hpp"
#include "documents/spelling.hpp"

#include <boost/json/value_from.hpp>

#include <fmt/format.h>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::object rejected_peers_json(const RejectedPeers& rejected_peers) {
  json::object object;
  for (const auto& [reason, count] : rejected_peers.counts()) object[reason] = count;
  return object;
}

void put_amounts(json::object& object, const Resources& amounts) {
  object["cpus"] = amounts.get(kCpus).value();
  if (const Amount memory = amounts.get(kMemory); memory != Amount{})
    object["memory"] = memory.whole();
  if (auto gpus = gpus_json(amounts); !gpus.empty()) object["gpus"] = std::move(gpus);
}

json::object shape_json(const SiteBook& book, const SiteState& site, const ShapeState& state,
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
  for (const auto& [id, entry] : book.allocations()) {
    if (entry.facts.site != site.site.name || entry.facts.shape != shape.name ||
        entry.facts.state == AllocationState::Ended)
      continue;
    ++(entry.facts.state == AllocationState::Running ? running : queued);
  }
  object["queued"] = queued;
  object["running"] = running;
  if (const auto wait = book.expected_wait(site, state, now))
    object["expected_wait"] = seconds(*wait);
  return object;
}

json::array nodes_json(const NodeTrust& trust, const std::string& site) {
  json::array nodes;
  for (const auto& [name, node] : trust.nodes()) {
    if (name.site != site) continue;
    json::object line{{"name", name.node},
                      {"state", node.bad_until ? "avoided" : "doubted"},
                      {"message", valid_utf8(trust.why(name))}};
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

json::object site_json(const Engine& engine, const SiteState& state, Time now) {
  const SiteBook& book = engine.sites();
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
  std::string message = state.trouble;
  if (message.empty() && state.shapes.empty())
    message = fmt::format(
        "it has no shapes, so no task can run there; 'hpcbatch sites check {}' "
        "proposes some",
        site.name);
  if (message.empty() && !state.workspace_trouble.empty()) {
    message =
        fmt::format("{} of {} pilots cannot use the workspace: {}", state.workspace_trouble.size(),
                    state.workspace_trouble.size() + state.writers.size(),
                    state.workspace_trouble.begin()->second);
  }
  std::optional<Time> until;
  for (const ShapeState& shape : state.shapes) {
    json::object line = shape_json(book, state, shape, now);
    queued += line.at("queued").to_number<std::uint64_t>();
    running += line.at("running").to_number<std::uint64_t>();
    if (!book.may_ask(shape, now)) {
      line["until"] = seconds(*shape.back_off.until);
      line["message"] = valid_utf8(shape.back_off.why);
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
  if (!message.empty()) object["message"] = valid_utf8(message);
  if (until) object["until"] = seconds(*until);
  object["shapes"] = std::move(shapes);
  return object;
}

json::object files_json(const SiteFiles::Figures& files) {
  json::object object{{"bytes_sent", files.bytes_sent},   {"files_sent", files.files_sent},
                      {"bytes_taken", files.bytes_taken}, {"files_taken", files.files_taken},
                      {"store_bytes", files.store_bytes}, {"store_files", files.store_files}};
  if (!files.trouble.empty()) object["message"] = valid_utf8(files.trouble);
  return object;
}

/// Neither the batch system nor a pilot of it says now what has become of it.
bool is_unknown(const SiteBook& book, const AllocationEntry& live) {
  const SiteState* site = book.site(live.facts.site);
  return live.facts.state != AllocationState::Ended && site && !site->trouble.empty() &&
         live.facts.pilots_seen == live.pilots_away;
}

json::object allocation_json(const SiteBook& book, const Allocation& facts,
                             const AllocationEntry* live) {
  json::object object{{"name", facts.id.name},
                      {"site", facts.site},
                      {"shape", facts.shape},
                      {"state", std::string(to_string(facts.state))},
                      {"submitted_at", seconds(facts.opened)}};
  if (!facts.reason.empty()) object["message"] = valid_utf8(facts.reason);
  if (!facts.number.empty()) object["batch_id"] = facts.number;
  if (facts.running_since) object["started_at"] = seconds(*facts.running_since);
  if (facts.ended) object["ended_at"] = seconds(*facts.ended);
  if (live && live->suspended_at && !facts.ended) {
    object["state"] = "suspended";
    object["suspended_at"] = seconds(*live->suspended_at);
  }
  if (live && is_unknown(book, *live)) {
    object["state"] = "unknown";
    object["seen_at"] = seconds(live->seen_at);
    object["message"] = valid_utf8(
        fmt::format("was {}; {}", to_string(facts.state), book.site(facts.site)->trouble));
  }
  if (live && live->time_left) object["ends_at"] = seconds(live->seen_at + *live->time_left);
  return object;
}

json::object pilot_json(const PilotState& pilot, const PilotTable& table, const std::string& way) {
  std::uint64_t running = 0;
  for (const TaskId task : pilot.leases) {
    const Lease* lease = table.lease(task);
    if (lease && lease->state != Lease::State::Sent) ++running;
  }
  const char* state = !pilot.connected                ? "unknown"
                      : pilot.leaving || pilot.ending ? "leaving"
                      : running == 0                  ? "idle"
                                                      : "running";
  json::object object{
      {"name", to_string(pilot.id)}, {"site", pilot.site}, {"allocation", pilot.id.allocation.name},
      {"node", pilot.node},          {"state", state},     {"tasks", running}};
  put_amounts(object, pilot.capacity);
  if (!way.empty()) object["link"] = valid_utf8(way);
  if (pilot.end) object["ends_at"] = seconds(*pilot.end);
  if (!pilot.workspace_trouble.empty()) object["message"] = valid_utf8(pilot.workspace_trouble);
  if (!pilot.leaving_reason.empty()) object["message"] = valid_utf8(pilot.leaving_reason);
  return object;
}

json::object tool_json(const ToolShelf::Listing& listing) {
  json::object object{{"name", listing.name}, {"file", listing.path}};
  if (!listing.tool) {
    object["error"] = valid_utf8(listing.error);
    return object;
  }
  const ToolFile& tool = *listing.tool;
  static constexpr const char* kTypes[] = {"string", "integer", "number", "boolean"};
  object["version"] = tool.version;
  object["description"] = tool.summary;
  object["interpreter"] = tool.plugin;
  json::object parameters;
  for (const ParameterDeclaration& parameter : tool.parameters) {
    json::object one{{"type", kTypes[static_cast<int>(parameter.type)]}};
    if (parameter.default_value) one["default"] = *parameter.default_value;
    if (!parameter.choices.empty())
      one["choices"] = json::array(parameter.choices.begin(), parameter.choices.end());
    if (!parameter.description.empty()) one["description"] = parameter.description;
    parameters[parameter.name] = std::move(one);
  }
  object["parameters"] = std::move(parameters);
  json::object inputs;
  for (const InputDeclaration& input : tool.inputs)
    inputs[input.name] = {{"type", input.many ? "files" : "file"}, {"optional", input.optional}};
  object["inputs"] = std::move(inputs);
  json::object outputs;
  for (const OutputDeclaration& output : tool.outputs)
    outputs[output.name] = {{"file", output.staged}, {"optional", output.optional}};
  object["outputs"] = std::move(outputs);
  json::object resources;
  const auto put = [&](const char* name, const std::optional<ToolAmount>& amount) {
    if (amount) resources[name] = amount->expression.text();
  };
  put("cpus", tool.resources.cpus);
  put("memory", tool.resources.memory);
  put("disk", tool.resources.disk);
  put("time", tool.resources.time);
  if (!tool.resources.gpus.empty()) {
    json::object gpus;
    for (const auto& [kind, amount] : tool.resources.gpus)
      gpus[kind.empty() ? "any" : kind] = amount.expression.text();
    resources["gpus"] = std::move(gpus);
  }
  object["resources"] = std::move(resources);
  return object;
}

json::object report_json(const Site& site, const SiteReport& report) {
  json::array lines;
  bool ok = true;
  for (const SiteCheck& check : report.checks) {
    ok = ok && check.ok;
    lines.push_back({{"check", check.check}, {"ok", check.ok}, {"text", valid_utf8(check.text)}});
  }
  json::object object{{"ok", ok}, {"checks", std::move(lines)}};
  if (!report.survey) return object;
  const SiteProposal proposal = propose_site(site, *report.survey);
  json::array notes;
  for (const std::string& note : proposal.notes) notes.emplace_back(valid_utf8(note));
  object["notes"] = std::move(notes);
  if (!proposal.yaml.empty()) object["proposal"] = valid_utf8(proposal.yaml);
  return object;
}

/// More names than these help nobody who has mistyped one.
constexpr std::size_t kMostNamed = 50;

/// `/v1/THINGS` or `/v1/THINGS/NAME`.
void answer_things(const HttpRequest& request, const ReplyPtr& reply, const char* plural,
                   json::array things) {
  if (request.method != "GET" || request.path.size() > 3)
    return reply->error(404, fmt::format("write GET /v1/{} or /v1/{}/NAME", plural, plural));
  if (request.path.size() == 2) return reply->answer(200, {{plural, std::move(things)}});
  std::vector<std::string> known;
  for (json::value& thing : things) {
    const std::string name(thing.at("name").get_string());
    if (name == request.path[2]) return reply->answer(200, thing);
    known.push_back(name);
  }
  if (known.size() > kMostNamed) known.clear();
  reply->error(404, fmt::format("there is nothing named '{}' among the {}{}", request.path[2],
                                plural, spelling_hint(request.path[2], known)));
}

json::object cleaning_json(const Cleaning& cleaning, bool is_trial) {
  json::array files;
  for (const WorkspaceFile& file : cleaning.gone)
    files.push_back(
        {{"path", valid_utf8(file.path)}, {"bytes", file.bytes}, {"age", seconds(file.age)}});
  return {{"dry_run", is_trial},
          {"removed", std::move(files)},
          {"removed_bytes", cleaning.gone_bytes},
          {"kept_files", cleaning.kept_files},
          {"kept_bytes", cleaning.kept_bytes}};
}

}  // namespace

void Api::sites(Request request, const ReplyPtr& reply) {
  const SiteBook& book = runtime_.engine().sites();
  if (request.method == "POST" && request.path.size() == 4 && request.path[3] == "check") {
    SiteHands* hands = runtime_.site(request.path[2]);
    if (!hands) return reply->error(404, fmt::format("there is no site '{}'", request.path[2]));
    return hands->check([reply, site = hands->site()](const SiteReport& report) {
      reply->answer(200, report_json(site, report));
    });
  }
  if (request.method == "POST" && request.path.size() == 4 && request.path[3] == "clean")
    return clean(request, reply);
  json::array things;
  for (const SiteState& state : book.sites()) {
    json::object object = site_json(runtime_.engine(), state, runtime_.now());
    if (const SiteFiles* files = runtime_.files_of(state.site.name))
      object["files"] = files_json(files->figures());
    things.push_back(std::move(object));
  }
  answer_things(request, reply, "sites", std::move(things));
}

void Api::clean(Request request, const ReplyPtr& reply) {
  const json::value body = parse_body(request.body);
  bool is_trial = false;
  for (const auto& [key, value] : body.get_object()) {
    if (key != "dry_run" || !value.is_bool())
      throw BadRequest("known is: 'dry_run', which is true or false");
    is_trial = value.get_bool();
  }
  const std::string& name = request.path[2];
  if (!runtime_.site(name)) return reply->error(404, fmt::format("there is no site '{}'", name));
  runtime_.clean(name, is_trial, [reply, is_trial, name](const Result<Cleaning>& cleaning) {
    if (!cleaning)
      return reply->error(503, fmt::format("cannot clean the workspace of {}: {}; look at it with "
                                           "'hpcbatch sites check {}'",
                                           name, cleaning.error().text, name));
    reply->answer(200, cleaning_json(*cleaning, is_trial));
  });
}

void Api::allocations(Request request, const ReplyPtr& reply) {
  runtime_.look([](store::Store& store) { return store.allocations(1000); },
                [this, request, reply](const std::vector<Allocation>& stored) {
                  json::array things;
                  for (const Allocation& facts : stored) {
                    const SiteBook& book = runtime_.engine().sites();
                    const AllocationEntry* live = book.find(facts.id);
                    things.push_back(allocation_json(book, live ? live->facts : facts, live));
                  }
                  answer_things(request, reply, "allocations", std::move(things));
                });
}

void Api::pilots(Request request, const ReplyPtr& reply) {
  json::array things;
  for (const auto& [id, pilot] : runtime_.engine().pilots().all())
    things.push_back(pilot_json(pilot, runtime_.engine().pilots(), runtime_.way_of(pilot.id)));
  answer_things(request, reply, "pilots", std::move(things));
}

void Api::tools(Request request, const ReplyPtr& reply) {
  if (request.method == "POST" && request.path.size() == 4 && request.path[3] == "check") {
    const auto checked = tools_.check(request.path[2]);
    return reply->answer(
        200, {{"ok", checked.has_value()},
              {"checks", json::array{{{"check", request.path[2]},
                                      {"ok", checked.has_value()},
                                      {"text", checked ? "its file and its plugin are good"
                                                       : valid_utf8(checked.error().text)}}}}});
  }
  json::array things;
  for (const ToolShelf::Listing& listing : tools_.list()) things.push_back(tool_json(listing));
  answer_things(request, reply, "tools", std::move(things));
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity,readability-function-size)
void Api::engine(Request request, const ReplyPtr& reply) {
  if (request.method == "POST" && request.path.size() == 3 && request.path[2] == "stop") {
    const json::value body = parse_body(request.body);
    const json::value* said = body.get_object().if_contains("mode");
    const std::string mode = said && said->is_string() ? std::string(said->get_string())
                             : said                    ? "?"
                                                       : "leave";
    StopAsked::Mode how = StopAsked::Mode::Leave;
    if (mode == "drain") {
      how = StopAsked::Mode::Drain;
    } else if (mode == "now") {
      how = StopAsked::Mode::Now;
    } else if (mode != "leave") {
      throw BadRequest("'mode' must be leave, drain or now");
    }
    // Cancelling must be on the disk before the batch systems hear of it.
    if (const auto trouble = runtime_.store_refuses(); trouble && how != StopAsked::Mode::Leave) {
      return reply->error(503, *trouble +
                                   "; end the trouble first, or stop the engine without --now "
                                   "and --drain: pilots then go on and are found again");
    }
    reply->answer(200, {{"stopping", true}});
    return runtime_.stop(how);
  }
  if (request.method == "POST" && request.path.size() == 3 && request.path[2] == "stay") {
    stay();
    return reply->answer(200, {{"stays", true}});
  }
  if (request.method == "POST" && request.path.size() == 3 && request.path[2] == "backup") {
    const json::value body = parse_body(request.body);
    const json::value* file = body.get_object().if_contains("file");
    if (!file || !file->is_string() || !std::string_view(file->get_string()).starts_with('/'))
      throw BadRequest("'file' must be an absolute path");
    const std::string path(file->get_string());
    return runtime_.back_up(path, [reply, path](const Result<void>& done) {
      if (done) return reply->answer(200, {{"file", valid_utf8(path)}});
      reply->error(done.error().kind == Error::Kind::Transient ? 503 : 400, done.error().text);
    });
  }
  if (request.method != "GET" || request.path.size() != 2)
    return reply->error(404, "write GET /v1/engine, or POST /v1/engine/stop, stay or backup");
  reply->answer(200, engine_json());
}

/// Without the store, which may hang or be full: that is what it is asked for then.
json::object Api::engine_json() const {
  const Engine& engine = runtime_.engine();
  const TaskCounts counts = engine.counts();
  const auto& totals = runtime_.totals();
  std::uint64_t queued = 0, running = 0;
  for (const auto& [id, entry] : engine.sites().allocations()) {
    if (entry.facts.state == AllocationState::Ended) continue;
    const Shape* shape = engine.sites().shape_of(id);
    if (entry.facts.state != AllocationState::Running) queued += shape ? shape->nodes : 1;
  }
  for (const auto& [id, pilot] : engine.pilots().all()) running += pilot.connected ? 1 : 0;
  const auto trouble = runtime_.store_trouble();
  json::object object{{"pid", ::getpid()},
                      {"socket", facts_.socket},
                      {"version", HPCBATCH_VERSION},
                      {"uptime_s", seconds(runtime_.now() - facts_.started)},
                      {"started_at", seconds(facts_.started)},
                      {"ends_when_idle", ends_when_idle()},
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
                      {"pilots", json::object{{"queued", queued}, {"running", running}}},
                      {"rejected_peers", rejected_peers_json(runtime_.rejected_peers())},
                      {"sites", engine.sites().sites().size()},
                      {"home", facts_.home}};
  if (!facts_.configuration.empty()) object["config"] = facts_.configuration;
  if (trouble) object["message"] = valid_utf8(*trouble);
  return object;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void Api::dropbox(Request request, const ReplyPtr& reply) {
  if (request.method == "GET") {
    json::array list;
    for (const DropboxState& box : dropboxes()) {
      const DropboxSettings& settings = box.settings;
      json::object object{
          {"directory", settings.directory},
          {"allow", json::array(settings.allow.begin(), settings.allow.end())},
          {"templates", json::array(settings.templates.begin(), settings.templates.end())},
          {"variables", json::value_from(settings.variables)},
          {"configured", box.is_configured},
          {"watched", box.why_not.empty()}};
      if (!box.why_not.empty()) object["message"] = valid_utf8(box.why_not);
      list.push_back(std::move(object));
    }
    return reply->answer(200, {{"dropboxes", std::move(list)}});
  }
  const bool removes = request.path.size() == 3 && request.path[2] == "remove";
  if (request.method != "POST" || (request.path.size() > 2 && !removes)) {
    return reply->error(400, "write GET or POST /v1/dropboxes, or POST /v1/dropboxes/remove");
  }
  const json::value body = parse_body(request.body);
  DropboxSettings settings;
  for (const auto& [key, value] : body.get_object()) {
    const auto path = [name = std::string(key)](const json::value& entry) {
      if (!entry.is_string() || !std::string_view(entry.get_string()).starts_with('/'))
        throw BadRequest(fmt::format("'{}' must hold absolute paths", name));
      return std::string(entry.get_string());
    };
    if (key == "directory") {
      settings.directory = path(value);
    } else if ((key == "allow" || key == "templates") && value.is_array()) {
      for (const json::value& entry : value.get_array())
        (key == "allow" ? settings.allow : settings.templates).push_back(path(entry));
    } else if (key == "variables" && value.is_object()) {
      for (const auto& [name, text] : value.get_object()) {
        if (!text.is_string()) throw BadRequest("'variables' must be a map of names to texts");
        settings.variables[name] = std::string(text.get_string());
      }
    } else {
      throw BadRequest(fmt::format(
          "'{}' is no key of a drop box, or not of the right kind; docs/api.md lists them",
          std::string(key)));
    }
  }
  if (settings.directory.empty()) throw BadRequest("'directory' is missing");
  const auto answer = [reply, directory = settings.directory,
                       what = removes ? "removed" : "watching"](const Result<void>& done) {
    if (done) return reply->answer(200, {{what, directory}});
    reply->error(done.error().kind == Error::Kind::Transient ? 503 : 400, done.error().text);
  };
  if (removes) return remove_dropbox(settings.directory, answer);
  add_dropbox(settings, answer);
}

}  // namespace hpcbatch
