#include "runtime/site_choices.hpp"

#include "model/choices.hpp"
#include "plugin_host/guarded.hpp"

#include "hpcbatch/choices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hpcbatch {
namespace {

/// Gives the shape the tag where it has none of that key.
void add_tag(Shape& shape, const std::string& choice) {
  const bool is_said =
      std::any_of(shape.tags.begin(), shape.tags.end(),
                  [&](const std::string& tag) { return key_of(tag) == key_of(choice); });
  if (is_said) return;
  shape.tags.insert(std::lower_bound(shape.tags.begin(), shape.tags.end(), choice), choice);
}

}  // namespace

Result<void> settle_choices(Site& site, const Scheduler& scheduler) {
  std::vector<std::string> keys;
  std::vector<std::string> made;
  if (const auto* choices = dynamic_cast<const Choices*>(&scheduler)) {
    auto found = guarded("scheduler", [&] { return choices->choice_keys(); });
    if (!found) return found.error();
    keys = std::move(*found);
    auto said = guarded("scheduler", [&] { return choices->choices_in(site.options); });
    if (!said) return said.error();
    made = std::move(*said);
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
  for (Shape& shape : site.shapes)
    for (const std::string& choice : made) add_tag(shape, choice);
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
