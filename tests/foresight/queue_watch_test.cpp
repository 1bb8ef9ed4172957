// What looks at a queue let expect.
#include "foresight/watch/queue_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch::foresight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Seconds kStart = 1'000'000;

WatchedJob running(const std::string& number, double cpus, Seconds limit, Seconds elapsed,
                   std::vector<std::string> nodes, const std::string& partition = "main") {
  WatchedJob job{.number = number, .name = "job", .user = "ann", .partitions = {partition}};
  job.runs = true;
  job.cpus = cpus;
  job.limit = std::chrono::seconds(limit);
  job.elapsed = std::chrono::seconds(elapsed);
  job.nodes = std::move(nodes);
  return job;
}

WatchedJob waiting(const std::string& name, double cpus, Seconds limit,
                   const std::string& partition = "main") {
  WatchedJob job{.number = name, .name = name, .user = "bob", .partitions = {partition}};
  job.cpus = cpus;
  job.limit = std::chrono::seconds(limit);
  return job;
}

/// Two nodes of four cpus.
WatchedPartition partition(double busy, const std::string& name = "main") {
  return {.name = name, .is_default = true, .cpus = 8, .busy_cpus = busy, .nodes = {"n1", "n2"}};
}

const Wanted kWholeNode{.partition = "main", .cpus = 4, .limit = kHour};

TEST(QueueWatch, AnEmptyClusterStartsItAtOnce) {
  QueueWatch watch;
  watch.see({.jobs = {}, .partitions = {partition(0)}}, kStart);
  EXPECT_THAT(watch.foresee(kWholeNode, {}).next, ElementsAre(0));
  EXPECT_THAT(watch.foresee({.cpus = 4, .limit = kHour}, {}).next, ElementsAre(0))
      << "of the default partition";
}

TEST(QueueWatch, AFullOneWhenTheFirstReachesItsLimit) {
  QueueWatch watch;
  watch.see({.jobs = {running("1", 4, 2 * kHour, kHour, {"n1"}),
                      running("2", 4, 3 * kHour, kHour, {"n2"})},
             .partitions = {partition(8)}},
            kStart);
  EXPECT_THAT(watch.foresee(kWholeNode, {}).next, ElementsAre(kHour));
}

TEST(QueueWatch, BehindThoseThatWaitAndMayStart) {
  WatchedQueue queue{
      .jobs = {running("1", 8, 2 * kHour, kHour, {"n1", "n2"}), waiting("other", 8, kHour),
               waiting("held", 8, 9 * kHour), waiting("ours", 4, kHour)},
      .partitions = {partition(8)}};
  queue.jobs[2].may_start = false;
  QueueWatch watch;
  watch.see(queue, kStart);
  const Foreseen foreseen = watch.foresee(kWholeNode, {"ours"});
  EXPECT_THAT(foreseen.queued.at("ours"), ElementsAre(2 * kHour));
  EXPECT_THAT(foreseen.next, ElementsAre(2 * kHour)) << "there is room for both";
}

TEST(QueueWatch, OtherPartitionsOnTheSameNodesCount) {
  WatchedPartition other = partition(4, "beside");
  other.nodes = {"n2"};
  other.is_default = false;
  QueueWatch watch;
  watch.see({.jobs = {running("1", 4, 2 * kHour, kHour, {"n1"}),
                      running("2", 4, 4 * kHour, kHour, {"n2"}, "beside"),
                      waiting("first", 4, 5 * kHour, "beside")},
             .partitions = {partition(8), other}},
            kStart);
  EXPECT_THAT(watch.foresee(kWholeNode, {}).next, ElementsAre(3 * kHour));
}

TEST(QueueWatch, HiddenJobsAreNoticed) {
  QueueWatch watch;
  watch.see({.jobs = {running("1", 2, 2 * kHour, kHour, {"n1"})}, .partitions = {partition(8)}},
            kStart);
  const Foreseen foreseen = watch.foresee(kWholeNode, {});
  EXPECT_TRUE(foreseen.next.empty());
  EXPECT_THAT(foreseen.blind, HasSubstr("6 of 8 busy cpus of partition main"));
}

TEST(QueueWatch, WhatCannotBeIsSaid) {
  QueueWatch watch;
  watch.see({.jobs = {}, .partitions = {partition(0)}}, kStart);
  EXPECT_THAT(watch.foresee({.partition = "gpu", .cpus = 1, .limit = 1}, {}).blind,
              HasSubstr("no partition gpu"));
  EXPECT_THAT(watch.foresee({.partition = "main", .cpus = 9, .limit = 1}, {}).blind,
              HasSubstr("8 cpus"));
}

TEST(QueueWatch, OfLongAgoNothingIsLearned) {
  QueueWatch watch;
  Seconds now = kStart;
  for (int round = 0; round < 30; ++round) {
    watch.see({.jobs = {running(std::to_string(round), 8, 10 * kHour, kMinute, {"n1", "n2"})},
               .partitions = {partition(8)}},
              now);
    now += 3 * kHour;
  }
  const Foreseen foreseen = watch.foresee(kWholeNode, {});
  EXPECT_TRUE(foreseen.by_limits);
  EXPECT_THAT(foreseen.next, ElementsAre(10 * kHour - kMinute));
}

TEST(QueueWatch, GpusAreNotSeenWhereNodesAreNotTold) {
  QueueWatch watch;
  watch.see({.jobs = {}, .partitions = {partition(0)}}, kStart);
  Wanted wanted = kWholeNode;
  wanted.gpus = {{"a100", 1}};
  EXPECT_THAT(watch.foresee(wanted, {}).blind, HasSubstr("GPUs"));
}

constexpr double kGigabyte = 1024.0 * 1024 * 1024;

/// Two nodes of four cpus, 16 GB and two GPUs, of which so much is in use.
WatchedRoom room(std::vector<RoomOfNode> in_use) {
  WatchedRoom room{.nodes = std::move(in_use)};
  for (RoomOfNode& node : room.nodes) {
    node.cpus = 4;
    node.memory = 16 * kGigabyte;
    node.gpus = {{"a100", 2}};
  }
  return room;
}

Wanted wanted(double cpus, double gigabytes, double gpus = 0, Seconds limit = kHour) {
  Wanted wanted{.partition = "main", .cpus = cpus, .limit = limit};
  wanted.memory = gigabytes * kGigabyte;
  if (gpus > 0) wanted.gpus = {{"a100", gpus}};
  return wanted;
}

TEST(QueueWatch, MemoryThatIsTakenIsWaitedFor) {
  WatchedRoom full = room({{.name = "n1", .busy_cpus = 1, .busy_memory = 14 * kGigabyte},
                           {.name = "n2", .busy_cpus = 1, .busy_memory = 14 * kGigabyte}});
  full.jobs = {{"1", {.memory = 14 * kGigabyte, .gpus = {}}},
               {"2", {.memory = 14 * kGigabyte, .gpus = {}}}};
  QueueWatch watch;
  watch.see({.jobs = {running("1", 1, 2 * kHour, kHour, {"n1"}),
                      running("2", 1, 4 * kHour, kHour, {"n2"})},
             .partitions = {partition(2)}},
            kStart, full);
  EXPECT_THAT(watch.foresee(wanted(2, 8), {}).next, ElementsAre(kHour));
  EXPECT_THAT(watch.foresee(wanted(2, 2), {}).next, ElementsAre(0));
  EXPECT_THAT(watch.foresee(wanted(2, 3), {}).next, ElementsAre(kHour))
      << "there are 4 GB, and 2 of them on each node";
  Wanted no_memory = wanted(2, 0);
  EXPECT_THAT(watch.foresee(no_memory, {}).next, ElementsAre(0));
}

TEST(QueueWatch, GpusThatAreTakenAreWaitedFor) {
  WatchedRoom some = room({{.name = "n1", .busy_cpus = 1, .busy_gpus = {{"a100", 2}}},
                           {.name = "n2", .busy_cpus = 1, .busy_gpus = {{"a100", 1}}}});
  some.jobs = {{"1", {.memory = 0, .gpus = {{"a100", 2}}}},
               {"2", {.memory = 0, .gpus = {{"", 1}}}}};
  QueueWatch watch;
  watch.see({.jobs = {running("1", 1, 3 * kHour, kHour, {"n1"}),
                      running("2", 1, 2 * kHour, kHour, {"n2"})},
             .partitions = {partition(2)}},
            kStart, some);
  EXPECT_THAT(watch.foresee(wanted(1, 0, 1), {}).next, ElementsAre(0));
  EXPECT_THAT(watch.foresee(wanted(1, 0, 2), {}).next, ElementsAre(kHour));
  const Foreseen none = watch.foresee(wanted(1, 0, 5), {});
  EXPECT_TRUE(none.is_closed);
  EXPECT_THAT(none.blind, HasSubstr("4 GPUs of kind a100 that are up, and 5"));
}

TEST(QueueWatch, APartitionThatIsDownStartsNothing) {
  WatchedRoom down = room({{.name = "n1"}, {.name = "n2"}});
  down.closed_partitions = {{"main", "down"}};
  QueueWatch watch;
  watch.see({.jobs = {}, .partitions = {partition(0)}}, kStart, down);
  Foreseen foreseen = watch.foresee(wanted(1, 1), {});
  EXPECT_TRUE(foreseen.is_closed && foreseen.next.empty());
  EXPECT_THAT(foreseen.blind, HasSubstr("partition main is down"));
  down.closed_partitions.clear();
  for (RoomOfNode& node : down.nodes) node.is_closed = true;
  watch.see({.jobs = {}, .partitions = {partition(0)}}, kStart, down);
  foreseen = watch.foresee(wanted(1, 1), {});
  EXPECT_TRUE(foreseen.is_closed && foreseen.next.empty());
  EXPECT_THAT(foreseen.blind, HasSubstr("no node of partition main"));
}

TEST(QueueWatch, NodesThatAreReservedAreNobodys) {
  using std::chrono::seconds;
  WatchedRoom reserved = room({{.name = "n1"}, {.name = "n2"}});
  reserved.reservations = {{.name = "now",
                            .starts_in = seconds{-60},
                            .ends_in = seconds{2 * kHour},
                            .nodes = {"n1", "n2"}}};
  QueueWatch watch;
  const WatchedQueue nothing{.jobs = {}, .partitions = {partition(0)}};
  watch.see(nothing, kStart, reserved);
  EXPECT_THAT(watch.foresee(wanted(1, 1), {}).next, ElementsAre(2 * kHour));
  reserved.reservations.front().nodes = {"n1"};
  watch.see(nothing, kStart, reserved);
  EXPECT_THAT(watch.foresee(wanted(1, 1), {}).next, ElementsAre(0)) << "on the other one";
  reserved.reservations = {{.name = "soon",
                            .starts_in = seconds{30 * kMinute},
                            .ends_in = seconds{3 * kHour},
                            .nodes = {"n1", "n2"}}};
  watch.see(nothing, kStart, reserved);
  EXPECT_THAT(watch.foresee(wanted(1, 1, 0, 20 * kMinute), {}).next, ElementsAre(0));
  EXPECT_THAT(watch.foresee(wanted(1, 1), {}).next, ElementsAre(3 * kHour))
      << "it would still run when that begins";
}

TEST(QueueWatch, OursThatWaitForTheSameStartOneAfterAnother) {
  WatchedRoom one_free = room({{.name = "n1", .busy_cpus = 3, .busy_memory = 13 * kGigabyte},
                               {.name = "n2", .busy_cpus = 3, .busy_memory = 13 * kGigabyte}});
  one_free.jobs = {{"1", {.memory = 13 * kGigabyte, .gpus = {}}},
                   {"2", {.memory = 13 * kGigabyte, .gpus = {}}}};
  WatchedQueue queue{
      .jobs = {running("1", 3, 2 * kHour, kHour, {"n1"}), running("2", 3, 3 * kHour, kHour, {"n2"}),
               waiting("ours1", 2, kHour), waiting("ours2", 2, kHour), waiting("ours3", 2, kHour)},
      .partitions = {partition(6)}};
  QueueWatch watch;
  watch.see(queue, kStart, one_free);
  const Foreseen foreseen = watch.foresee(wanted(2, 8), {"ours1", "ours2", "ours3"});
  EXPECT_THAT(foreseen.queued.at("ours1"), ElementsAre(kHour));
  EXPECT_THAT(foreseen.queued.at("ours2"), ElementsAre(kHour)) << "there is room for both";
  EXPECT_THAT(foreseen.queued.at("ours3"), ElementsAre(2 * kHour));
  EXPECT_THAT(foreseen.next, ElementsAre(2 * kHour));
}

TEST(QueueWatch, WhatWasLearnedCanBeToldAnother) {
  QueueWatch first, second;
  Seconds now = kStart;
  const auto look = [&](std::vector<WatchedJob> jobs) {
    first.see({.jobs = std::move(jobs), .partitions = {partition(8)}}, now);
    for (const QueueWatch::Ended& ended : first.newly_ended()) second.learn(ended);
    now += 3 * kMinute;
  };
  for (int round = 0; round < 15; ++round) {
    const std::string name = std::to_string(round);
    look({running("a" + name, 4, 10 * kHour, 50 * kMinute, {"n1"}),
          running("b" + name, 4, 10 * kHour, 50 * kMinute, {"n2"})});
  }
  const WatchedQueue full{
      .jobs = {running("x", 4, 10 * kHour, 0, {"n1"}), running("y", 4, 10 * kHour, 0, {"n2"})},
      .partitions = {partition(8)}};
  second.see(full, now);
  const Foreseen foreseen = second.foresee(kWholeNode, {});
  EXPECT_FALSE(foreseen.by_limits);
  EXPECT_NEAR(static_cast<double>(foreseen.next[15]), 51.5 * kMinute, 3.0 * kMinute);
}

TEST(QueueWatch, OursCountWhereTheyMayStart) {
  WatchedPartition other = partition(8, "beside");
  other.is_default = false;
  WatchedQueue queue{.jobs = {running("1", 8, 2 * kHour, kHour, {"n1", "n2"}),
                              waiting("ours", 4, kHour, "beside")},
                     .partitions = {partition(8), other}};
  QueueWatch watch;
  watch.see(queue, kStart);
  EXPECT_TRUE(watch.foresee(kWholeNode, {"ours"}).queued.empty());
  Wanted there = kWholeNode;
  there.partition = "beside";
  EXPECT_EQ(watch.foresee(there, {"ours"}).queued.size(), 1U);
}

TEST(QueueWatch, LearnsHowLongOthersRun) {
  QueueWatch watch;
  Seconds now = kStart;
  const auto look = [&](std::vector<WatchedJob> jobs) {
    watch.see({.jobs = std::move(jobs), .partitions = {partition(8)}}, now);
    now += 3 * kMinute;
  };
  // Each asks for ten hours and ends between the first look and the second.
  for (int round = 0; round < 15; ++round) {
    const std::string name = std::to_string(round);
    look({running("a" + name, 4, 10 * kHour, 50 * kMinute, {"n1"}),
          running("b" + name, 4, 10 * kHour, 50 * kMinute, {"n2"})});
  }
  look({running("x", 4, 10 * kHour, 0, {"n1"}), running("y", 4, 10 * kHour, 0, {"n2"})});
  const auto starts = watch.foresee(kWholeNode, {}).next;
  ASSERT_EQ(starts.size(), 31U);
  EXPECT_FALSE(watch.foresee(kWholeNode, {}).by_limits);
  EXPECT_NEAR(static_cast<double>(starts[15]), 51.5 * kMinute, 3.0 * kMinute);
}

}  // namespace
}  // namespace hpcbatch::foresight
