#include "cli/parse/sim_command.hpp"

#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::value optional_number(const std::optional<std::int64_t>& number) {
  return number ? json::value(*number) : json::value(nullptr);
}

std::optional<std::int64_t> optional_number(const json::value& value) {
  if (value.is_null()) return std::nullopt;
  return value.to_number<std::int64_t>();
}

}  // namespace

json::object to_json(const SimCommand& command) {
  return {{"trace", command.trace},
          {"partition", command.partition},
          {"nodes", optional_number(command.nodes)},
          {"whole", command.whole},
          {"pilot_nodes", json::value_from(command.pilot_nodes)},
          {"pilot_time", command.pilot_time},
          {"every", command.every},
          {"since", optional_number(command.since)},
          {"until", optional_number(command.until)},
          {"backfill", command.backfill},
          {"model_nodes", optional_number(command.model_nodes)},
          {"model_backfill", command.model_backfill},
          {"unknown_order", command.unknown_order},
          {"hide_each", command.hide_each},
          {"waiting_cost", command.waiting_cost},
          {"idle_cost", command.idle_cost},
          {"most_idle", command.most_idle},
          {"json", command.json}};
}

SimCommand sim_command_of(const json::value& value) {
  const json::object& said = value.as_object();
  const auto text = [&](const char* key) { return std::string(said.at(key).as_string()); };
  const auto number = [&](const char* key) { return said.at(key).to_number<std::int64_t>(); };
  SimCommand command;
  command.trace = text("trace");
  command.partition = text("partition");
  command.nodes = optional_number(said.at("nodes"));
  command.whole = said.at("whole").as_bool();
  command.pilot_nodes = json::value_to<std::vector<std::int64_t>>(said.at("pilot_nodes"));
  command.pilot_time = number("pilot_time");
  command.every = number("every");
  command.since = optional_number(said.at("since"));
  command.until = optional_number(said.at("until"));
  command.backfill = text("backfill");
  command.model_nodes = optional_number(said.at("model_nodes"));
  command.model_backfill = text("model_backfill");
  command.unknown_order = said.at("unknown_order").as_bool();
  command.hide_each = number("hide_each");
  command.waiting_cost = said.at("waiting_cost").to_number<double>();
  command.idle_cost = said.at("idle_cost").to_number<double>();
  command.most_idle = number("most_idle");
  command.json = said.at("json").as_bool();
  return command;
}

}  // namespace hpcbatch
