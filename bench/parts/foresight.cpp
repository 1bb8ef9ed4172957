// One look ahead into a queue, on one core.
#include "foresight/look_ahead.hpp"

#include <benchmark/benchmark.h>

namespace hpcbatch::foresight {
namespace {

/// So many jobs wait for 200 nodes, which a hundred users fill.
QueueView crowd(std::int64_t waiting) {
  QueueView view;
  view.now = 10 * kDay;
  view.nodes = 200;
  for (std::int32_t i = 0; i < 100; ++i) {
    Job job;
    job.user = i;
    job.nodes = 2;
    job.limit = (1 + i % 48) * kHour;
    view.running.push_back({job, view.now - (i % 3) * kHour});
  }
  for (std::int32_t i = 0; i < waiting; ++i) {
    Job job;
    job.submitted = view.now - kDay + i;
    job.user = i % 100;
    job.nodes = 1 + i % 7;
    job.limit = (1 + i % 12) * kHour;
    view.waiting.push_back(job);
  }
  return view;
}

RunTimes learned() {
  RunTimes times;
  for (std::int32_t i = 0; i < 20'000; ++i) {
    Job job;
    job.user = i % 100;
    job.nodes = 1 + i % 7;
    job.limit = (1 + i % 48) * kHour;
    job.runs = job.limit * (i % 11) / 10;
    times.learn(job);
  }
  return times;
}

/// /3000/31: 31 draws of a queue of 3,000.
void look_ahead(benchmark::State& state) {
  const QueueView view = crowd(state.range(0));
  const RunTimes times = learned();
  Job pilot;
  pilot.submitted = view.now;
  pilot.limit = kDay;
  pilot.nodes = 8;
  Draws draws;
  ClusterModel model;
  model.backfill_interval = model.resolution = 10 * kMinute;
  if (state.range(1) != 0) draws.count = static_cast<std::size_t>(state.range(1));
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(draw_starts(view, model, &times, pilot, draws));
  }
}
BENCHMARK(look_ahead)
    ->Args({300, 31})
    ->Args({3000, 1})
    ->Args({3000, 31})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hpcbatch::foresight
