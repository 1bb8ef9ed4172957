#include "model/site.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

namespace hpcbatch {
namespace {

bool is_below(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

PathMap everything_shared() {
  return {{"/", "/"}};
}

std::optional<std::string> seen_as(const PathMap& map, const std::string& path) {
  if (!path.starts_with('/')) return std::nullopt;
  // What leads back out of a folder is looked at as where it leads, as far as names tell.
  const std::string plain = path.find("..") == std::string::npos
                                ? path
                                : std::filesystem::path(path).lexically_normal().string();
  const SharedFolder* innermost = nullptr;
  for (const SharedFolder& folder : map) {
    if (is_below(plain, folder.here) &&
        (innermost == nullptr || folder.here.size() > innermost->here.size()))
      innermost = &folder;
  }
  if (innermost == nullptr) return std::nullopt;
  if (innermost->here == innermost->there) return plain;
  const std::size_t cut = innermost->here == "/" ? 0 : innermost->here.size();
  const std::string rest = plain.substr(cut);
  if (innermost->there == "/") return rest.empty() ? "/" : rest;
  return innermost->there + (rest == "/" ? "" : rest);
}

namespace {

constexpr std::array<std::string_view, 3> kEstimateWords{"off", "advise", "use"};

}  // namespace

std::string_view to_string(EstimateMode mode) {
  return kEstimateWords.at(static_cast<std::size_t>(mode));
}

std::optional<EstimateMode> parse_estimate_mode(std::string_view word) {
  const auto at = std::find(kEstimateWords.begin(), kEstimateWords.end(), word);
  if (at == kEstimateWords.end()) return std::nullopt;
  return static_cast<EstimateMode>(at - kEstimateWords.begin());
}

std::int64_t pilots_own_memory(std::int64_t bytes) {
  return std::min(bytes, std::max<std::int64_t>(bytes / 50, std::int64_t{100} << 20));
}

Resources usable(const Shape& shape) {
  Resources left = shape.capacity;
  if (const Amount memory = left.get(kMemory); memory != Amount{}) {
    left.set(kMemory, Amount::of(memory.whole() - pilots_own_memory(memory.whole())));
  }
  return left;
}

Duration end_margin(Duration walltime) {
  using namespace std::chrono_literals;
  // Short allocations keep most of their time: a tenth of it, at most 90 s (what SLURM was seen to
  // need).
  return std::min<Duration>(90s, walltime / 10);
}

Duration start_allowance(Duration walltime) {
  using namespace std::chrono_literals;
  return std::min<Duration>(30s, walltime / 50);
}

std::optional<Duration> longest_task(const Shape& shape) {
  if (shape.walltime == Duration{}) return std::nullopt;
  return shape.walltime - end_margin(shape.walltime) - start_allowance(shape.walltime);
}

bool could_run(const Needs& needs, const Shape& shape) {
  const auto longest = longest_task(shape);
  return needs.nodes <= shape.nodes && way_into(needs, usable(shape)) &&
         (!longest || time_to_begin(needs).value_or(Duration{}) <= *longest) &&
         has_tags(shape.tags, shape.made_for, needs);
}

std::vector<LinkKind> link_ways(const Site& site) {
  if (site.link != LinkKind::Auto) return {site.link};
  // Where the engine itself is on the login node a relay there is no nearer to the pilots.
  if (site.transport == "shared_fs") return {LinkKind::Direct, LinkKind::Spool};
  return {LinkKind::Direct, LinkKind::Relay, LinkKind::Spool};
}

bool has_way(const Site& site, LinkKind way) {
  const auto ways = link_ways(site);
  return std::find(ways.begin(), ways.end(), way) != ways.end();
}

namespace {

constexpr char kBetween = '+';  // in no name of the configuration and in no choice
constexpr std::size_t kLongest = 200;

/// Calls `take` for each piece of a text.
template <class Take>
void each_piece(std::string_view text, char between, Take take) {
  while (true) {
    const auto end = std::min(text.find(between), text.size());
    take(text.substr(0, end));
    if (end == text.size()) return;
    text.remove_prefix(end + 1);
  }
}

bool has_tag(const std::vector<std::string>& tags, const std::string& asked) {
  if (std::binary_search(tags.begin(), tags.end(), asked)) return true;
  const std::string key(key_of(asked));
  const bool any_of = key == "partition";
  if (!any_of && (key != "constraint" || asked.find_first_of("|[](*") != std::string::npos))
    return false;
  std::size_t pieces = 0;
  std::size_t found = 0;
  each_piece(std::string_view(asked).substr(key.size() + 1), any_of ? ',' : '&',
             [&](std::string_view name) {
               const std::string tag = key + "=" + std::string(name);
               found += std::binary_search(tags.begin(), tags.end(), tag) ? 1 : 0;
               ++pieces;
             });
  return any_of ? found != 0 : found == pieces;
}

/// Some programs of batch systems hand a line to a shell (SLURM's qsub).
bool is_plain(std::string_view key, std::string_view value) {
  static constexpr std::string_view kPlain = "_.:,@/=-";
  static constexpr std::string_view kOfExpressions = "&|()[]*";
  const bool may_be_expression =
      key == "constraint" || key == "prefer" || key == "licenses" || key == "nodelist";
  return !value.empty() && value.front() != '-' && value.size() <= kLongest &&
         std::all_of(value.begin(), value.end(), [&](unsigned char c) {
           return (c < 128 && std::isalnum(c) != 0) ||
                  kPlain.find(static_cast<char>(c)) != std::string_view::npos ||
                  (may_be_expression &&
                   kOfExpressions.find(static_cast<char>(c)) != std::string_view::npos);
         });
}

}  // namespace

std::string_view key_of(std::string_view tag) {
  const auto end = tag.find('=');
  return end == std::string_view::npos ? std::string_view{} : tag.substr(0, end);
}

bool may_choose(const Site& site, std::string_view tag) {
  const std::string_view key = key_of(tag);
  if (!site.choices || key.empty() || !is_plain(key, tag.substr(key.size() + 1))) return false;
  const auto values = site.choices->find(std::string(key));
  if (values == site.choices->end()) return false;
  const std::string_view value = tag.substr(key.size() + 1);
  return values->second.empty() ||
         std::find(values->second.begin(), values->second.end(), value) != values->second.end();
}

std::vector<std::string> choices_of(const Needs& needs, const Site& site) {
  std::vector<std::string> choices;
  for (const std::string& tag : needs.tags) {
    const auto of_key = [&](const std::string& other) { return key_of(other) == key_of(tag); };
    if (may_choose(site, tag) && std::count_if(needs.tags.begin(), needs.tags.end(), of_key) == 1)
      choices.push_back(tag);
  }
  return choices;
}

bool has_tags(const std::vector<std::string>& tags, const std::vector<std::string>& asked) {
  return std::all_of(asked.begin(), asked.end(),
                     [&](const std::string& tag) { return has_tag(tags, tag); });
}

bool has_tags(const std::vector<std::string>& tags, const std::vector<std::string>& made_for,
              const Needs& needs) {
  return has_tags(tags, needs.tags) &&
         std::includes(needs.tags.begin(), needs.tags.end(), made_for.begin(), made_for.end());
}

Shape made_for(const Shape& configured, const std::vector<std::string>& choices) {
  Shape shape = configured;
  shape.made_for.clear();
  for (const std::string& choice : choices) {
    if (std::binary_search(configured.tags.begin(), configured.tags.end(), choice)) continue;
    std::erase_if(shape.tags,
                  [&](const std::string& tag) { return key_of(tag) == key_of(choice); });
    shape.made_for.push_back(choice);
    shape.name += kBetween + choice;
  }
  shape.tags.insert(shape.tags.end(), shape.made_for.begin(), shape.made_for.end());
  std::sort(shape.tags.begin(), shape.tags.end());
  return shape;
}

std::string configured_name(std::string_view shape) {
  return std::string(shape.substr(0, shape.find(kBetween)));
}

std::vector<std::string> choices_in_name(std::string_view shape) {
  std::vector<std::string> choices;
  each_piece(shape, kBetween, [&](std::string_view piece) { choices.emplace_back(piece); });
  choices.erase(choices.begin());
  return choices;
}

namespace {

constexpr std::array<std::string_view, 6> kAllocationStates{"intended", "submitting", "unclear",
                                                            "queued",   "running",    "ended"};

}  // namespace

std::string_view to_string(AllocationState state) {
  return kAllocationStates[static_cast<std::size_t>(state)];
}

}  // namespace hpcbatch
