// A trace of a cluster that is known.
#pragma once

#include "foresight/replay/fidelity.hpp"

#include <random>

namespace hpcbatch::foresight {

/// What a cluster that is known plays of random work, as a trace of it.
inline Trace played(const ClusterModel& model, int jobs, Seconds gap) {
  std::mt19937 random(11);
  Cluster cluster(model);
  std::vector<Cluster::Id> ids;
  for (int i = 0; i < jobs; ++i) {
    cluster.advance(cluster.now() + static_cast<Seconds>(random()) % (2 * gap));
    Job job;
    job.submitted = cluster.now();
    job.user = static_cast<std::int32_t>(random() % 20);
    job.nodes = static_cast<std::int32_t>(1 + random() % 4);
    job.limit = kHour * static_cast<Seconds>(1 + random() % 12);
    job.runs = job.limit / (1 + job.user % 4);
    ids.push_back(cluster.submit(job));
  }
  for (auto next = cluster.next_event(); next; next = cluster.next_event()) cluster.advance(*next);
  Trace trace;
  for (const auto id : ids) trace.jobs.push_back({cluster.job(id), *cluster.started(id)});
  return trace;
}

inline ClusterModel sixteen() {
  ClusterModel model;
  model.nodes = {{0, 16}};
  model.backfill_interval = model.resolution = 10 * kMinute;
  return model;
}

}  // namespace hpcbatch::foresight
