#include "scenario.hpp"

#include "draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace hpcbatch::clockwork {
namespace {

using namespace std::chrono_literals;

struct KindText {
  std::string_view name, text;
};
constexpr std::array<KindText, kIncidentKinds> kTexts{{
#define HPCBATCH_INCIDENT_(name, text) KindText{#name, text},
    HPCBATCH_INCIDENTS(HPCBATCH_INCIDENT_)
#undef HPCBATCH_INCIDENT_
}};

std::vector<Site> draw_sites(Draw draw) {
  Shape cpu{.name = "cpu", .walltime = draw.between(8min, 30min)};
  cpu.capacity.set(kCpus, Amount::of(static_cast<std::int64_t>(2 + draw.below(7))));
  Shape gpu = cpu;
  gpu.name = "gpu";
  gpu.capacity.set("gpus/a100", Amount::of(2));
  gpu.capacity.set("gpus/v100", Amount::of(1));
  Shape wide = cpu;
  wide.name = "wide";
  wide.nodes = 2;
  Shape brief = cpu;
  brief.name = "brief";
  brief.walltime = 6min;
  brief.tags = {"ssd"};
  const auto count = [&](std::uint64_t most) {
    return static_cast<std::uint32_t>(1 + draw.below(most));
  };
  Site here{.name = "here", .max_queued = count(4), .max_running = 2 + count(4)};
  here.shapes = {cpu, gpu};
  Site there{.name = "there", .max_queued = count(3), .max_running = 1 + count(3)};
  there.shapes = {wide, brief};
  for (Site* site : {&here, &there}) {
    site->idle_after = draw.between(5s, 40s);
    site->poll_every = draw.between(5s, 20s);
    site->lost_after = draw.between(60s, 200s);
  }
  return {here, there};
}

/// This machine, as a site beside the clusters: one pilot at a time, which has no end and goes when
/// it has been idle, or in some worlds only when it is told.
Site draw_local(Draw draw) {
  Site local{.name = kLocalSite, .scheduler = "local", .max_queued = 1, .max_running = 1};
  Shape machine{.name = "machine"};
  machine.capacity.set(kCpus, Amount::of(static_cast<std::int64_t>(4 + draw.below(5))));
  local.shapes = {machine};
  local.idle_after = draw.chance(25)   ? Duration{}
                     : draw.chance(60) ? draw.between(5s, 40s)
                                       : draw.between(1min, 10min);
  local.poll_every = draw.between(5s, 20s);
  local.lost_after = draw.between(60s, 200s);
  return local;
}

Duration length_of(IncidentKind kind, Draw& draw) {
  switch (kind) {
    case IncidentKind::kill_engine:
    case IncidentKind::lose_power:
    case IncidentKind::remove_site:
      return draw.chance(80) ? draw.between(10ms, 5s) : draw.between(5s, 90s);
    default:
      return draw.chance(70) ? draw.between(100ms, 15s) : draw.between(15s, 4min);
  }
}

}  // namespace

bool is_local(const Site& site) {
  return site.name == kLocalSite;
}

bool has_local(const Scenario& scenario) {
  return std::any_of(scenario.sites.begin(), scenario.sites.end(), is_local);
}

std::string_view name_of(IncidentKind kind) {
  return kTexts.at(static_cast<std::size_t>(kind)).name;
}

std::string_view text_of(IncidentKind kind) {
  return kTexts.at(static_cast<std::size_t>(kind)).text;
}

std::string describe(const Incident& incident) {
  return fmt::format("{:>10.3f} s  {:<20} {} ({:.3f} s, {:x})",
                     static_cast<double>(incident.at.count()) / 1e6, name_of(incident.kind),
                     text_of(incident.kind), static_cast<double>(incident.length.count()) / 1e6,
                     incident.which);
}

namespace {

Scenario empty_scenario(std::uint64_t seed, bool with_local) {
  Scenario scenario{.seed = seed};
  Draw draw = Draw(seed).of({1});
  scenario.sites = draw_sites(draw.of({2}));
  if (with_local) scenario.sites.push_back(draw_local(draw.of({4})));
  scenario.length = draw.of({3}).between(3min, 15min);
  return scenario;
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed, std::uint64_t tasks) {
  Scenario scenario = empty_scenario(seed, Draw(seed).of({6}).chance(35));
  Draw draw = Draw(seed).of({4});
  // Some worlds are calm, so that what happens alone is seen as well.
  const std::uint64_t trouble = draw.chance(20) ? draw.below(4) : 8 + draw.below(50);
  const std::uint64_t doings = draw.below(25);
  const auto add = [&](IncidentKind kind, Duration latest) {
    const Duration at = draw.between(0s, latest);
    const std::uint64_t which = draw.next();
    const Duration length = length_of(kind, draw);
    scenario.incidents.push_back({at, kind, which, length});
  };
  // An array has about twenty tasks (see users.cpp).
  for (std::uint64_t i = 0; i < std::max<std::uint64_t>(1, tasks / 20); ++i)
    add(IncidentKind::submit, scenario.length * 3 / 4);
  constexpr auto kDoings = static_cast<std::uint64_t>(IncidentKind::retry);
  constexpr auto kLastOfOld = static_cast<std::uint64_t>(IncidentKind::hide_outbox);
  constexpr auto kLastOfLater = static_cast<std::uint64_t>(IncidentKind::suspend_all);
  for (std::uint64_t i = 0; i < doings; ++i)
    add(static_cast<IncidentKind>(1 + draw.below(kDoings)), scenario.length);
  for (std::uint64_t i = 0; i < trouble; ++i)
    add(static_cast<IncidentKind>(kDoings + 1 + draw.below(kLastOfOld - kDoings)), scenario.length);
  // In some, pilots die for no reason until their tasks are set aside.
  if (draw.chance(5)) {
    for (int i = 0; i < 60; ++i) add(IncidentKind::kill_pilot, scenario.length);
  }
  // Kinds that came later are drawn from a branch of their own: old seeds keep what they had.
  draw = Draw(seed).of({5});
  if (trouble >= 4 && draw.chance(40)) {
    const std::uint64_t more = 1 + draw.below(4);
    for (std::uint64_t i = 0; i < more; ++i)
      add(static_cast<IncidentKind>(kLastOfOld + 1 + draw.below(kLastOfLater - kLastOfOld)),
          scenario.length);
  }
  draw = Draw(seed).of({7});
  if (draw.chance(25)) {
    const std::uint64_t keeps = 1 + draw.below(4);
    for (std::uint64_t i = 0; i < keeps; ++i) add(IncidentKind::keep, scenario.length);
  }
  std::stable_sort(scenario.incidents.begin(), scenario.incidents.end(),
                   [](const Incident& a, const Incident& b) { return a.at < b.at; });
  return scenario;
}

std::string to_text(const Scenario& scenario) {
  std::string text = fmt::format("seed {}{}\n", scenario.seed, has_local(scenario) ? " local" : "");
  for (const Incident& incident : scenario.incidents) {
    text += fmt::format("{} {} {} {}\n", incident.at.count(), name_of(incident.kind),
                        incident.which, incident.length.count());
  }
  return text;
}

namespace {

std::optional<Incident> read_incident(std::istringstream words) {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::string name;
  Incident incident;
  if (!(words >> at >> name >> incident.which >> length)) return std::nullopt;
  const auto kind =
      std::find_if(kTexts.begin(), kTexts.end(), [&](const KindText& k) { return k.name == name; });
  if (kind == kTexts.end()) return std::nullopt;
  incident.at = Duration{at};
  incident.kind = static_cast<IncidentKind>(kind - kTexts.begin());
  incident.length = Duration{length};
  return incident;
}

std::optional<Scenario> read_seed(std::istringstream words) {
  std::string word;
  std::string local;
  std::uint64_t seed = 0;
  if (!(words >> word >> seed) || word != "seed") return std::nullopt;
  words >> local;
  if (!local.empty() && local != kLocalSite) return std::nullopt;
  return empty_scenario(seed, !local.empty());
}

}  // namespace

Scenario read_scenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the scenario " + path);
  std::optional<Scenario> scenario;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    const auto wrong = [&](std::string_view expected) {
      return std::runtime_error(fmt::format("{}:{}: expected {}", path, number, expected));
    };
    if (!scenario) {
      scenario = read_seed(std::istringstream(line));
      if (!scenario) throw wrong("'seed NUMBER' or 'seed NUMBER local'");
    } else {
      const auto incident = read_incident(std::istringstream(line));
      if (!incident) throw wrong("'MICROSECONDS INCIDENT NUMBER MICROSECONDS'");
      scenario->incidents.push_back(*incident);
    }
  }
  if (!scenario) throw std::runtime_error(path + ": there is no line with a seed");
  return *scenario;
}

}  // namespace hpcbatch::clockwork
