#include "plugin_kit/contract_cases.hpp"

#include "hpcbatch/contract/estimator.hpp"
#include "hpcbatch/contract/scheduler.hpp"
#include "hpcbatch/contract/tool.hpp"
#include "hpcbatch/contract/transport.hpp"
#include "tools/tool_file.hpp"

namespace hpcbatch::plugin_kit {
namespace {

/// At most one of them has an element.
struct Cases {
  std::vector<contract::ToolCase> tools;
  std::vector<contract::SchedulerCase> schedulers;
  std::vector<contract::TransportCase> transports;
  std::vector<contract::EstimatorCase> estimators;
};
Cases& cases() {
  static Cases all;
  return all;
}

std::string value_for(const ParameterDeclaration& parameter) {
  if (parameter.default_value) return *parameter.default_value;
  if (!parameter.choices.empty()) return parameter.choices.front();
  switch (parameter.type) {
    case ParameterDeclaration::Type::String:
      return "text";
    case ParameterDeclaration::Type::Boolean:
      return "false";
    default:
      return "1";
  }
}

/// A request that its declarations allow.
ToolRequest request_for(const ToolFile& tool) {
  ToolRequest request{
      .tool = tool.name, .parameters = {{"tool_dir", "/tool"}}, .inputs = {}, .outputs = {}};
  for (const auto& parameter : tool.parameters)
    request.parameters[parameter.name] = value_for(parameter);
  for (const auto& input : tool.inputs)
    request.inputs[input.name] = {{.path = "/data/" + input.name, .size = 1000}};
  for (const auto& output : tool.outputs) request.outputs[output.name] = "/task/" + output.staged;
  return request;
}

}  // namespace

void set_case(hpcbatch_plugin_kind kind, const CheckAsked& asked) {
  const std::string file = asked.file.string(), config = asked.config;
  switch (kind) {
    case HPCBATCH_KIND_TOOL: {
      contract::ToolCase one{.make = [file, config] { return contract::load<Tool>(file, config); },
                             .good = {},
                             .bad = {}};
      if (!config.empty()) one.good.push_back(request_for(parse_tool(config, asked.config_file)));
      cases().tools.push_back(std::move(one));
      break;
    }
    case HPCBATCH_KIND_SCHEDULER:
      cases().schedulers.push_back(
          {.make = [file, config] { return contract::load<Scheduler>(file, config); }});
      break;
    case HPCBATCH_KIND_TRANSPORT:
      cases().transports.push_back(
          {.make = [file, config] { return contract::load<Transport>(file, config); },
           .directory = asked.directory});
      break;
    case HPCBATCH_KIND_ESTIMATOR:
      cases().estimators.push_back(
          {.make = [file, config] { return contract::load<Estimator>(file, config); }});
      break;
  }
}

void make_one() {
  for (const auto& one : cases().tools) (void)one.make();
  for (const auto& one : cases().schedulers) (void)one.make();
  for (const auto& one : cases().transports) (void)one.make();
  for (const auto& one : cases().estimators) (void)one.make();
}

}  // namespace hpcbatch::plugin_kit

namespace hpcbatch::contract {
// Read when GoogleTest is initialised, which is after the case is set.
INSTANTIATE_TEST_SUITE_P(Checked, ToolContract, testing::ValuesIn(plugin_kit::cases().tools));
INSTANTIATE_TEST_SUITE_P(Checked, SchedulerContract,
                         testing::ValuesIn(plugin_kit::cases().schedulers));
INSTANTIATE_TEST_SUITE_P(Checked, TransportContract,
                         testing::ValuesIn(plugin_kit::cases().transports));
INSTANTIATE_TEST_SUITE_P(Checked, EstimatorContract,
                         testing::ValuesIn(plugin_kit::cases().estimators));
}  // namespace hpcbatch::contract
