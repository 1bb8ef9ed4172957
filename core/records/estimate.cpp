#include "records/estimate.hpp"

#include "model/quantities.hpp"
#include "model/site.hpp"
#include "records/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hpcbatch::records {
namespace {

constexpr double kMostOfThem = 0.95;
// Beyond what 95 of 100 took.
constexpr double kTimeRoom = 1.25;
// Who asks for less than so much of the estimate asks for about the right thing.
constexpr std::int64_t kMuchMore = 2;

bool fits_somewhere(const Needs& needs, const std::vector<const Site*>& sites) {
  return std::any_of(sites.begin(), sites.end(), [&](const Site* site) {
    // Shapes are made for what tasks may choose.
    Needs unchosen = needs;
    std::erase_if(unchosen.tags, [&](const std::string& tag) { return may_choose(*site, tag); });
    return may_run_at(needs, site->name) &&
           std::any_of(site->shapes.begin(), site->shapes.end(),
                       [&](const Shape& shape) { return could_run(unchosen, shape); });
  });
}

std::string bytes(std::int64_t value) {
  Resources one;
  one.set(kMemory, Amount::of(value));
  return show(one);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// `sample17.bam` -> `sample#.bam`.
std::string without_numbers(std::string_view name) {
  std::string kind;
  for (const char c : name) {
    if (!is_digit(c))
      kind += c;
    else if (kind.empty() || kind.back() != '#')
      kind += '#';
  }
  return kind;
}

std::string on_a_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  if (text.size() <= kLongestKind) return text;
  // Not within a letter of several bytes.
  std::size_t end = kLongestKind;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

std::optional<Estimate> estimate_of(const Profile& profile) {
  Estimate estimate;
  if (profile.memory.count() >= kFewestRuns) {
    estimate.runs = profile.memory.count();
    estimate.memory = static_cast<std::int64_t>(memory_for_most(profile));
  }
  if (profile.run.count() >= kFewestRuns) {
    estimate.runs = std::max(estimate.runs, profile.run.count());
    const double seconds = std::ceil(profile.run.quantile(kMostOfThem) * kTimeRoom) + 1;
    estimate.time = std::chrono::seconds(static_cast<std::int64_t>(seconds));
  }
  estimate.gpus = gpus_enough(profile);
  if (estimate.runs == 0) return std::nullopt;
  return estimate;
}

Estimated estimated(const Needs& needs, const Estimate& estimate, const std::string& kind,
                    EstimateMode mode, const std::vector<const Site*>& sites) {
  Estimated made{needs, {}};
  if (mode == EstimateMode::Off) return made;
  const std::int64_t asked = needs.amounts.get(kMemory).whole();
  const bool asks_for_much =
      asked != 0 && estimate.memory != 0 && asked >= kMuchMore * estimate.memory;
  if (asks_for_much) {
    made.advice.push_back(
        fmt::format("{} is asked for, and {} did for 95 of 100 of the {:.0f} runs of {} "
                    "that are known",
                    bytes(asked), bytes(estimate.memory), estimate.runs, kind));
  }
  const double gpus = needs.amounts.gpus().value();
  // Beside others it may take longer, and its limit stays.
  const bool has_time =
      !needs.time || (estimate.time != Duration{} && *needs.time >= kMuchMore * estimate.time);
  const bool asks_for_whole = estimate.gpus > 0 && gpus <= 1 && gpus > estimate.gpus && has_time;
  if (asks_for_whole) {
    made.advice.push_back(fmt::format(
        "{:g} of a GPU is asked for, and {:g} did for 95 of 100 of the runs of {} that are known",
        gpus, estimate.gpus, kind));
  }
  if (mode == EstimateMode::Advise) return made;
  Guess guess{.runs = static_cast<std::uint32_t>(std::min(estimate.runs, 1e9))};
  Needs guessed = needs;
  if (estimate.memory != 0 && (asked == 0 || asks_for_much)) {
    guess.memory = true;
    guess.memory_asked = needs.amounts.get(kMemory);
    guessed.amounts.set(kMemory, Amount::of(estimate.memory));
  }
  if (estimate.time != Duration{} && !time_to_begin(needs)) {
    guess.time = true;
    guessed.time = estimate.time;
  }
  if (asks_for_whole) {
    guess.gpus = true;
    guess.gpus_asked = needs.amounts.gpus();
    set_gpus(guessed.amounts, Amount::of_fraction(estimate.gpus));
  }
  if (!guess.memory && !guess.time && !guess.gpus) return made;
  guessed.guess = guess;
  if (fits_somewhere(guessed, sites)) made.needs = std::move(guessed);
  return made;
}

std::string kind_of(const KindHints& hints) {
  if (!hints.said.empty()) return on_a_line(std::string(hints.said));
  if (!hints.tool.empty()) return on_a_line(std::string(hints.tool));
  if (!hints.name.empty()) return on_a_line(without_numbers(hints.name));
  const std::size_t slash = hints.program.rfind('/');
  const std::string_view last =
      slash == std::string_view::npos ? hints.program : hints.program.substr(slash + 1);
  return last.empty() ? std::string(kOtherKinds) : on_a_line(std::string(last));
}

}  // namespace hpcbatch::records
