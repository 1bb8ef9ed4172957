// The store: what a task costs there, and one commit.
#include "kept_store.hpp"

#include <benchmark/benchmark.h>

namespace hpcbatch {
namespace {

void store_one_durable_commit(benchmark::State& state) {
  KeptStore kept;
  std::uint64_t id = 0;
  for (auto _ : state) kept.commit({array_of(++id, 1)}, true);
}
BENCHMARK(store_one_durable_commit)->UseRealTime();

void store_separate_tasks(benchmark::State& state) {
  KeptStore kept;
  std::uint64_t id = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<store::Write> writes;
    for (std::int64_t i = 0; i < state.range(0); ++i) writes.push_back(array_of(++id, 1));
    state.ResumeTiming();
    kept.commit(writes, true);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(store_separate_tasks)->Arg(10'000);

/// Leases in one commit, results in the next, as when an array runs.
void store_leases_and_results(benchmark::State& state) {
  KeptStore kept;
  kept.commit({array_of(1, 1'000'000'000)}, true);
  std::uint32_t next = 1;
  const auto count = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    LeasesAndResults work(next, count);
    next += count;
    state.ResumeTiming();
    work.commit(kept);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(store_leases_and_results)->Arg(10)->Arg(1'000);

/// A million results of so many kinds, added up; neighbours share rows, as those of an array do.
/// `bytes`: by which the file grew for it.
void store_learn_a_million(benchmark::State& state) {
  const auto kinds = static_cast<std::uint64_t>(state.range(0));
  constexpr std::uint64_t kResults = 1'000'000;
  const PilotId pilot{AllocationId{"Hb1a2b3c"}, 0};
  const Time begin = from_microseconds(1'700'000'000'000'000);
  for (auto _ : state) {
    state.PauseTiming();
    KeptStore kept;
    kept.begin_learning();
    const std::uint64_t each = kResults / kinds;
    for (std::uint64_t id = 1; id <= kinds; ++id) {
      kept.commit({array_of(id, static_cast<std::uint32_t>(each))}, false);
      std::vector<store::Write> results;
      for (std::uint32_t index = 1; index <= each; ++index) {
        Outcome outcome;
        outcome.started = begin + std::chrono::seconds(index % 60);
        outcome.ended = *outcome.started + std::chrono::milliseconds(1 + index * 7919 % 100'000);
        outcome.cpu_time = std::chrono::milliseconds(1 + index * 104'729 % 100'000);
        outcome.peak_memory = (1 + index * 31 % 4000) << 20;
        results.push_back(
            {SaveResult{{{ArrayId{id}, index}, 1, index}, pilot, "node1", outcome}, {}});
      }
      kept.commit(results, false);
    }
    const std::uint64_t before = kept.bytes();
    state.ResumeTiming();
    while (kept.store().learn(20'000)) {
    }
    state.PauseTiming();
    state.counters["bytes"] = static_cast<double>(kept.bytes() - before);
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kResults));
}
BENCHMARK(store_learn_a_million)->Arg(1)->Arg(1000)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace hpcbatch
