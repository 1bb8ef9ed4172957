// clockwork_campaign: runs seeds of the simulated system, replays and shrinks one, and proves with
// planted faults that it would notice.
#include "campaign.hpp"
#include "planted/planted.hpp"
#include "shrink.hpp"
#include "trial.hpp"
#include "world.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <utility>

namespace hpcbatch::clockwork {
namespace {

using Clock_ = std::chrono::steady_clock;

constexpr std::array kPlanted{
#define HPCBATCH_PLANTED_FAULT_(name) std::pair{#name, PlantedFault::name},
    HPCBATCH_PLANTED_FAULT_NAMES(HPCBATCH_PLANTED_FAULT_)
#undef HPCBATCH_PLANTED_FAULT_
};

struct Asked {
  Campaign campaign{.seeds = 2000};
  double minutes{0};
  std::optional<std::uint64_t> replay, to_shrink;
  bool trace{false}, expect_all{false}, planted_faults{false}, twice{false}, json{false};
  std::string plant;
  std::vector<std::string> scenarios;
};

double seconds_since(Clock_::time_point begin) {
  return std::chrono::duration<double>(Clock_::now() - begin).count();
}

void show_progress(std::uint64_t clean, Clock_::time_point begin) {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (terminal) fmt::print(stderr, "\r{} seeds clean, {:.0f} s ", clean, seconds_since(begin));
}

void show_finding(const Asked& asked, const Finding& finding) {
  const std::string plant = asked.plant.empty() ? "" : " --plant " + asked.plant;
  fmt::print(
      "seed {} is not clean: {}\n  again: clockwork_campaign --replay {} --tasks {}{}\n"
      "  what matters of it: clockwork_campaign --shrink {} --tasks {}{}\n",
      finding.seed, finding.wrong, finding.seed, asked.campaign.tasks, plant, finding.seed,
      asked.campaign.tasks, plant);
}

int run_campaign(const Asked& asked) {
  Campaign campaign = asked.campaign;
  const auto begin = Clock_::now();
  if (asked.minutes > 0) {
    campaign.seeds = std::uint64_t{1} << 40;
    campaign.until = begin + std::chrono::duration_cast<Clock_::duration>(
                                 std::chrono::duration<double>(asked.minutes * 60));
  }
  const Outcomes outcomes =
      run(campaign, [&](std::uint64_t clean) { show_progress(clean, begin); });
  const double seconds = seconds_since(begin);
  int zero = 0;
  for (const auto& [what, times] : outcomes.tally.counts()) {
    if (asked.json) {
      fmt::print("{{\"what\": \"{}\", \"times\": {}}}\n", what, times);
    } else if (!outcomes.finding) {
      fmt::print("{:>12}  {}\n", times, what);
    }
    zero += times == 0 ? 1 : 0;
  }
  if (asked.json) {
    fmt::print("{{\"clean\": {}, \"seconds\": {:.3f}, \"first\": {}, \"never_exercised\": {}}}\n",
               outcomes.clean, seconds, campaign.first, zero);
  } else {
    fmt::print("{} seeds clean from {} on, {:.1f} seeds/s\n", outcomes.clean, campaign.first,
               static_cast<double>(outcomes.clean) / seconds);
  }
  if (outcomes.finding) {
    show_finding(asked, *outcomes.finding);
    return 1;
  }
  if (asked.expect_all && zero != 0) {
    fmt::print(stderr, "{} of the faults and transitions above were never exercised\n", zero);
    return 1;
  }
  return 0;
}

int show_planted_faults(const Asked& asked) {
  int unseen = 0;
  for (const auto& [name, fault] : kPlanted) {
    planted_fault = fault;
    const Outcomes outcomes = run(asked.campaign, [](std::uint64_t) {});
    if (outcomes.finding) {
      fmt::print("{:<30} caught by seed {}: {}\n", name, outcomes.finding->seed,
                 outcomes.finding->wrong.substr(0, outcomes.finding->wrong.find('\n')));
    } else {
      fmt::print("{:<30} NOT caught by {} seeds\n", name, outcomes.clean);
      ++unseen;
    }
    std::fflush(stdout);
  }
  planted_fault = PlantedFault::none;
  fmt::print("{} of {} planted faults caught\n", kPlanted.size() - static_cast<std::size_t>(unseen),
             kPlanted.size());
  return unseen == 0 ? 0 : 1;
}

int replay(const Asked& asked) {
  const Scenario scenario = draw_scenario(*asked.replay, asked.campaign.tasks);
  World world(scenario);
  world.run();
  if (asked.trace) {
    for (const Incident& incident : scenario.incidents) fmt::print("{}\n", describe(incident));
    for (const history::Record& record : world.history()) fmt::print("{}", wire::to_line(record));
  }
  if (world.wrong().empty()) {
    fmt::print("seed {} is clean (fingerprint {:x})\n", scenario.seed, world.fingerprint());
    return 0;
  }
  fmt::print("seed {}: {}\n", scenario.seed, world.wrong());
  return 1;
}

int shrink_one(const Asked& asked) {
  const Scenario scenario = draw_scenario(*asked.to_shrink, asked.campaign.tasks);
  const Verdict verdict = run_apart(scenario);
  if (verdict.is_clean()) {
    fmt::print("seed {} is clean; nothing to shrink\n", scenario.seed);
    return 0;
  }
  const Scenario small = shrink(scenario, verdict, [](std::size_t left) {
    if (::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r{} incidents left ", left);
  });
  fmt::print("of {} incidents these {} matter:\n", scenario.incidents.size(),
             small.incidents.size());
  for (const Incident& incident : small.incidents) fmt::print("{}\n", describe(incident));
  fmt::print("{}\nAs a file:\n{}", run_apart(small).wrong, to_text(small));
  if (asked.trace) {
    std::fflush(stdout);
    World world(small);
    world.run();
    for (const history::Record& record : world.history()) fmt::print("{}", wire::to_line(record));
  }
  return 1;
}

int run_twice(const Asked& asked) {
  for (std::uint64_t i = 0; i < asked.campaign.seeds; ++i) {
    const Scenario scenario = draw_scenario(asked.campaign.first + i, asked.campaign.tasks);
    Tally tally;
    const std::uint64_t first = run_here(scenario, tally).fingerprint;
    if (run_here(scenario, tally).fingerprint == first) continue;
    fmt::print("seed {} has two histories\n", scenario.seed);
    return 1;
  }
  fmt::print("each of {} seeds has one history\n", asked.campaign.seeds);
  return 0;
}

/// What was found once and mended must stay so.
int run_scenarios(const Asked& asked) {
  int failed = 0;
  for (const std::string& path : asked.scenarios) {
    const Verdict verdict = run_apart(read_scenario(path));
    fmt::print("{}: {}\n", path, verdict.is_clean() ? "clean" : verdict.wrong);
    failed += verdict.is_clean() ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  Asked asked;
  CLI::App app{"Runs the simulated system under many seeds."};
  asked.campaign.workers = std::max(1U, std::thread::hardware_concurrency());
  app.add_option("--first", asked.campaign.first, "first seed");
  app.add_option("--seeds", asked.campaign.seeds, "how many");
  app.add_option("--minutes", asked.minutes, "as many as go into that time")
      ->check(CLI::PositiveNumber);
  app.add_option("--tasks", asked.campaign.tasks, "of each scenario, about");
  app.add_option("--workers", asked.campaign.workers, "processes")->check(CLI::Range(1, 256));
  app.add_option("--replay", asked.replay, "run one seed");
  app.add_option("--shrink", asked.to_shrink, "find out what of one seed matters");
  app.add_option("--scenario", asked.scenarios, "run what these files hold");
  app.add_flag("--trace", asked.trace, "print incidents and history of that one");
  app.add_flag("--expect-all", asked.expect_all,
               "fail where a kind of fault or a transition was never exercised");
  app.add_option("--plant", asked.plant, "switch this fault on");
  app.add_flag("--planted-faults", asked.planted_faults, "show that each planted fault is caught");
  app.add_flag("--twice", asked.twice, "show that the same seed is the same history");
  app.add_flag("--json", asked.json, "one object a line");
  CLI11_PARSE(app, argc, argv);
  if (!asked.plant.empty()) {
    const auto at = std::find_if(kPlanted.begin(), kPlanted.end(),
                                 [&](const auto& p) { return asked.plant == p.first; });
    if (at == kPlanted.end()) {
      fmt::print(stderr, "cannot plant '{}': there is no such fault\n", asked.plant);
      return 2;
    }
    planted_fault = at->second;
  }
  if (asked.planted_faults) return show_planted_faults(asked);
  if (asked.twice) return run_twice(asked);
  if (!asked.scenarios.empty()) {
    try {
      return run_scenarios(asked);
    } catch (const std::runtime_error& e) {
      fmt::print(stderr, "{}\n", e.what());
      return 2;
    }
  }
  if (asked.replay) return replay(asked);
  if (asked.to_shrink) return shrink_one(asked);
  return run_campaign(asked);
}

}  // namespace
}  // namespace hpcbatch::clockwork

int main(int argc, char** argv) {
  return hpcbatch::clockwork::main(argc, argv);
}
