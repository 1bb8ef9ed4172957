#include "cli/work/many.hpp"

#include "cli/work/items.hpp"
#include "cli/work/submission.hpp"
#include "model/index_set.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch {

std::uint64_t failures_allowed(const HaltOption& halt, std::uint64_t tasks) {
  if (!halt.share) return halt.failures.value_or(0);
  // With that share of them it is over, and with one in any case.
  const double at = std::ceil(*halt.share * static_cast<double>(tasks));
  return static_cast<std::uint64_t>(std::max(at, 1.0)) - 1;
}

boost::json::object task_of_many(const WorkOptions& work, const ManyOptions& many,
                                 const std::string& directory, const Interrupt& interrupt) {
  Items items;
  if (!many.items.sources.empty()) items = read_items(many.items, interrupt);
  boost::json::object task = task_of(work, directory, items);
  std::uint64_t tasks = std::max<std::size_t>(items.items.size(), 1);
  if (many.array) {
    task["array"] = many.array->indices;
    if (const auto indices = parse_index_set(many.array->indices)) tasks = indices->size();
  }
  const std::uint32_t most =
      many.max_running == 0 && many.array ? many.array->max_running : many.max_running;
  if (most > 0) task["max_running"] = most;
  if (many.halt) {
    task["max_failures"] = failures_allowed(*many.halt, tasks);
    if (many.halt->ends_running) task["halt_running"] = true;
  }
  return task;
}

}  // namespace hpcbatch
