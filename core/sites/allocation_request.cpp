#include "sites/allocation_request.hpp"

#include "documents/texts.hpp"
#include "hpcbatch/answer_bounds.hpp"
#include "hpcbatch/choices.hpp"
#include "model/site.hpp"
#include "plugin_host/guarded.hpp"
#include "wire/encrypted_link.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

/// Lets the pilot see what the lines behind it change, which its tasks get as well.  A variable has
/// 128 KiB at most (execve(2), MAX_ARG_STRLEN): with more none of it is known.
constexpr const char* kBeforeSetup =
    "HPCBATCH_BEFORE_SETUP=$(env -0 2>/dev/null | tr '\\000' '\\001'); "
    "[ ${#HPCBATCH_BEFORE_SETUP} -lt 100000 ] || HPCBATCH_BEFORE_SETUP=; export "
    "HPCBATCH_BEFORE_SETUP";

std::vector<std::string> seen_by_the_pilot(std::vector<std::string> setup) {
  if (!setup.empty()) setup.insert(setup.begin(), kBeforeSetup);
  return setup;
}

constexpr std::size_t kLongestReason = 500;
constexpr std::size_t kLongestNumber = 64;

bool is_allocation_name(std::string_view name) {
  return !name.empty() && name.size() <= wire::kLongestAllocationName &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

/// Also of a list that could not be taken apart.
bool is_node_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestNodeName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

AllocationRequest allocation_request(const Site& site, const Shape& shape, const std::string& name,
                                     std::vector<std::string> pilot) {
  AllocationRequest request{
      .name = name,
      .partition = shape.partition,
      .nodes = shape.nodes,
      .cpus = shape.capacity.get(kCpus).value(),
      .memory = site.asks_for_memory
                    ? static_cast<std::uint64_t>(shape.capacity.get(kMemory).whole())
                    : 0,
      .gpus = {},
      .walltime = std::chrono::duration_cast<std::chrono::seconds>(shape.walltime),
      .options = site.options,
      .setup = seen_by_the_pilot(site.setup),
      .pilot = std::move(pilot),
      .directory = site.workspace + "/allocations"};
  for (const auto& [kind, amount] : shape.capacity.entries()) {
    if (kind.starts_with(kGpuPrefix)) {
      const std::string gpu = kind.substr(kGpuPrefix.size());
      request.gpus[gpu == kGpuWithoutKind ? "" : gpu] = static_cast<std::uint32_t>(amount.whole());
    }
  }
  return request;
}

Result<void> settle_choices(Site& site, const Scheduler& scheduler) {
  std::vector<std::string> keys;
  if (const auto* choices = dynamic_cast<const Choices*>(&scheduler)) {
    auto found = guarded("scheduler", [&] { return choices->choice_keys(); });
    if (!found) return found.error();
    keys = std::move(*found);
  }
  if (!site.choices) {
    site.choices.emplace();
    for (const std::string& key : keys) site.choices->try_emplace(key);
  }
  for (const auto& [key, values] : *site.choices) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    return Error{
        Error::Kind::Rejected,
        fmt::format("site {}: 'choices' has '{}', for which the scheduler {} has no word; {}",
                    site.name, key, site.scheduler,
                    keys.empty() ? "tasks can choose nothing there"
                                 : fmt::format("tasks can choose {}", fmt::join(keys, ", ")))};
  }
  for (const Shape& shape : site.shapes) {
    for (const std::string& tag : shape.tags) {
      // What nodes have is true of them whoever asks; what is chosen must be said to the batch
      // system.
      const std::string key(key_of(tag));
      if (key == "constraint" || std::find(keys.begin(), keys.end(), key) == keys.end()) continue;
      return Error{
          Error::Kind::Rejected,
          fmt::format("site {}: shape {} has the tag {}, which tasks choose by themselves; "
                      "leave it out, or for all batch jobs of the site say it under "
                      "'options'",
                      site.name, shape.name, tag)};
    }
  }
  return {};
}

Result<void> add_choices(const Scheduler& scheduler, const std::vector<std::string>& choices,
                         AllocationRequest& request) {
  if (choices.empty()) return {};
  const auto* writer = dynamic_cast<const Choices*>(&scheduler);
  if (!writer) {
    return Error{Error::Kind::Rejected,
                 fmt::format("the scheduler has no word for {}", fmt::join(choices, ", "))};
  }
  auto options = guarded("scheduler", [&] { return writer->options_for(choices); });
  if (!options) return options.error();
  request.options.insert(request.options.end(), options->begin(), options->end());
  return {};
}

std::vector<BatchJob> plain_jobs(std::vector<BatchJob> jobs) {
  std::erase_if(jobs, [](const BatchJob& job) { return !is_allocation_name(job.name); });
  for (BatchJob& job : jobs) {
    job.number = show_text(job.number, kLongestNumber);
    job.reason = show_text(job.reason, kLongestReason);
    std::erase_if(job.nodes, [](const std::string& name) { return !is_node_name(name); });
  }
  return jobs;
}

}  // namespace hpcbatch
