#include "api/api.hpp"

#include "api/answers/to_json.hpp"
#include "documents/texts.hpp"
#include "engine/sites/site_forecast.hpp"

#include <fmt/format.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// More names than these help nobody who has mistyped one.
constexpr std::size_t kMostNamed = 50;

/// Neither the batch system nor a pilot of it says now what has become of it.
bool is_unknown(const SiteTable& table, const AllocationEntry& live) {
  const SiteState* site = table.site(live.facts.site);
  return live.facts.state != AllocationState::Ended && site && !site->trouble.empty() &&
         live.facts.pilots_seen == live.pilots_away;
}

json::object allocation_json(const SiteTable& table, const Allocation& facts,
                             const AllocationEntry* live, Time now) {
  json::object object{{"name", facts.id.name},
                      {"site", facts.site},
                      {"shape", facts.shape},
                      {"state", std::string(to_string(facts.state))},
                      {"submitted_at", seconds(facts.opened)}};
  if (!facts.reason.empty()) object["message"] = facts.reason;
  if (!facts.number.empty()) object["batch_id"] = facts.number;
  if (facts.running_since) object["started_at"] = seconds(*facts.running_since);
  if (facts.ended) object["ended_at"] = seconds(*facts.ended);
  if (live && live->suspended_at && !facts.ended) {
    object["state"] = "suspended";
    object["suspended_at"] = seconds(*live->suspended_at);
  }
  if (live && is_unknown(table, *live)) {
    object["state"] = "unknown";
    object["seen_at"] = seconds(live->seen_at);
    object["message"] =
        fmt::format("was {}; {}", to_string(facts.state), table.site(facts.site)->trouble);
  }
  if (live && facts.state == AllocationState::Queued) {
    if (const auto bound = SiteForecast(table, now).start_bound(*live)) {
      if (bound->half) object["expected_start"] = seconds(*bound->half);
      object["expected_start_90"] = seconds(bound->most);
    }
  }
  if (live && live->time_left) object["ends_at"] = seconds(live->seen_at + *live->time_left);
  return object;
}

json::array devices_json(const std::vector<Gpu>& gpus) {
  json::array devices;
  for (const Gpu& gpu : gpus) {
    json::object one{{"number", gpu.number}};
    const auto text = [&one](const char* key, const std::string& value) {
      if (!value.empty()) one[key] = value;
    };
    text("uuid", gpu.uuid);
    text("name", gpu.name);
    if (gpu.memory != 0) one["memory"] = gpu.memory;
    text("capability", gpu.capability);
    text("driver", gpu.driver);
    text("trouble", gpu.trouble);
    devices.push_back(std::move(one));
  }
  return devices;
}

/// Which are, and why; empty: none.
std::string set_aside(const std::vector<Gpu>& gpus) {
  std::string text;
  for (const Gpu& gpu : gpus) {
    if (gpu.trouble.empty()) continue;
    text +=
        fmt::format("{}GPU {} is set aside: {}", text.empty() ? "" : "; ", gpu.number, gpu.trouble);
  }
  return text;
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
  if (!pilot.gpus.empty()) object["devices"] = devices_json(pilot.gpus);
  if (const std::string trouble = set_aside(pilot.gpus); !trouble.empty())
    object["message"] = trouble;
  if (!way.empty()) object["link"] = way;
  if (pilot.end) object["ends_at"] = seconds(*pilot.end);
  if (!pilot.workspace_trouble.empty()) object["message"] = pilot.workspace_trouble;
  if (!pilot.leaving_reason.empty()) object["message"] = pilot.leaving_reason;
  return object;
}

json::object parameters_json(const ToolFile& tool) {
  static constexpr const char* kTypes[] = {"string", "integer", "number", "boolean"};
  json::object parameters;
  for (const ParameterDeclaration& parameter : tool.parameters) {
    json::object one{{"type", kTypes[static_cast<int>(parameter.type)]}};
    if (parameter.default_value) one["default"] = *parameter.default_value;
    if (!parameter.choices.empty())
      one["choices"] = json::array(parameter.choices.begin(), parameter.choices.end());
    if (!parameter.description.empty()) one["description"] = parameter.description;
    parameters[parameter.name] = std::move(one);
  }
  return parameters;
}

json::object split_json(const SplitDeclaration& split) {
  json::object object{{"input", split.input}, {"output", split.output}};
  if (!split.cut.empty()) object["cut"] = split.cut;
  if (!split.merge.empty()) object["merge"] = split.merge;
  return object;
}

json::object tool_json(const ToolRegistry::Listing& listing) {
  json::object object{{"name", listing.name}, {"file", listing.path}};
  if (!listing.tool) {
    object["error"] = listing.error;
    return object;
  }
  const ToolFile& tool = *listing.tool;
  object["version"] = tool.version;
  object["description"] = tool.summary;
  object["interpreter"] = tool.plugin;
  object["parameters"] = parameters_json(tool);
  json::object inputs;
  for (const InputDeclaration& input : tool.inputs) {
    json::object one{{"type", input.many ? "files" : "file"}, {"optional", input.optional}};
    if (!input.description.empty()) one["description"] = input.description;
    inputs[input.name] = std::move(one);
  }
  object["inputs"] = std::move(inputs);
  if (tool.split) object["split"] = split_json(*tool.split);
  json::object outputs;
  for (const OutputDeclaration& output : tool.outputs) {
    json::object one{{"file", output.staged}, {"optional", output.optional}};
    if (!output.description.empty()) one["description"] = output.description;
    outputs[output.name] = std::move(one);
  }
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

}  // namespace

void answer_listing(const HttpRequest& request, const ReplyPtr& reply, const char* plural,
                    json::array things) {
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

void put_amounts(json::object& object, const Resources& amounts) {
  object["cpus"] = amounts.get(kCpus).value();
  if (const Amount memory = amounts.get(kMemory); memory != Amount{})
    object["memory"] = memory.whole();
  if (auto gpus = gpus_json(amounts); !gpus.empty()) object["gpus"] = std::move(gpus);
}

void Listings::add_to(Routes& routes) {
  for (const char* path : {"allocations", "allocations/*"})
    routes.add("GET", path, [this](HttpRequest& request, const ReplyPtr& reply) {
      allocations(request, reply);
    });
  for (const char* path : {"pilots", "pilots/*"})
    routes.add("GET", path,
               [this](HttpRequest& request, const ReplyPtr& reply) { pilots(request, reply); });
  for (const char* path : {"tools", "tools/*"})
    routes.add("GET", path,
               [this](HttpRequest& request, const ReplyPtr& reply) { tools(request, reply); });
  routes.add("POST", "tools/*/check", [this](HttpRequest& request, const ReplyPtr& reply) {
    check_tool(request.path[2], reply);
  });
}

void Listings::allocations(const HttpRequest& request, const ReplyPtr& reply) {
  runtime_.look([](store::Store& store) { return store.history().allocations(1000); },
                [this, request, reply](const std::vector<Allocation>& stored) {
                  json::array things;
                  for (const Allocation& facts : stored) {
                    const SiteTable& table = runtime_.engine().sites();
                    const AllocationEntry* live = table.find(facts.id);
                    things.push_back(
                        allocation_json(table, live ? live->facts : facts, live, runtime_.now()));
                  }
                  answer_listing(request, reply, "allocations", std::move(things));
                });
}

void Listings::pilots(const HttpRequest& request, const ReplyPtr& reply) {
  json::array things;
  for (const auto& [id, pilot] : runtime_.engine().pilots().all())
    things.push_back(
        pilot_json(pilot, runtime_.engine().pilots(), runtime_.links().way_of(pilot.id)));
  answer_listing(request, reply, "pilots", std::move(things));
}

void Listings::tools(const HttpRequest& request, const ReplyPtr& reply) {
  json::array things;
  for (const ToolRegistry::Listing& listing : tools_.list()) things.push_back(tool_json(listing));
  answer_listing(request, reply, "tools", std::move(things));
}

void Listings::check_tool(const std::string& name, const ReplyPtr& reply) {
  const auto answer = [name, reply](bool is_good, const std::string& why_not) {
    const std::string text = is_good ? "its file and its plugin are good" : why_not;
    const json::object check{{"check", name}, {"ok", is_good}, {"text", text}};
    reply->answer(200, {{"ok", is_good}, {"checks", json::array{check}}});
  };
  const auto checked = tools_.check(name);
  auto plugin = checked ? tools_.blocking(name) : nullptr;
  if (!plugin) return answer(checked.has_value(), checked ? "" : checked.error().text);
  calls_.check(*checked, std::move(plugin), [answer, name](const Result<void>& found) {
    answer(found.has_value(),
           found ? "" : fmt::format("cannot use tool {}: {}", name, found.error().text));
  });
}

}  // namespace hpcbatch
