// What a scheduler plugin may add to its interface: a batch system's partitions in more detail than
// `probe` has, for the proposals of `sites check`.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"
#include "hpcbatch/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// Nodes of a partition that are alike.  What is 0 the batch system does not say.
struct NodeKind {
  std::uint32_t nodes{0};
  double cpus{0};
  std::uint64_t memory{0};                    ///< bytes
  std::map<std::string, std::uint32_t> gpus;  ///< by kind; kind "" is any
};

/// How many batch jobs one user may have; nothing where there is no limit, or none is known.
struct JobLimits {
  std::optional<std::uint32_t> running;
  std::optional<std::uint32_t> all;  ///< queued and running together
};

struct SurveyedPartition {
  std::string name;  ///< empty: the batch system has no partitions
  bool is_open{true};
  std::string why_closed;                        ///< the batch system's own word
  std::optional<std::chrono::seconds> walltime;  ///< longest allowed
  std::vector<NodeKind> kinds;
  JobLimits limits;
};

struct Survey {
  std::vector<SurveyedPartition> partitions;
  JobLimits limits;  ///< in all partitions together
};

/// A class that is a `Scheduler` may be this too; the engine finds out with a dynamic_cast, and
/// asks those that are not by `probe`.  Not part of `Scheduler`, so that plugins that know nothing
/// of it stay as they are.  The same promises: no I/O, no clock, callable from any thread.
class Surveyor {
 public:
  Surveyor() = default;
  Surveyor(const Surveyor&) = delete;
  Surveyor& operator=(const Surveyor&) = delete;
  virtual ~Surveyor() = default;

  virtual CommandLine survey() const = 0;
  virtual Result<Survey> read_survey(const CommandOutput& output) const = 0;
};

/// What a `Surveyor` has for `read_probe`, where `probe` asks what `survey` does: of each partition
/// the most that a batch job may have on a node of it; of a closed one perhaps nothing.
inline Result<std::vector<Offer>> offers_in(const Result<Survey>& survey) {
  if (!survey) return survey.error();
  std::vector<Offer> offers;
  for (const SurveyedPartition& partition : survey->partitions) {
    Offer offer{.partition = partition.name};
    offer.walltime = partition.walltime;
    for (const NodeKind& kind : partition.kinds) {
      offer.nodes += kind.nodes;
      offer.cpus = std::max(offer.cpus, kind.cpus);
      offer.memory = std::max(offer.memory, kind.memory);
      for (const auto& [name, count] : kind.gpus) {
        auto& most = offer.gpus[name];
        most = std::max(most, count);
      }
    }
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace hpcbatch
