#include "sites/site_choices.hpp"

#include "model/choices.hpp"
#include "plugin_host/guarded.hpp"

#include "hpcbatch/choices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hpcbatch {
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

}  // namespace hpcbatch
