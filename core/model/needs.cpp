#include "model/needs.hpp"

#include "model/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hpcbatch {
namespace {

/// The next of a fixed ladder of values whose steps are 1/8 to 1/16 of the value: about 10 %.
std::int64_t round_up(std::int64_t value) {
  if (value <= 16) return value;
  const int bits = 64 - __builtin_clzll(static_cast<std::uint64_t>(value));
  const std::int64_t step = std::int64_t{1} << (bits - 4);
  return (value + step - 1) / step * step;
}

}  // namespace

Needs class_of(const Needs& needs) {
  Needs rounded = needs;
  for (const std::string_view name : {kMemory, kDisk}) {
    if (const Amount amount = needs.amounts.get(name); amount != Amount{}) {
      rounded.amounts.set(name, Amount{round_up(amount.ticks)});
    }
  }
  if (needs.time) rounded.time = Duration{round_up(needs.time->count())};
  return rounded;
}

std::string show(const Needs& needs) {
  std::string text = show(needs.amounts);
  if (needs.time) text += ", " + show_duration(*needs.time);
  if (!needs.site.empty()) text += ", site " + needs.site;
  if (!needs.tags.empty()) text += fmt::format(", tags {}", fmt::join(needs.tags, " "));
  if (needs.nodes != 1) text += fmt::format(", {} nodes", needs.nodes);
  if (!needs.service.empty()) text += ", service " + needs.service;
  return text;
}

}  // namespace hpcbatch
