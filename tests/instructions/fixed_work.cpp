// fixed_work engine|store|pilot TASKS: takes and ends so many tasks, in the same steps each time.
#include "../../bench/parts/engine_at_work.hpp"
#include "../../bench/parts/kept_store.hpp"
#include "pilot/policy/decide.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace hpcbatch {
namespace {

void engine_work(std::uint32_t tasks) {
  EngineAtWork world(64);
  world.run();
  world.submit(tasks);
  world.run();
}

void store_work(std::uint32_t tasks) {
  constexpr std::uint32_t kTogether = 500;
  KeptStore kept;
  kept.commit({array_of(1, 1'000'000)}, true);
  for (std::uint32_t first = 1; first <= tasks; first += kTogether)
    LeasesAndResults(first, kTogether).commit(kept);
}

/// One cpu for each, on a node that has four; as many wait as run.
void pilot_work(std::uint32_t tasks) {
  constexpr std::uint32_t kCpusThere = 4;
  constexpr std::int64_t kOneCpu = 10'000;
  pilot::Time now{};
  const pilot::Topology cpus{{0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {3, 0, 3}};
  pilot::Decide decide(pilot::Room({{"cpus", kCpusThere * kOneCpu}}, cpus), {}, now);
  decide.welcomed(now);
  std::uint32_t leased = 0;
  const auto lease = [&] {
    ++leased;
    decide.leased({{1, leased, 1, leased}, {{"cpus", kOneCpu}}});
  };
  while (leased < 2 * kCpusThere) lease();
  std::uint32_t ended = 0;
  while (ended < tasks) {
    now += std::chrono::milliseconds(1);
    for (const pilot::Action& action : decide.decide(now)) {
      const auto* launch = std::get_if<pilot::Launch>(&action);
      if (launch == nullptr) continue;
      if (!decide.ended(launch->id, false, 100, now)) std::abort();
      decide.acknowledged(launch->id, now);
      lease();
      ++ended;
    }
  }
}

}  // namespace
}  // namespace hpcbatch

int main(int argc, char** argv) {
  const std::string_view part = argc == 3 ? argv[1] : "";
  const auto tasks = static_cast<std::uint32_t>(argc == 3 ? std::atoi(argv[2]) : 0);
  if (part == "engine") {
    hpcbatch::engine_work(tasks);
  } else if (part == "store") {
    hpcbatch::store_work(tasks);
  } else if (part == "pilot") {
    hpcbatch::pilot_work(tasks);
  } else {
    std::fputs("usage: fixed_work engine|store|pilot TASKS\n", stderr);
    return 2;
  }
}
