#include "api/make/gpu_terms.hpp"

#include "api/read/bad_request.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace hpcbatch {
namespace {

/// Kinds of GPU that a demand would take, where its task may run.
std::set<std::string> gpu_kinds_for(std::string_view demand, const std::vector<const Site*>& sites,
                                    const Needs& needs) {
  std::set<std::string> kinds;
  for (const Site* site : sites) {
    if (!may_run_at(needs, site->name)) continue;
    for (const Shape& shape : site->shapes) {
      for (const auto& [supply, unused] : shape.capacity.entries()) {
        if (takes_gpu(demand, supply)) kinds.insert(supply.substr(kGpuPrefix.size()));
      }
    }
  }
  return kinds;
}

std::string gpu_kind_in_words(const std::string& kind) {
  const auto known = gpu_kind(kind);
  return known ? fmt::format("{} ({}, {})", kind, show_size(known->memory),
                             show_capability(known->capability))
               : kind + " (not known)";
}

[[noreturn]] void refuse_gpu_terms(const GpuTerms& terms, const std::set<std::string>& kinds) {
  std::vector<std::string> asked, there;
  if (terms.memory != 0) asked.push_back(show_size(terms.memory) + " of memory");
  if (terms.capability != 0) asked.push_back("capability " + show_capability(terms.capability));
  for (const std::string& kind : kinds) there.push_back(gpu_kind_in_words(kind));
  throw BadRequest(fmt::format("never_fits: no kind of GPU has {}; {}", fmt::join(asked, " and "),
                               there.empty()
                                   ? std::string("no shape has any that it would take")
                                   : fmt::format("there are {}", fmt::join(there, ", "))));
}

}  // namespace

void choose_gpu_kinds(const GpuTerms& terms, const std::vector<const Site*>& sites, Needs& needs) {
  if (!terms.any()) return;
  const auto& entries = needs.amounts.entries();
  const auto demand = std::find_if(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.first.starts_with(kAnyGpu);
  });
  if (demand == entries.end()) return;
  const auto [name, amount] = *demand;
  const std::set<std::string> kinds = gpu_kinds_for(name, sites, needs);
  std::set<std::string> good;
  std::copy_if(kinds.begin(), kinds.end(), std::inserter(good, good.end()),
               [&](const std::string& kind) {
                 const auto known = gpu_kind(kind);
                 return known && meets(*known, terms);
               });
  if (good.empty()) refuse_gpu_terms(terms, kinds);
  needs.amounts.set(name, {});
  needs.amounts.set(
      std::string(kGpuPrefix) + fmt::format("{}", fmt::join(good, std::string(1, kGpuEither))),
      amount);
}

void choose_ways(const std::vector<AskedWay>& ways, const std::vector<const Site*>& sites,
                 Needs& needs) {
  if (ways.empty()) return;
  Resources common = needs.amounts;
  for (const auto& [name, amount] : needs.amounts.entries())
    if (name == kCpus || name.starts_with(kAnyGpu)) common.set(name, {});
  std::vector<Resources> good;
  std::optional<BadRequest> refused;
  for (const AskedWay& way : ways) {
    Needs alone = needs;
    alone.amounts = common;
    for (const auto& [name, amount] : way.amounts.entries()) alone.amounts.set(name, amount);
    try {
      choose_gpu_kinds(way.gpu_terms, sites, alone);
      good.push_back(std::move(alone.amounts));
    } catch (const BadRequest& e) {
      refused = e;
    }
  }
  if (good.empty()) throw BadRequest(*refused);
  needs.amounts = std::move(good.front());
  needs.device.edit().instead.assign(std::make_move_iterator(good.begin() + 1),
                                     std::make_move_iterator(good.end()));
}

}  // namespace hpcbatch
