// A tool's file from YAML, and its command rendered for one request.
#include "plugin_host/plugin_host.hpp"
#include "tools/prepare.hpp"

#include <benchmark/benchmark.h>

#include <cstdlib>

namespace hpcbatch {
namespace {

const std::string kLoudness = R"(tool: loudness
version: 1.0.0
summary: How loud a recording is
parameters:
  rate: {type: integer, default: 16000}
inputs:
  sound: {description: A WAV file}
outputs:
  report: {file: report.txt}
resources:
  cpus: 1
  memory: 100M + 2 * sound.size
  time: 1m + sound.size / 1M * 1s
command: [sh, -c, 'exec sox "$1" -n stat 2> "$2"', sh, "{sound}", "{report}"]
)";

void tool_from_yaml(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_tool(kLoudness, "/tools/loudness.yaml"));
}
BENCHMARK(tool_from_yaml);

void tool_renders_a_command(benchmark::State& state) {
  const ToolFile file = parse_tool(kLoudness, "/tools/loudness.yaml");
  const PluginHost plugins({HPCBATCH_BUILT_PLUGINS});
  const auto plugin = plugins.tool("command", file.text);
  if (!plugin) return state.SkipWithError(plugin.error().text.c_str());
  const ToolCall call{.tool = "loudness",
                      .inputs = {{"sound", {{"/data/talk.wav", 1'000'000, {}}}}},
                      .outputs = {{"report", "/data/talk.txt"}}};
  for (auto _ : state) {
    const auto task = prepare(file, **plugin, call, {}, "/tasks/1");
    if (!task) return state.SkipWithError(task.error().text.c_str());
    benchmark::DoNotOptimize(task);
  }
}
BENCHMARK(tool_renders_a_command);

}  // namespace
}  // namespace hpcbatch
