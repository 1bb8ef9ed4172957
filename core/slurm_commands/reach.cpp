#include "slurm_commands/reach.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace hpcbatch::slurm_commands {

IndexSet Reach::changed() const {
  IndexSet all;
  for (const Job& job : jobs) all.add(job.indices);
  return all;
}

Reach reach_of(const std::vector<Job>& all, const JobName& name,
               const std::function<std::string(const Job&)>& why) {
  Reach reach{.number = name.number, .is_array = name.indices.has_value()};
  std::vector<Job> named = all;
  std::erase_if(named, [&](const Job& job) { return !is_named(job, name); });
  cut_to(named, {name});
  IndexSet unknown = name.indices.value_or(IndexSet{});
  for (const Job& job : named) {
    reach.number = array_number_of(job);
    reach.is_array = job.is_array;
    unknown.remove(user_indices(job));
    if (const std::string text = why(job); text.empty())
      reach.jobs.push_back(job);
    else
      reach.refused[text].add(user_indices(job));
  }
  if (named.empty() || !unknown.empty()) reach.refused["Invalid job id specified"] = unknown;
  if (reach.jobs.empty()) return reach;
  if (!name.indices) reach.refused.erase(kIsOver);
  const IndexSet changed = reach.changed();
  reach.is_whole = std::all_of(all.begin(), all.end(), [&](const Job& job) {
    IndexSet left = job.indices;
    left.remove(changed);
    return left.empty() || !why(job).empty();
  });
  return reach;
}

bool complain_of(const Reach& reach) {
  if (reach.refused.empty()) return false;
  std::vector<std::pair<IndexSet, std::string>> lines;
  for (const auto& [why, indices] : reach.refused) lines.emplace_back(indices, why);
  IndexSet changed;
  for (const Job& job : reach.jobs) changed.add(user_indices(job));
  if (!changed.empty()) lines.emplace_back(changed, "No error");
  const auto first = [](const auto& line) {
    return line.first.empty() ? 0 : line.first.ranges().back().first;
  };
  std::sort(lines.begin(), lines.end(),
            [&](const auto& a, const auto& b) { return first(a) < first(b); });
  const std::string number = std::to_string(reach.number);
  for (const auto& [indices, why] : lines) {
    if (reach.is_array && !indices.empty()) {
      std::fprintf(stderr, "%s_%s: %s\n", number.c_str(), to_string(indices).c_str(), why.c_str());
    } else {
      std::fprintf(stderr, "%s for job %s\n", why.c_str(), number.c_str());
    }
  }
  return true;
}

}  // namespace hpcbatch::slurm_commands
