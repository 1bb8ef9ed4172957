// A request from its JSON to what the engine takes.
#include "api/read/read_request.hpp"
#include "links/recipe.hpp"
#include "wire/wire.pb.h"

#include <benchmark/benchmark.h>

#include <fmt/format.h>

namespace hpcbatch {
namespace {

std::string request_of(std::int64_t tasks) {
  std::string text = R"({"client": "bench", "tasks": [)";
  for (std::int64_t i = 0; i < tasks; ++i) {
    text += fmt::format(
        R"({}{{"command": ["sh", "-c", "echo part {}"], "cpus": 2, "memory": "4G", "time": "1h"}})",
        i == 0 ? "" : ",", i);
  }
  return text + "]}";
}

void submit_from_json(benchmark::State& state) {
  const std::string text = request_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(read_submit_body(text));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(submit_from_json)->Arg(1)->Arg(10'000);

void recipe_to_bytes(benchmark::State& state) {
  for (auto _ : state) {
    wire::Start start;
    for (const char* word : {"sh", "-c", "echo part 1"}) start.add_argv(word);
    start.set_directory("/home/somebody/project");
    benchmark::DoNotOptimize(to_bytes(start, Filled::Nothing));
  }
}
BENCHMARK(recipe_to_bytes);

}  // namespace
}  // namespace hpcbatch
