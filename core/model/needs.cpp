#include "model/needs.hpp"

#include "model/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace hpcbatch {
namespace {

/// The next of a fixed ladder of values whose steps are 1/8 to 1/16 of the value: about 10 %.
std::int64_t round_up(std::int64_t value) {
  if (value <= 16) return value;
  const int bits = 64 - __builtin_clzll(static_cast<std::uint64_t>(value));
  const std::int64_t step = std::int64_t{1} << (bits - 4);
  if (value > Amount::kMost - step) return Amount::kMost;
  return (value + step - 1) / step * step;
}

}  // namespace

bool leaves_device_open(const Needs& needs) {
  if (!needs.device->instead.empty()) return true;
  const auto& entries = needs.amounts.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return names_several_gpus(entry.first); });
}

std::optional<std::size_t> way_into(const Needs& needs, const Resources& supply) {
  for (std::size_t way = 0; way < count_of_ways(needs); ++way) {
    if (fits(way_of(needs, way), supply)) return way;
  }
  return std::nullopt;
}

std::optional<std::string> device_in(const Needs& needs, const Resources& supply) {
  const auto way = way_into(needs, supply);
  if (!way) return std::nullopt;
  return std::string(device_of(resolve(way_of(needs, *way), supply)));
}

std::uint64_t how_often(const Needs& needs, const Resources& supply) {
  std::uint64_t most = 0;
  for (std::size_t way = 0; way < count_of_ways(needs); ++way)
    most = std::max(most, how_often(way_of(needs, way), supply));
  return most;
}

std::size_t way_on(const Needs& needs, std::string_view device) {
  for (std::size_t way = 0; way < count_of_ways(needs); ++way) {
    const Resources& amounts = way_of(needs, way);
    const bool has_gpus = amounts.gpus() != Amount{};
    if (device == kCpus
            ? !has_gpus
            : std::any_of(amounts.entries().begin(), amounts.entries().end(), [&](const auto& e) {
                return e.first == device || takes_gpu(e.first, device);
              }))
      return way;
  }
  return 0;
}

namespace {

/// Other GPUs take the place of all that were asked for.
void change_amounts(Resources& amounts, const Resources& change, bool takes_gpus) {
  if (takes_gpus && change.gpus() != Amount{}) set_gpus(amounts, {});
  for (const auto& [name, amount] : change.entries()) {
    if (takes_gpus || !name.starts_with(kAnyGpu)) amounts.set(name, amount);
  }
}

}  // namespace

Needs changed(Needs needs, const NeedsChange& change) {
  const auto has_gpus = [](const Resources& way) { return way.gpus() != Amount{}; };
  const std::vector<Resources>& ways = needs.device->instead;
  // A way on cpus alone stays one.
  const bool some_have = has_gpus(needs.amounts) || std::any_of(ways.begin(), ways.end(), has_gpus);
  change_amounts(needs.amounts, change.amounts, !some_have || has_gpus(needs.amounts));
  if (!ways.empty()) {
    // Cpus are what ways differ by.
    Resources beside_cpus = change.amounts;
    beside_cpus.set(kCpus, {});
    for (Resources& other : needs.device.edit().instead)
      change_amounts(other, beside_cpus, !some_have || has_gpus(other));
  }
  // None is no limit.
  if (change.time) needs.time = *change.time == Duration{} ? std::nullopt : change.time;
  if (change.time_request) needs.time_request = change.time_request;
  if (!needs.guess) return needs;
  // What is said now is guessed no longer.
  if (change.amounts.get(kMemory) != Amount{}) {
    needs.guess->memory = false;
    needs.guess->memory_asked = {};
  }
  if (change.time) needs.guess->time = false;
  if (change.amounts.gpus() != Amount{}) needs.guess->gpus = false;
  if (!needs.guess->memory && !needs.guess->time && !needs.guess->gpus) needs.guess.reset();
  return needs;
}

void set_gpus(Resources& amounts, Amount count) {
  const Resources before = amounts;
  for (const auto& [name, amount] : before.entries())
    if (name.starts_with(kAnyGpu)) amounts.set(name, count);
}

Needs as_asked(Needs needs) {
  if (!needs.guess) return needs;
  if (needs.guess->memory) needs.amounts.set(kMemory, needs.guess->memory_asked);
  if (needs.guess->time) needs.time.reset();
  if (needs.guess->gpus) set_gpus(needs.amounts, needs.guess->gpus_asked);
  needs.guess.reset();
  return needs;
}

bool gets_less(const Needs& before, const Needs& after) {
  // Who said no memory has a share of the node's, which is mostly less than what is said now.
  const auto is_less = [&](std::string_view name) {
    const Amount old = before.amounts.get(name), now = after.amounts.get(name);
    return now < old;
  };
  if (is_less(kCpus) || is_less(kMemory) || is_less(kDisk)) return true;
  if (after.amounts.gpus() < before.amounts.gpus()) return true;
  return after.time && (!before.time || *after.time < *before.time);
}

bool may_run_at(const Needs& needs, std::string_view site) {
  return (needs.site.empty() || needs.site == site) &&
         !std::binary_search(needs.not_on.begin(), needs.not_on.end(), site);
}

Needs class_of(const Needs& needs) {
  Needs rounded = needs;
  const auto round = [](Resources& amounts) {
    for (const std::string_view name : {kMemory, kDisk}) {
      if (const Amount amount = amounts.get(name); amount != Amount{})
        amounts.set(name, Amount{round_up(amount.ticks)});
    }
  };
  round(rounded.amounts);
  if (!rounded.device->instead.empty())
    for (Resources& other : rounded.device.edit().instead) round(other);
  if (const auto time = time_to_begin(needs)) rounded.time = Duration{round_up(time->count())};
  rounded.time_request.reset();
  // Of a guess a class knows that its time is no promise, and nothing else.
  if (needs.guess) rounded.guess.reset();
  if (needs.guess && needs.guess->time) rounded.guess.emplace().time = true;
  return rounded;
}

Needs with_files_at(const Needs& needs, const std::vector<std::string>& sites) {
  Needs there = needs;
  for (const std::string& site : needs.staged_to) {
    if (std::find(sites.begin(), sites.end(), site) == sites.end()) there.not_on.push_back(site);
  }
  std::sort(there.not_on.begin(), there.not_on.end());
  there.staged_to.clear();
  there.own_files = false;
  return there;
}

std::string show(const Needs& needs) {
  std::string text = show(needs.amounts);
  for (const Resources& other : needs.device->instead) text += " or " + show(other);
  if (needs.time) text += ", " + show_duration(*needs.time);
  if (needs.time_request)
    text += fmt::format(", at least {} at its start", show_duration(*needs.time_request));
  if (!needs.site.empty()) text += ", site " + needs.site;
  if (!needs.not_on.empty()) text += fmt::format(", not on {}", fmt::join(needs.not_on, " "));
  if (!needs.tags.empty()) text += fmt::format(", tags {}", fmt::join(needs.tags, " "));
  if (needs.nodes != 1) text += fmt::format(", {} nodes", needs.nodes);
  if (!needs.service.empty()) text += ", service " + needs.service;
  return text;
}

std::string guess_in_words(const Needs& needs) {
  const Guess& guess = *needs.guess;
  std::vector<std::string> parts;
  if (guess.memory) {
    Resources now, asked;
    now.set(kMemory, needs.amounts.get(kMemory));
    asked.set(kMemory, guess.memory_asked);
    parts.push_back(show(now) + (guess.memory_asked == Amount{} ? "" : " for " + show(asked)));
  }
  if (guess.gpus)
    parts.push_back(fmt::format("{:g} of a GPU for {:g}", needs.amounts.gpus().value(),
                                guess.gpus_asked.value()));
  if (guess.time) parts.push_back(show_duration(*needs.time) + " of time");
  return fmt::format("{} are guessed from {} of its kind: a need, and no limit",
                     fmt::join(parts, " and "), show_count(guess.runs, "run"));
}

namespace {

constexpr std::array<std::string_view, 5> kContainerRuntimes = {"apptainer", "singularity",
                                                                "podman", "charliecloud", "docker"};

}  // namespace

std::optional<ContainerBind> parse_container_bind(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(':');
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  ContainerBind bind;
  if (parts.size() > 1 && (parts.back() == "ro" || parts.back() == "rw")) {
    bind.read_only = parts.back() == "ro";
    parts.pop_back();
  }
  if (parts.size() > 2) return std::nullopt;
  bind.from = parts.front();
  bind.to = parts.back();
  const auto is_fine = [](const std::string& path) {
    return !path.empty() && (path.front() == '/' || path.front() == '{') &&
           path.find(',') == std::string::npos;
  };
  if (!is_fine(bind.from) || !is_fine(bind.to)) return std::nullopt;
  return bind;
}

std::string take_container_word(ContainerTerms& terms, std::string_view key,
                                std::string_view value) {
  if (key == "network") {
    if (value != "none" && value != "host") return "must be host or none";
    terms.no_network = value == "none";
  } else if (key == "gpu") {
    if (value != "true" && value != "false") return "must be true or false";
    terms.gpus = value == "true";
  } else if (key == "entrypoint") {
    if (value != "keep" && value != "none") return "must be keep or none";
    terms.keeps_entrypoint = value == "keep";
  } else if (key == "runtime") {
    if (std::find(kContainerRuntimes.begin(), kContainerRuntimes.end(), value) ==
        kContainerRuntimes.end())
      return "must be apptainer, singularity, podman, charliecloud or docker";
    terms.runtime = value;
  } else {
    return "is no key of a container; it has image, binds, network, gpu, entrypoint, environment "
           "and runtime";
  }
  return {};
}

}  // namespace hpcbatch
