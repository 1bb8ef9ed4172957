#include "played_trace.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::foresight {
namespace {

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

}  // namespace
}  // namespace hpcbatch::foresight
