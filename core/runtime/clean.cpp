// Runtime: workspaces are cleaned of what nobody needs, once a day and when somebody asks.
#include "runtime/runtime.hpp"

#include "plugin_host/guarded.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace hpcbatch {
namespace {

constexpr std::chrono::hours kCleanEvery{24};
constexpr std::size_t kRemovedTogether = 200;

Result<Cleaning> clean_site(Transport& transport, const std::string& workspace,
                            const KeepRules& rules, bool is_trial, Deadline deadline) {
  return guarded("transport", [&]() -> Result<Cleaning> {
    const auto output = transport.run(list_files_of(workspace), deadline);
    if (!output) return output.error();
    auto files = read_listing(*output);
    if (!files) return files.error();
    Cleaning cleaning = decide_cleaning(std::move(*files), rules);
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < cleaning.gone.size() && !is_trial; ++i) {
      paths.push_back(workspace + "/" + cleaning.gone[i].path);
      if (paths.size() < kRemovedTogether && i + 1 < cleaning.gone.size()) continue;
      if (auto removed = transport.remove(std::exchange(paths, {}), deadline); !removed)
        return removed.error();
    }
    return cleaning;
  });
}

}  // namespace

KeepRules Runtime::keep_rules(const Site& site, const std::vector<std::string>& pilots) const {
  KeepRules rules;
  rules.prefix = "h" + engine_name_;
  rules.program = programs_.at(site.name).path_in(site.workspace).substr(site.workspace.size() + 1);
  rules.keep_for = site.keep_for;
  rules.keep_limit = site.keep_limit;
  for (const std::string& pilot : pilots) rules.needed.insert(pilot.substr(0, pilot.find('.')));
  for (const auto& [id, entry] : engine_->sites().allocations()) {
    rules.needed.insert(id.name);
    rules.has_live = rules.has_live || entry.facts.site == site.name;
  }
  return rules;
}

void Runtime::clean(const std::string& name, bool is_trial,
                    std::function<void(Result<Cleaning>)> answer) {
  read([](store::Store& store) { return store.pilots_of_results(); },
       [this, name, is_trial, answer = std::move(answer)](const std::vector<std::string>& pilots) {
         SiteHands* hands = site(name);
         if (!hands || stopped_) return;
         auto result =
             std::make_shared<Result<Cleaning>>(Error{Error::Kind::Transient, "no answer"});
         hands->with_transport(
             [result, is_trial, workspace = hands->site().workspace,
              rules = keep_rules(hands->site(), pilots)](Transport& transport, Deadline deadline) {
               *result = clean_site(transport, workspace, rules, is_trial, deadline);
             },
             [result, answer](bool given_up) {
               if (given_up)
                 answer(Error{Error::Kind::Transient, "the workspace did not answer in time"});
               else
                 answer(std::move(*result));
             });
       });
}

void Runtime::clean_daily() {
  const auto now = std::chrono::steady_clock::now();
  if (cleaned_ && now < *cleaned_ + kCleanEvery) return;
  cleaned_ = now;
  for (const auto& site : sites_) {
    const std::string& name = site.first;
    clean(name, false, [name](const Result<Cleaning>& cleaning) {
      if (!cleaning) {
        spdlog::warn("cannot clean the workspace of {}: {}", name, cleaning.error().text);
      } else if (!cleaning->gone.empty()) {
        spdlog::info("{} old files, {} MB, were removed from the workspace of {}",
                     cleaning->gone.size(), cleaning->gone_bytes >> 20, name);
      }
    });
  }
}

}  // namespace hpcbatch
