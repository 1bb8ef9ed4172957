// The engine alone: what it costs to take, lease and end tasks.
#include "engine_at_work.hpp"

#include <benchmark/benchmark.h>

namespace hpcbatch {
namespace {

void engine_takes_and_runs_an_array(benchmark::State& state) {
  EngineAtWork world(state.range(1));
  world.run();
  std::int64_t tasks = 0;
  for (auto _ : state) {
    world.submit(static_cast<std::uint32_t>(state.range(0)));
    tasks += world.run();
  }
  state.SetItemsProcessed(tasks);
}
BENCHMARK(engine_takes_and_runs_an_array)->ArgsProduct({{1'000, 100'000}, {2, 64}});

void engine_takes_separate_tasks(benchmark::State& state) {
  for (auto _ : state) {
    EngineAtWork world(1);
    for (std::int64_t i = 0; i < state.range(0); ++i) world.submit(1);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(engine_takes_separate_tasks)->Arg(1'000)->Arg(10'000);

}  // namespace
}  // namespace hpcbatch
