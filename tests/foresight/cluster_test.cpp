#include "foresight/cluster.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hpcbatch::foresight {
namespace {

Job sized_job(std::int32_t nodes, Seconds limit, Seconds runs = -1) {
  Job job;
  job.nodes = nodes;
  job.limit = limit;
  job.runs = runs < 0 ? limit : runs;
  return job;
}

ClusterModel with_nodes(std::int32_t count,
                        ClusterModel::Backfill backfill = ClusterModel::Backfill::Conservative) {
  ClusterModel model;
  model.nodes = {{0, count}};
  model.backfill = backfill;
  model.backfill_interval = kMinute;
  return model;
}

Cluster::Id submit(Cluster& cluster, Job job) {
  job.submitted = cluster.now();
  return cluster.submit(job);
}

TEST(ClusterTest, StartsWhatFitsAtOnceAndTheRestInOrder) {
  Cluster cluster(with_nodes(4));
  const auto first = submit(cluster, sized_job(3, kHour));
  const auto second = submit(cluster, sized_job(2, kHour));
  EXPECT_EQ(cluster.started(first), 0);
  EXPECT_EQ(cluster.started(second), std::nullopt);
  cluster.advance(kHour);
  EXPECT_EQ(cluster.ended(first), kHour);
  EXPECT_EQ(cluster.started(second), kHour);
}

TEST(ClusterTest, WhatDelaysNobodyIsFilledIn) {
  for (const auto backfill : {ClusterModel::Backfill::Easy, ClusterModel::Backfill::Conservative}) {
    Cluster cluster(with_nodes(4, backfill));
    submit(cluster, sized_job(3, kHour));
    const auto large = submit(cluster, sized_job(4, kHour));
    const auto too_long = submit(cluster, sized_job(1, 2 * kHour));
    const auto fits = submit(cluster, sized_job(1, 30 * kMinute));
    cluster.advance(kMinute);
    EXPECT_EQ(cluster.started(fits), kMinute);
    EXPECT_EQ(cluster.started(too_long), std::nullopt);
    cluster.advance(kHour);
    EXPECT_EQ(cluster.started(large), kHour);
  }
}

TEST(ClusterTest, WithoutBackfillNothingPasses) {
  Cluster cluster(with_nodes(4, ClusterModel::Backfill::None));
  submit(cluster, sized_job(3, kHour));
  submit(cluster, sized_job(4, kHour));
  const auto small = submit(cluster, sized_job(1, kMinute));
  cluster.advance(kHour);
  EXPECT_EQ(cluster.started(small), std::nullopt);
  cluster.advance(2 * kHour);
  EXPECT_EQ(cluster.started(small), 2 * kHour);
}

TEST(ClusterTest, EasyHoldsAPlaceForTheFirstAlone) {
  // Two wait; the third would delay the second of them, and not the first.
  const auto start_of_third = [](ClusterModel::Backfill backfill) {
    Cluster cluster(with_nodes(4, backfill));
    submit(cluster, sized_job(3, 2 * kHour));
    submit(cluster, sized_job(2, kHour));
    submit(cluster, sized_job(3, kHour));
    const auto third = submit(cluster, sized_job(1, 5 * kHour));
    cluster.advance(kMinute);
    return cluster.started(third);
  };
  EXPECT_EQ(start_of_third(ClusterModel::Backfill::Easy), kMinute);
  EXPECT_EQ(start_of_third(ClusterModel::Backfill::Conservative), kMinute);
}

TEST(ClusterTest, ABoundForTheJobsOfAUser) {
  ClusterModel model = with_nodes(4);
  model.most_of_user = 1;
  Cluster cluster(model);
  Job own = sized_job(1, kHour);
  own.user = 7;
  submit(cluster, own);
  const auto second = submit(cluster, own);
  own.user = 8;
  const auto other = submit(cluster, own);
  EXPECT_EQ(cluster.started(other), 0);
  EXPECT_EQ(cluster.started(second), std::nullopt);
  cluster.advance(kHour);
  EXPECT_EQ(cluster.started(second), kHour);
}

TEST(ClusterTest, OneThatComesAfterAnotherWaitsForItsEnd) {
  Cluster cluster(with_nodes(4));
  const auto first = submit(cluster, sized_job(1, kHour));
  Job next = sized_job(1, kHour);
  next.after = first;
  const auto second = submit(cluster, next);
  EXPECT_EQ(cluster.started(second), std::nullopt);
  cluster.advance(kHour);
  EXPECT_EQ(cluster.started(second), kHour);
}

TEST(ClusterTest, NodesComeAndGo) {
  ClusterModel model = with_nodes(2);
  model.nodes = {{0, 2}, {kHour, 1}, {3 * kHour, 4}};
  Cluster cluster(model);
  submit(cluster, sized_job(2, 2 * kHour));
  const auto next = submit(cluster, sized_job(2, kHour));
  cluster.advance(2 * kHour);
  EXPECT_EQ(cluster.free(), 1);
  EXPECT_EQ(cluster.started(next), std::nullopt);
  cluster.advance(3 * kHour);
  EXPECT_EQ(cluster.started(next), 3 * kHour);
}

TEST(ClusterTest, NeverMoreNodesThanThereAre) {
  for (const auto backfill : {ClusterModel::Backfill::None, ClusterModel::Backfill::Easy,
                              ClusterModel::Backfill::Conservative}) {
    std::mt19937 random(5);
    Cluster cluster(with_nodes(16, backfill));
    std::vector<Cluster::Id> ids;
    for (int i = 0; i < 500; ++i) {
      cluster.advance(cluster.now() + static_cast<Seconds>(random() % 600));
      const auto limit = kMinute + static_cast<Seconds>(random() % 14'400);
      ids.push_back(submit(cluster, sized_job(static_cast<std::int32_t>(1 + random() % 16), limit,
                                              static_cast<Seconds>(random()) % limit)));
      ASSERT_GE(cluster.free(), 0);
    }
    for (auto next = cluster.next_event(); next; next = cluster.next_event()) {
      cluster.advance(*next);
      ASSERT_GE(cluster.free(), 0);
    }
    for (const auto id : ids) ASSERT_TRUE(cluster.ended(id));
    EXPECT_EQ(cluster.free(), 16);
    EXPECT_TRUE(cluster.running().empty());
  }
}

TEST(ClusterTest, OneThatIsPutTogetherInTheMiddleGoesOnAsTheOther) {
  std::mt19937 random(9);
  Cluster cluster(with_nodes(8));
  std::vector<Cluster::Id> ids;
  for (int i = 0; i < 60; ++i) {
    cluster.advance(cluster.now() + static_cast<Seconds>(random() % 300));
    const auto limit = kMinute + static_cast<Seconds>(random() % 14'400);
    submit(cluster, sized_job(static_cast<std::int32_t>(1 + random() % 8), limit, limit / 2));
  }
  Cluster again(with_nodes(8), cluster.now());
  std::vector<std::pair<Cluster::Id, Cluster::Id>> same;
  for (const auto id : cluster.running())
    same.emplace_back(id, again.run_since(cluster.job(id), *cluster.started(id)));
  std::vector<Job> waiting;
  auto next_id = static_cast<Cluster::Id>(again.count());
  for (const auto id : cluster.waiting()) {
    waiting.push_back(cluster.job(id));
    same.emplace_back(id, next_id++);
  }
  ASSERT_GT(waiting.size(), 10U);
  again.queue_all(waiting);
  for (auto next = again.next_event(); next; next = again.next_event()) again.advance(*next);
  for (auto next = cluster.next_event(); next; next = cluster.next_event()) cluster.advance(*next);
  for (const auto& [one, other] : same) EXPECT_EQ(cluster.started(one), again.started(other));
}

}  // namespace
}  // namespace hpcbatch::foresight
