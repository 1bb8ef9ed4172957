#include "asked.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <string_view>

namespace hpcbatch::pbs {
namespace {

/// "2:ppn=4+n7:ppn=2", as Torque keeps it.
double cpus_of_nodes(std::string_view spec) {
  double cpus = 0;
  for (const std::string_view group : parts_of(spec, '+')) {
    const auto words = parts_of(group, ':');
    double of_one = 1;
    for (const std::string_view word : words) {
      if (word.starts_with("ppn=")) of_one = bounded(read_number(word.substr(4)));
    }
    // Else it is one node by its name.
    const auto count = words.empty() ? std::nullopt : read_number(words.front());
    cpus += of_one * bounded(count.value_or(1));
  }
  return std::min(cpus, static_cast<double>(kMostCpusOfAJob));
}

}  // namespace

double bounded(std::optional<long> count) {
  return static_cast<double>(std::clamp(count.value_or(0), 0L, kMostCpusOfAJob));
}

/// OpenPBS has the sum of all chunks in ncpus; Torque leaves it at one where nodes are asked for.
double cpus_asked_for(const Record& job) {
  const double cpus = std::max({bounded(read_number(job.value("Resource_List.ncpus"))),
                                bounded(read_number(job.value("Resource_List.procs"))),
                                cpus_of_nodes(job.value("Resource_List.nodes"))});
  return std::max({cpus, bounded(read_number(job.value("Resource_List.nodect"))), 1.0});
}

std::chrono::seconds limit_asked_for(const Record& job) {
  return std::min(kNoLimit, pbs_time(job.value("Resource_List.walltime")).value_or(kNoLimit));
}

}  // namespace hpcbatch::pbs
