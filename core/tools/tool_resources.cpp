#include "tools/tool_resources.hpp"

#include "documents/text_check.hpp"
#include "model/quantities.hpp"
#include "model/site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace hpcbatch {
namespace {

constexpr double kMostBytes = 512.0 * 1024 * 1024 * 1024 * 1024;
constexpr double kMostSeconds = 366.0 * 24 * 3600;
constexpr double kMostCpus = 65536;
constexpr double kMostGpus = 1024;

ToolAmount parse_amount(const View& view, Measure measure, const ToolNames& names) {
  std::string text = view.non_empty_text();
  // The ways in which people write a constant, `HH:MM:SS` among them, mean here what they mean
  // everywhere.
  if (const auto time = measure == Measure::Seconds ? parse_duration(text) : std::nullopt) {
    text = fmt::format("{:.6f}", static_cast<double>(time->count()) / 1e6);
  } else if (const auto size = measure == Measure::Bytes ? parse_size(text) : std::nullopt) {
    text = fmt::format("{}", *size);
  }
  try {
    check_units(text, measure);
    return ToolAmount{Expression(text, names.known, names.open),
                      fmt::format("{}:{}: '{}'", view.file(), view.line(), view.name())};
  } catch (const std::invalid_argument& e) {
    view.fail(fmt::format("'{}' must be an amount or an expression, not '{}': {}", view.name(),
                          show_text(view.text(), 60), e.what()));
  }
}

Result<double> amount_of(const ToolAmount& amount, const std::map<std::string, double>& values,
                         double least, double most) {
  const double value = amount.expression.evaluate(values);
  if (!(value >= least && value <= most)) {
    return Error{
        Error::Kind::Rejected,
        fmt::format("{} comes out as {:g} for this request, expected {:g} to {:g}; look at its "
                    "expression: {}",
                    amount.place, value, least, most, amount.expression.text())};
  }
  return value;
}

}  // namespace

ToolResources parse_resources(const View& view, const ToolNames& names) {
  MapView map = view.map();
  ToolResources resources;
  if (const auto cpus = map.find("cpus"))
    resources.cpus = parse_amount(*cpus, Measure::Count, names);
  if (const auto memory = map.find("memory"))
    resources.memory = parse_amount(*memory, Measure::Bytes, names);
  if (const auto disk = map.find("disk"))
    resources.disk = parse_amount(*disk, Measure::Bytes, names);
  if (const auto time = map.find("time"))
    resources.time = parse_amount(*time, Measure::Seconds, names);
  if (const auto gpus = map.find("gpus")) {
    if (gpus->node().kind == Node::Kind::Map) {
      for (const View& kind : gpus->map().entries()) {
        if (!is_word(kind.name())) kind.fail("a kind of GPU must be a name such as a100");
        resources.gpus.emplace(kind.name(), parse_amount(kind, Measure::Count, names));
      }
    } else {
      resources.gpus.emplace("", parse_amount(*gpus, Measure::Count, names));
    }
  }
  if (const auto tags = map.find("tags")) {
    for (const View& tag : tags->list()) resources.tags.push_back(tag.tag());
    std::sort(resources.tags.begin(), resources.tags.end());
  }
  if (const auto limit = map.find("output_limit")) {
    const bool has_none = limit->node().kind == Node::Kind::Scalar && limit->node().text == "none";
    resources.output_limit = has_none ? kNoOutputLimit : limit->size();
    if (resources.output_limit < kLeastOutputLimit)
      limit->expected("a size of at least 1K, or none");
  }
  map.finish();
  return resources;
}

std::vector<const ToolAmount*> amounts(const ToolResources& resources) {
  std::vector<const ToolAmount*> all;
  for (const auto* amount :
       {&resources.cpus, &resources.memory, &resources.disk, &resources.time}) {
    if (*amount) all.push_back(&**amount);
  }
  for (const auto& [kind, amount] : resources.gpus) all.push_back(&amount);
  return all;
}

Result<Needs> evaluate(const ToolResources& resources,
                       const std::map<std::string, double>& values) {
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(1));
  needs.tags = resources.tags;
  if (resources.cpus) {
    const auto cpus = amount_of(*resources.cpus, values, 0.01, kMostCpus);
    if (!cpus) return cpus.error();
    needs.amounts.set(kCpus, Amount::of_fraction(*cpus));
  }
  for (const auto& [name, amount] :
       {std::pair{kMemory, &resources.memory}, std::pair{kDisk, &resources.disk}}) {
    if (!*amount) continue;
    const auto bytes = amount_of(**amount, values, 0, kMostBytes);
    if (!bytes) return bytes.error();
    needs.amounts.set(name, Amount::of(static_cast<std::int64_t>(std::ceil(*bytes))));
  }
  if (resources.time) {
    const auto seconds = amount_of(*resources.time, values, 0.001, kMostSeconds);
    if (!seconds) return seconds.error();
    needs.time = Duration{static_cast<std::int64_t>(std::llround(*seconds * 1e6))};
  }
  for (const auto& [kind, amount] : resources.gpus) {
    const auto count = amount_of(amount, values, 0, kMostGpus);
    if (!count) return count.error();
    const std::string name = kind.empty() ? std::string(kAnyGpu) : std::string(kGpuPrefix) + kind;
    needs.amounts.set(name, Amount::of(static_cast<std::int64_t>(std::ceil(*count))));
  }
  return needs;
}

}  // namespace hpcbatch
