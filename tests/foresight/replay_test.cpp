#include "foresight/replay/episodes.hpp"
#include "foresight/replay/fidelity.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hpcbatch::foresight {
namespace {

/// What a cluster that is known plays of random work, as a trace of it.
Trace played(const ClusterModel& model, int jobs, Seconds gap) {
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

ClusterModel sixteen() {
  ClusterModel model;
  model.nodes = {{0, 16}};
  model.backfill_interval = model.resolution = 10 * kMinute;
  return model;
}

TEST(FidelityTest, AClusterPlaysItsOwnTraceExactly) {
  const Trace trace = played(sixteen(), 3000, 20 * kMinute);
  const Fidelity found = play_trace(trace, sixteen(), kDay);
  EXPECT_GT(found.jobs, 2000U);
  EXPECT_GT(found.real.mean, 0.5);
  EXPECT_DOUBLE_EQ(found.real.mean, found.played.mean);
  EXPECT_DOUBLE_EQ(found.real.by_node_hours, found.played.by_node_hours);
  EXPECT_EQ(found.mean_error, 0);
  EXPECT_NEAR(found.correlation, 1, 1e-9);
}

TEST(FidelityTest, FewerNodesLongerWaits) {
  const Trace trace = played(sixteen(), 3000, 20 * kMinute);
  ClusterModel fewer = sixteen();
  fewer.nodes = {{0, 13}};
  EXPECT_GT(play_trace(trace, fewer, kDay).played.mean, play_trace(trace, fewer, kDay).real.mean);
}

TracedJob traced(Seconds submitted, Seconds started, Seconds runs, std::int32_t nodes,
                 std::int32_t user) {
  TracedJob one;
  one.job.submitted = submitted;
  one.job.limit = one.job.runs = runs;
  one.job.nodes = nodes;
  one.job.user = user;
  one.started = started;
  return one;
}

TEST(CalibrationTest, NodesAreThoseInUseAround) {
  Trace trace;
  trace.jobs = {traced(0, 0, kHour, 3, 1), traced(0, 0, kHour, 2, 2),
                traced(0, 10 * kDay, kHour, 4, 1)};
  EXPECT_EQ(most_nodes_in_use(trace), 5);
  const auto nodes = nodes_over_time(trace);
  EXPECT_EQ(nodes.front(), (std::pair<Seconds, std::int32_t>{0, 5}));
  EXPECT_EQ(nodes.back().second, 4);
}

TEST(CalibrationTest, WhoWaitsThoughNodesAreIdleWaitsForHisOwn) {
  Trace trace;
  // Others use all ten nodes at first; then seven are idle.
  trace.jobs = {traced(0, 0, kMinute, 9, 5), traced(0, 0, 2 * kHour, 1, 1),
                traced(1, 2 * kHour, kHour, 1, 1), traced(1, 2 * kHour, kHour, 1, 2)};
  const std::vector<std::pair<Seconds, std::int32_t>> nodes{{0, 10}};
  EXPECT_EQ(find_dependencies(trace, nodes), 1U);
  EXPECT_EQ(trace.jobs[2].job.after, 1U);
  EXPECT_EQ(trace.jobs[3].job.after, std::nullopt);
  // On a cluster that was full it waited for nodes.
  trace.jobs[2].job.after.reset();
  EXPECT_EQ(find_dependencies(trace, {{0, 1}}), 0U);
}

TEST(CalibrationTest, ABoundIsWhereManyUsersStop) {
  Trace trace;
  for (std::int32_t user = 0; user < 12; ++user) {
    for (int i = 0; i < 3; ++i) trace.jobs.push_back(traced(0, i, kHour, 1, user));
  }
  EXPECT_EQ(bound_of_users(trace), 3);
  for (int i = 0; i < 5; ++i) trace.jobs.push_back(traced(0, i, kHour, 1, 99));
  EXPECT_EQ(bound_of_users(trace), 0);
}

Episodes some(const Trace& trace) {
  Episodes how;
  how.cluster = how.model = sixteen();
  how.pilot_nodes = 4;
  how.from = 14 * kDay;
  how.until = std::min(trace.jobs.back().job.submitted - 5 * kDay, 18 * kDay);
  how.every = 12 * kHour;
  how.draws.count = 7;
  how.policies = {Policy::Reactive, Policy::Mean, Policy::LookAhead, Policy::AskAhead};
  return how;
}

TEST(EpisodesTest, AskingAheadCutsTheGaps) {
  const Trace trace = played(sixteen(), 3000, 20 * kMinute);
  const auto found = play_episodes(trace, some(trace), [](auto, auto) { return true; });
  ASSERT_EQ(found.policies.size(), 4U);
  const PolicyResult& reactive = found.policies[0];
  const PolicyResult& ahead = found.policies[3];
  ASSERT_EQ(reactive.gaps.size(), 9U);
  EXPECT_EQ(found.bounds.size(), 9U);
  EXPECT_GT(reactive.interruption(), 0.5);
  EXPECT_EQ(reactive.overlap(), 0);
  EXPECT_LT(ahead.interruption(), reactive.interruption() / 2);
  EXPECT_GE(ahead.uninterrupted(), reactive.uninterrupted());
}

TEST(EpisodesTest, TheSameResultsEachTime) {
  const Trace trace = played(sixteen(), 3000, 20 * kMinute);
  const auto one = play_episodes(trace, some(trace), [](auto, auto) { return true; });
  const auto other = play_episodes(trace, some(trace), [](auto, auto) { return true; });
  for (std::size_t i = 0; i < one.policies.size(); ++i)
    EXPECT_EQ(one.policies[i].gaps, other.policies[i].gaps);
}

TEST(EpisodesTest, WhatComesLaterChangesNoDecision) {
  Trace trace = played(sixteen(), 3000, 20 * kMinute);
  Episodes how = some(trace);
  how.until = how.from;
  const auto before = play_episodes(trace, how, [](auto, auto) { return true; });
  // Accounting of what ends after the episode has begun is not known in it.
  for (TracedJob& job : trace.jobs) {
    if (job.job.submitted > how.from + 5 * kDay) job.job.runs = 0;
  }
  const auto after = play_episodes(trace, how, [](auto, auto) { return true; });
  for (std::size_t i = 0; i < before.policies.size(); ++i)
    EXPECT_EQ(before.policies[i].gaps, after.policies[i].gaps);
}

TEST(EpisodesTest, ItCanBeLeft) {
  const Trace trace = played(sixteen(), 3000, 20 * kMinute);
  const auto found = play_episodes(trace, some(trace), [](auto, auto) { return false; });
  EXPECT_LT(found.bounds.size(), 9U);
}

}  // namespace
}  // namespace hpcbatch::foresight
