// What a PBS shows of everybody's batch jobs: read from real records and made-up ones, asked for
// by sh with scripted commands, and played.
#include "pbs_commands.hpp"

#include "foresight/watch/queue_watch.hpp"

#include "hpcbatch/contract/scheduler.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

CommandLine watch_command(const std::string& config = "") {
  const auto pbs = make(config);
  return dynamic_cast<const QueueWatcher&>(*pbs).watch_queue();
}

Result<WatchedQueue> read_queue(const CommandOutput& output) {
  const auto pbs = make();
  return dynamic_cast<const QueueWatcher&>(*pbs).read_queue(output);
}

// What the recorded server, its queue and its node are, in the long form.
const std::string kServer =
    "Server: vm\n    server_state = Active\n    default_queue = workq\n"
    "    query_other_jobs = True\n\n";
const std::string kQueue =
    "Queue: workq\n    queue_type = Execution\n    total_jobs = 6\n    state_count = Transit:0 "
    "Queued:1 Held:1 Waiting:0 Running:3 Exiting:0 Begun:1 \n    enabled = True\n    started = "
    "True\n\n";
const std::string kNode =
    "vm\n     Mom = vm\n     ntype = PBS\n     state = free\n     pcpus = 2\n"
    "     jobs = 12[0].vm/0, 12[1].vm/1, 12[2].vm/2\n     resources_available.arch = linux\n"
    "     resources_available.mem = 24682416kb\n     resources_available.ncpus = 8\n"
    "     resources_assigned.mem = 0kb\n     resources_assigned.ncpus = 3\n"
    "     resv_enable = True\n     sharing = default_shared\n     license = l\n\n";

/// The names of two batch jobs are told, for they are of our own user.
std::string answered(const std::string& queues, const std::string& nodes, const std::string& jobs) {
  return "hbnow Sat Nov 21 12:00:00 2026\n\n" + queues +
         "\nOwn: 6.vm\n    Job_Name = name6.vm\n\nOwn: 9.vm\n    Job_Name = name9.vm\n" +
         "\nhbnodes\n" + nodes + "\nhbjobs\n" + jobs + "hbend\n";
}

/// On the recorded server.
Result<WatchedQueue> read_jobs(const std::string& jobs) {
  return read_queue(answer(0, answered(kServer + kQueue, kNode, jobs)));
}

std::string job(const std::string& number, const std::string& attributes,
                const std::string& queue = "workq") {
  return "Job Id: " + number + "\n    Job_Name = forged\n    Job_Owner = ann@vm\n" +
         "    queue = " + queue + "\n" + attributes;
}

std::vector<std::string> numbers(const std::vector<WatchedJob>& jobs) {
  std::vector<std::string> numbers;
  numbers.reserve(jobs.size());
  for (const WatchedJob& each : jobs) numbers.push_back(each.number);
  return numbers;
}

const WatchedJob& numbered(const std::vector<WatchedJob>& jobs, const std::string& number) {
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const WatchedJob& each) { return each.number == number; });
  if (found == jobs.end()) throw std::runtime_error("no batch job " + number);
  return *found;
}

const WatchedPartition& named(const WatchedQueue& queue, const std::string& name) {
  const auto found = std::find_if(queue.partitions.begin(), queue.partitions.end(),
                                  [&](const auto& each) { return each.name == name; });
  if (found == queue.partitions.end()) throw std::runtime_error("no partition " + name);
  return *found;
}

// ---- batch jobs

TEST(PbsQueue, ShowsHowFullNodesAre) {
  const std::string gpu_node =
      "gn\n     ntype = PBS\n     state = offline\n     pcpus = 2\n"
      "     resources_available.mem = 16gb\n     resources_available.ncpus = 8\n"
      "     resources_available.ngpus = 4\n     resources_assigned.mem = 12gb\n"
      "     resources_assigned.ncpus = 3\n     resources_assigned.ngpus = 3\n\n";
  const std::string job =
      "Job Id: 7.vm\n    Job_Owner = a@vm\n    job_state = R\n    queue = workq\n"
      "    Resource_List.mem = 2gb\n    Resource_List.ncpus = 1\n    Resource_List.ngpus = 2\n\n";
  std::string stopped = kQueue;
  stopped.replace(stopped.find("started = True"), 14, "started = False");
  const auto pbs = make();
  const WatchedRoom room = dynamic_cast<const RoomWatcher&>(*pbs).read_room(
      answer(0, answered(kServer + stopped, kNode + gpu_node, job)));
  ASSERT_EQ(room.nodes.size(), 2U);
  EXPECT_FALSE(room.nodes[0].is_closed);
  EXPECT_EQ(room.nodes[0].cpus, 8);
  EXPECT_EQ(room.nodes[0].busy_cpus, 3);
  EXPECT_EQ(room.nodes[0].memory, 24682416.0 * 1024);
  EXPECT_TRUE(room.nodes[0].gpus.empty());
  EXPECT_TRUE(room.nodes[1].is_closed);
  EXPECT_EQ(room.nodes[1].busy_memory, 12.0 * (1 << 30));
  EXPECT_EQ(room.nodes[1].gpus.at(""), 4);
  EXPECT_EQ(room.nodes[1].busy_gpus.at(""), 3);
  EXPECT_EQ(room.jobs.at("7.vm").memory, 2.0 * (1 << 30));
  EXPECT_EQ(room.jobs.at("7.vm").gpus.at(""), 2);
  EXPECT_EQ(room.closed_partitions.count("workq"), 1U);
}

TEST(PbsQueue, RecordsInsideOfOthersSpoilNothingOfOurs) {
  std::string hosts = "n1/0";
  for (int i = 0; i < 20'000; ++i) hosts.append("+n").append(std::to_string(i)).append("/0");
  const std::string real = "    job_state = R\n    stime = Sat Nov 21 08:07:29 2026\n";
  std::string jobs = job("6.vm", real + "    exec_host = n1/0\n");
  const std::string large = real + "    exec_host = " + hosts + "\n";
  const std::string twin = job("6.vm", real + "    Job_Name = hbQ7x\n    exec_host = n2/0\n");
  for (int i = 10; i < 65; ++i) jobs.append(job(std::to_string(i) + ".vm", large)).append(twin);
  const auto queue = read_jobs(jobs);
  ASSERT_TRUE(queue) << queue.error().text;
  std::size_t nodes = 0;
  for (const WatchedJob& each : queue->jobs) nodes += each.nodes.size();
  EXPECT_LE(nodes, 1'000'000U);
  ASSERT_EQ(queue->jobs.size(), 56U);
  EXPECT_THAT(queue->jobs[0].nodes, ElementsAre("n1"));
  EXPECT_EQ(queue->jobs[0].name, "name6.vm");
  EXPECT_EQ(queue->jobs[1].name, "") << "another user's";
}

TEST(PbsQueue, ShowsWhatRunsAndSinceWhen) {
  const auto queue = read_jobs(
      job("6.vm",
          "    job_state = R\n    exec_host = n1/0*4+n2/0*4\n    Resource_List.ncpus = 8\n"
          "    Resource_List.walltime = 05:00:00\n    stime = Sat Nov 21 08:07:29 2026\n"
          "    resources_used.walltime = 03:50:00\n") +
      job("7.vm",
          "    job_state = E\n    exec_host = n1/2\n    resources_used.walltime = 00:00:30\n") +
      job("8.vm",
          "    job_state = S\n    exec_host = n1/3\n    stime = Sat Nov 21 12:00:01 2026\n"));
  ASSERT_TRUE(queue) << queue.error().text;
  ASSERT_THAT(numbers(queue->jobs), ElementsAre("6.vm", "7.vm", "8.vm"));
  const WatchedJob& first = queue->jobs[0];
  EXPECT_TRUE(first.runs);
  EXPECT_EQ(first.name, "name6.vm");
  EXPECT_EQ(first.user, "ann");
  EXPECT_THAT(first.partitions, ElementsAre("workq"));
  EXPECT_EQ(first.cpus, 8);
  EXPECT_EQ(first.limit, 5h);
  EXPECT_EQ(first.elapsed, 3h + 52min + 31s) << "by the clock; the server hears of it late";
  EXPECT_THAT(first.nodes, ElementsAre("n1", "n2"));
  EXPECT_TRUE(queue->jobs[1].runs);
  EXPECT_EQ(queue->jobs[1].elapsed, 30s);
  EXPECT_EQ(queue->jobs[1].limit, 24h * 365);
  EXPECT_TRUE(queue->jobs[2].runs) << "it has not ended";
  EXPECT_EQ(queue->jobs[2].cpus, 0) << "others have them";
  EXPECT_EQ(queue->jobs[2].elapsed, 0s) << "of a clock that is ahead";
}

TEST(PbsQueue, WhatTheSchedulerNotesTellsWhatMayStart) {
  const std::map<std::string, bool> comments{
      {"Not Running: Insufficient amount of resource: ncpus (R: 4 A: 0 T: 8)", true},
      {"Not Running: Not enough free nodes available", true},
      {"Not Running: Job would conflict with reservation or top job", true},
      {"Not Running: Job would break strict sorted order", true},
      {"Not Running: Node is in an ineligible state: down", true},
      {"Not Running: would exceed user ann's limit on resource ncpus in queue workq", false},
      {"Not Running: User has reached server running job limit.", false},
      {"Not Running: Queue workq job limit has been reached.", false},
      {"Not Running: Number of concurrent running subjobs limit reached", false},
      {"Not Running: Insufficient amount of queue resource: ncpus (R: 4 A: 0 T: 8)", false},
      {"Not Running: Insufficient amount of server resource: matlab (R: 1 A: 0 T: 2)", false},
      {"Not Running: Queue not started.", false},
      {"Not Running: Dedicated time conflict", false},
      {"Not Running: Job will run in nonprimetime only", false},
      {"Not Running: Job has zero shares for fairshare", false},
      {"Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)", false},
      {"Can Never Run: Insufficient amount of resource: ncpus (R: 1 A: 0 T: 0)", false}};
  for (const auto& [comment, may_start] : comments) {
    const auto queue = read_jobs(job("1.vm", "    job_state = Q\n    comment = " + comment + "\n"));
    ASSERT_TRUE(queue && queue->jobs.size() == 1) << comment;
    EXPECT_FALSE(queue->jobs[0].runs);
    EXPECT_EQ(queue->jobs[0].may_start, may_start) << comment;
  }
  for (const char* state : {"H", "W", "T"}) {
    const auto queue = read_jobs(job("1.vm", "    job_state = " + std::string(state) + "\n"));
    ASSERT_TRUE(queue && queue->jobs.size() == 1) << state;
    EXPECT_FALSE(queue->jobs[0].runs || queue->jobs[0].may_start) << state;
  }
  for (const char* state : {"F", "C", "X", "M", "?"}) {
    const auto queue = read_jobs(job("1.vm", "    job_state = " + std::string(state) + "\n"));
    EXPECT_TRUE(queue && queue->jobs.empty()) << state;
  }
}

TEST(PbsQueue, OfAnArrayThoseWaitThatHaveNotBegun) {
  const std::string counts = "    array_state_count = Queued:";
  const auto queue = read_jobs(
      job("12[].vm", "    job_state = B\n" + counts +
                         "3 Running:1 Exiting:0 Expired:2\n"
                         "    Resource_List.ncpus = 2\n    comment = Job Array Began at Sat\n") +
      job("13[].vm", "    job_state = Q\n" + counts + "2 Running:0 Exiting:0 Expired:0 \n") +
      job("14[].vm", "    job_state = B\n" + counts + "0 Running:5 Exiting:0 Expired:0\n") +
      job("15[].vm", "    job_state = B\n" + counts +
                         "1 Running:1 Exiting:0 Expired:0\n"
                         "    comment = Not Running: Number of concurrent running subjobs limit "
                         "reached\n") +
      job("12[0].vm",
          "    job_state = R\n    exec_host = vm/0\n    stime = Sat Nov 21 11:00:00 "
          "2026\n"));
  ASSERT_TRUE(queue) << queue.error().text;
  EXPECT_THAT(numbers(queue->jobs), ElementsAre("12[0].vm", "12[].vm", "12[].vm", "12[].vm",
                                                "13[].vm", "13[].vm", "15[].vm"));
  EXPECT_EQ(queue->jobs[1].cpus, 2);
  EXPECT_TRUE(queue->jobs[1].may_start);
  EXPECT_FALSE(queue->jobs[6].may_start);
  const auto large = read_jobs(job("1[].vm", "    job_state = Q\n" + counts + "99999999\n") +
                               job("2[].vm", "    job_state = Q\n" + counts + "99999999\n"));
  ASSERT_TRUE(large);
  EXPECT_EQ(large->jobs.size(), 5000U);
}

TEST(PbsQueue, WaitsInTheOrderOfPrioritiesAndOfTheList) {
  const std::string express = "Queue: express\n    Priority = 150\n    started = True\n\n";
  const std::string waits = "    job_state = Q\n";
  const auto queue =
      read_queue(answer(0, answered(kServer + kQueue + express, kNode,
                                    job("1", waits) + job("2", waits + "    Priority = -5\n") +
                                        job("3", waits + "    eligible_time = 01:00:00\n") +
                                        job("4", waits + "    eligible_time = 10:00:00\n") +
                                        job("5", waits + "    Priority = 9\n") + job("6", waits) +
                                        job("7", waits, "express"))));
  ASSERT_TRUE(queue) << queue.error().text;
  EXPECT_THAT(numbers(queue->jobs), ElementsAre("7", "5", "4", "3", "1", "6", "2"));
}

// ---- queues and nodes

std::string node(const std::string& name, const std::string& attributes) {
  return name + "\n     state = free\n     resources_available.ncpus = 8\n" + attributes + "\n";
}

TEST(PbsQueue, QueuesHaveTheirNodes) {
  const std::string queues =
      "Queue: workq\n    queue_type = Execution\n    started = True\n\n"
      "Queue: own\n    queue_type = Execution\n    hasnodes = True\n\n"
      "Queue: gpu\n    queue_type = Execution\n    default_chunk.Qlist = gpu\n"
      "    default_chunk.ncpus = 1\n\n"
      "Queue: apart\n    queue_type = Execution\n    partition = P1\n\n"
      "Queue: empty\n    queue_type = Execution\n\n";
  const std::string nodes =
      node("n1", "     resources_assigned.ncpus = 5\n") +
      node("n2", "     resources_available.Qlist = gpu,big\n     resources_assigned.ncpus = 99\n") +
      node("n3", "     queue = own\n     jobs = 7.vm/0, 7.vm/1\n") +
      node("n4", "     partition = P1\n") +
      "n5\n     state = down,offline\n     resources_available.ncpus = 8\n\n"
      "n6\n     state = offline\n     queue = empty\n     resources_available.ncpus = 8\n"
      "     resources_assigned.ncpus = 8\n\n"
      "n7\n     state = state-unknown,down\n     pcpus = 8\n\n";
  const auto queue = read_queue(answer(0, answered(kServer + queues, nodes, "")));
  ASSERT_TRUE(queue) << queue.error().text;
  const WatchedPartition& work = named(*queue, "workq");
  EXPECT_TRUE(work.is_default);
  EXPECT_THAT(work.nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(work.cpus, 16);
  EXPECT_EQ(work.busy_cpus, 13) << "no more are busy than there are";
  EXPECT_THAT(named(*queue, "own").nodes, ElementsAre("n3"));
  EXPECT_FALSE(named(*queue, "own").is_default);
  EXPECT_THAT(named(*queue, "gpu").nodes, ElementsAre("n2"));
  EXPECT_THAT(named(*queue, "apart").nodes, ElementsAre("n4"));
  EXPECT_THAT(named(*queue, "empty").nodes, IsEmpty()) << "its own is away, and no other is its";
}

TEST(PbsQueue, RoutingQueuesStandForThoseBehindThem) {
  const std::string queues =
      "Server: vm\n    default_queue = in\n    query_other_jobs = True\n\n"
      "Queue: in\n    queue_type = Route\n    route_destinations = short@vm,more,far@else\n\n"
      "Queue: more\n    queue_type = Route\n    route_destinations = long, more,shut\n\n"
      "Queue: short\n    queue_type = Execution\n\n"
      "Queue: long\n    queue_type = Execution\n    default_chunk.kind = fat\n\n"
      "Queue: far\n    queue_type = Execution\n\n"
      "Queue: shut\n    queue_type = Execution\n    enabled = False\n    started = False\n\n";
  const std::string nodes =
      node("n1", "     queue = short\n") + node("n2", "     resources_available.kind = fat\n");
  const std::string waits = "    job_state = Q\n";
  const auto queue = read_queue(answer(
      0, answered(queues, nodes,
                  job("1", waits, "short") + job("2", waits, "long") + job("3", waits, "in") +
                      job("4", waits, "shut") + job("5", waits, "nowhere"))));
  ASSERT_TRUE(queue) << queue.error().text;
  const WatchedPartition& in = named(*queue, "in");
  EXPECT_TRUE(in.is_default);
  EXPECT_THAT(in.nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(in.cpus, 16);
  EXPECT_THAT(named(*queue, "more").nodes, ElementsAre("n2"));
  EXPECT_THAT(numbered(queue->jobs, "1").partitions, ElementsAre("short", "in"));
  EXPECT_THAT(numbered(queue->jobs, "2").partitions, ElementsAre("long", "in", "more"));
  EXPECT_FALSE(numbered(queue->jobs, "3").may_start) << "no queue behind it takes it for now";
  EXPECT_FALSE(numbered(queue->jobs, "4").may_start) << "its queue is not started";
  EXPECT_FALSE(numbered(queue->jobs, "5").may_start);
}

TEST(PbsQueue, WhatSharesNoNodeHasAndWaitsForAllOfIt) {
  const std::string whole = "     sharing = force_exclhost\n";
  const std::string nodes =
      "n1\n     state = job-exclusive\n     resources_available.ncpus = 8\n"
      "     resources_assigned.ncpus = 2\n" +
      whole + "\n" + node("n2", whole);
  const std::string server = kServer + kQueue;
  const auto queue = read_queue(answer(
      0, answered(server, nodes,
                  job("1",
                      "    job_state = R\n    exec_host = n1/0*2\n    Resource_List.ncpus = 2\n"
                      "    stime = Sat Nov 21 11:00:00 2026\n") +
                      job("2",
                          "    job_state = Q\n    Resource_List.ncpus = 2\n"
                          "    Resource_List.nodect = 2\n    Resource_List.place = scatter\n"))));
  ASSERT_TRUE(queue) << queue.error().text;
  EXPECT_EQ(queue->partitions[0].busy_cpus, 8);
  EXPECT_EQ(queue->jobs[0].cpus, 8);
  EXPECT_EQ(queue->jobs[1].cpus, 16);
  const auto waits = [](const std::string& place) {
    return read_jobs(job("1",
                         "    job_state = Q\n    Resource_List.ncpus = 2\n"
                         "    Resource_List.nodect = 1\n    Resource_List.place = " +
                             place + "\n"))
        ->jobs.at(0)
        .cpus;
  };
  EXPECT_EQ(waits("scatter:excl"), 8);
  EXPECT_EQ(waits("pack"), 2);
}

// ---- Torque

const std::string kTorque =
    "Queue: batch\n    queue_type = Execution\n    total_jobs = 3\n    state_count = Transit:0 "
    "Queued:1 Held:0 Waiting:0 Running:2 Exiting:0 Complete:0 \n    enabled = True\n"
    "    started = True\n\n"
    "Queue: fat\n    queue_type = Execution\n    resources_default.neednodes = big\n"
    "    enabled = True\n    started = True\n\n"
    "Server: head\n    server_state = Active\n    default_queue = batch\n"
    "    query_other_jobs = True\n\n";
const std::string kTorqueNodes =
    "n1\n     state = job-exclusive\n     power_state = Running\n     np = 4\n"
    "     ntype = cluster\n     jobs = 0-3/11.head\n"
    "     status = rectime=1,jobs=11.head,state=free,ncpus=4\n     gpus = 0\n\n"
    "n2\n     state = free\n     np = 8\n     properties = big,fast\n     ntype = cluster\n"
    "     jobs = 0/12[1].head, 1/12[1].head,4-5/13.head\n\n"
    "n3\n     state = down,job-exclusive\n     np = 8\n     ntype = cluster\n\n";
const std::string kTorqueJobs =
    "Job Id: 11.head\n    Job_Name = a\n    Job_Owner = bob@login\n    job_state = R\n"
    "    queue = batch\n    exec_host = n1/0-3\n    Resource_List.ncpus = 1\n"
    "    Resource_List.nodect = 1\n    Resource_List.nodes = 1:ppn=4\n"
    "    Resource_List.walltime = 02:00:00\n    start_time = Sat Nov 21 11:30:00 2026\n\n"
    "Job Id: 12[1].head\n    Job_Name = b-1\n    Job_Owner = bob@login\n    job_state = R\n"
    "    queue = batch\n    exec_host = n2/1+n2/0\n    Resource_List.nodes = 1:ppn=2\n"
    "    resources_used.walltime = 00:10:00\n\n"
    "Job Id: 14.head\n    Job_Name = c\n    Job_Owner = eve@login\n    job_state = Q\n"
    "    queue = batch\n    Resource_List.nodect = 3\n"
    "    Resource_List.nodes = 2:ppn=4:fast+n1:ppn=2\n    Resource_List.walltime = 01:00:00\n\n";

TEST(PbsQueue, IsReadFromTorqueToo) {
  const auto queue = read_queue(answer(0, answered(kTorque, kTorqueNodes, kTorqueJobs)));
  ASSERT_TRUE(queue) << queue.error().text;
  const WatchedPartition& batch = named(*queue, "batch");
  EXPECT_TRUE(batch.is_default);
  EXPECT_EQ(batch.cpus, 12);
  EXPECT_EQ(batch.busy_cpus, 8);
  EXPECT_THAT(batch.nodes, ElementsAre("n1", "n2"));
  EXPECT_THAT(named(*queue, "fat").nodes, ElementsAre("n2"));
  ASSERT_THAT(numbers(queue->jobs), ElementsAre("11.head", "12[1].head", "14.head"));
  EXPECT_EQ(queue->jobs[0].cpus, 4);
  EXPECT_EQ(queue->jobs[0].elapsed, 30min);
  EXPECT_EQ(queue->jobs[1].cpus, 2);
  EXPECT_EQ(queue->jobs[1].elapsed, 10min);
  EXPECT_THAT(queue->jobs[1].nodes, ElementsAre("n2"));
  EXPECT_EQ(queue->jobs[2].cpus, 10);
  EXPECT_EQ(queue->jobs[2].user, "eve");
}

// ---- what is hidden

foresight::Foreseen foreseen(const WatchedQueue& queue) {
  foresight::QueueWatch watch;
  watch.see(queue, 1'000'000);
  return watch.foresee({.partition = "", .cpus = 8, .limit = 3600}, {"name9.vm"});
}

TEST(PbsQueue, IsPlayedToTellStarts) {
  const auto queue = read_jobs(
      job("6.vm",
          "    job_state = R\n    exec_host = vm/0*3\n    Resource_List.ncpus = 3\n"
          "    Resource_List.walltime = 02:00:00\n    stime = Sat Nov 21 11:30:00 2026\n") +
      job("9.vm",
          "    job_state = Q\n    Resource_List.ncpus = 8\n"
          "    Resource_List.walltime = 01:00:00\n"));
  ASSERT_TRUE(queue) << queue.error().text;
  const auto told = foreseen(*queue);
  EXPECT_EQ(told.blind, "");
  ASSERT_FALSE(told.next.empty());
  EXPECT_EQ(told.queued.at("name9.vm").back(), 90 * 60) << "when what runs has reached its limit";
  EXPECT_EQ(told.next.back(), 150 * 60);
}

TEST(PbsQueue, BusyNodesOfWhichNoBatchJobIsShownAreSeen) {
  const auto queue = read_jobs("");
  ASSERT_TRUE(queue) << queue.error().text;
  EXPECT_EQ(queue->partitions[0].busy_cpus, 3);
  EXPECT_THAT(foreseen(*queue).blind, HasSubstr("hides others' jobs: 3 of 3 busy cpus"));
}

TEST(PbsQueue, WhereOthersMayWaitUnseenNothingIsTold) {
  std::string server = kServer;
  server.replace(server.find("True"), 4, "False");
  const auto told = [&](const std::string& jobs) {
    return read_queue(answer(0, answered(server + kQueue, kNode, jobs)));
  };
  const auto hidden = told("");
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().text,
            "cannot look at the queue of PBS: it hides others' batch jobs (query_other_jobs of its "
            "server is not True): 1 wait, and 0 are shown");
  EXPECT_TRUE(told(job("1.vm", "    job_state = Q\n"))) << "all that its queues count";
}

// ---- answers that are none

TEST(PbsQueue, HalfAnAnswerIsNone) {
  const std::string whole = answered(kTorque, kTorqueNodes, kTorqueJobs);
  ASSERT_TRUE(read_queue(answer(0, whole)));
  EXPECT_TRUE(read_queue(answer(0, "Welcome!\n" + whole))) << "a banner";
  for (std::size_t length = 0; length < whole.size(); ++length)
    ASSERT_FALSE(read_queue(answer(0, whole.substr(0, length)))) << length;
  const auto said = [](const CommandOutput& output) {
    const auto queue = read_queue(output);
    return queue ? "" : queue.error().text;
  };
  EXPECT_EQ(said(answer(162, "", "qstat: cannot connect to server pbs (errno=15034)\n")),
            "cannot look at the queue of PBS: exit 162: cannot connect to server pbs "
            "(errno=15034)");
  EXPECT_EQ(said(answer(0, "x\n\nhbnodes\n\nhbjobs\nhbfailed\n", "qstat: End of File\n")),
            "cannot look at the queue of PBS: qstat listed no batch jobs: End of File");
  EXPECT_THAT(said({.exit_code = 0, .timed_out = true}), HasSubstr("no answer in time"));
  EXPECT_THAT(said(answer(0, answered(kServer, kNode, ""))), HasSubstr("names no queue"));
  EXPECT_THAT(said(answer(0, answered(kServer + kQueue, "", ""))), HasSubstr("no node that is up"));
  EXPECT_THAT(said(answer(0, answered(kServer + kQueue, kNode, "Job Id: 1.vm\n"))),
              HasSubstr("no state of batch job 1.vm"));
  EXPECT_THAT(said(answer(0, answered(kServer + kQueue, kNode,
                                      job("1", "    job_state = R\n    exec_host = vm/0\n")))),
              HasSubstr("says of no batch job since when it runs"));
}

/// Whatever else it may say.
void expect_sane(const WatchedQueue& queue) {
  EXPECT_LE(queue.partitions.size(), 500U);
  for (const WatchedPartition& partition : queue.partitions) {
    EXPECT_TRUE(partition.cpus >= 0 && partition.cpus <= 1e9) << partition.cpus;
    EXPECT_TRUE(partition.busy_cpus >= 0 && partition.busy_cpus <= partition.cpus)
        << partition.busy_cpus;
  }
  for (const WatchedJob& each : queue.jobs) {
    EXPECT_TRUE(each.cpus >= 0 && each.cpus <= 1e9) << each.cpus;
    EXPECT_TRUE(each.limit >= 0s && each.limit <= 24h * 365) << each.limit.count();
    EXPECT_TRUE(each.elapsed >= 0s && each.elapsed <= 24h * 365) << each.elapsed.count();
  }
}

/// With `number` in place of each `#`.
std::string filled(std::string text, const std::string& number) {
  for (auto at = text.find('#'); at != std::string::npos; at = text.find('#', at + number.size()))
    text.replace(at, 1, number);
  return text;
}

TEST(PbsQueue, NumbersThatCannotBeAreCut) {
  const std::string queues = kServer +
                             "Queue: workq\n    Priority = #\n    state_count = Queued:# Held:#\n"
                             "    started = True\n\n";
  const std::string nodes = kNode +
                            "n2\n     state = free\n     resources_available.ncpus = #\n"
                            "     resources_assigned.ncpus = #\n\n"
                            "n3\n     state = free\n     np = #\n     jobs = 0-#/1.vm,#-3/2.vm\n\n";
  const std::string amounts =
      "    exec_host = vm/0-#+vm/#-#+vm/0*#+vm/#\n    stime = #\n    Priority = #\n"
      "    eligible_time = #\n    array_state_count = Queued:#\n    Resource_List.ncpus = #\n"
      "    Resource_List.nodect = #\n    Resource_List.procs = #\n"
      "    Resource_List.nodes = #:ppn=#\n    Resource_List.place = excl\n"
      "    Resource_List.walltime = #\n    resources_used.walltime = #\n";
  const std::string jobs =
      job("1", "    job_state = R\n    resources_used.walltime = 1\n" + amounts) +
      job("2", "    job_state = Q\n" + amounts);
  for (const char* number :
       {"9223372036854775807", "-9223372036854775808", "99999999999999999999", "-1", "1e9", "nan",
        "", "0x7f", "1000000000:1000000000:1000000000:1000000000", "\x80\xff"}) {
    const auto queue = read_queue(answer(0, filled(answered(queues, nodes, jobs), number)));
    ASSERT_TRUE(queue) << number << ": " << queue.error().text;
    expect_sane(*queue);
  }
  const auto queue =
      read_jobs(job("1", "    job_state = R\n    stime = Thu Jan  1 00:00:00 1970\n"));
  ASSERT_TRUE(queue);
  expect_sane(*queue);
}

TEST(PbsQueue, DamagedAnswersAreReadWithoutHarm) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  const std::vector<std::string> pieces{"\n",          std::string(1, '\0') + "\x01\xff",
                                        " = ",         "-",
                                        "*",           "+",
                                        "99999999999", "\n\t",
                                        "[",           "hbend\n",
                                        "\nJob Id: ",  "\nQueue: ",
                                        ":",           "@"};
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 == 0 ? answered(kTorque, kTorqueNodes, kTorqueJobs)
                                      : answered(kServer + kQueue, kNode, recorded("mixed.txt"));
    for (std::size_t count = 1 + below(8); count > 0; --count) {
      const auto at = below(text.size());
      if (below(2) == 0) {
        text.insert(at, pieces[below(pieces.size())]);
      } else {
        text.erase(at, below(60));
      }
    }
    const auto queue = read_queue(answer(0, text));
    if (queue) {
      expect_sane(*queue);
    } else {
      EXPECT_THAT(queue.error().text, StartsWith("cannot look at the queue of PBS: "));
    }
  }
}

// ---- as sh asks for it

class PbsLook : public PbsShell {
 protected:
  void SetUp() override {
    PbsShell::SetUp();
    scripted("date", "echo 'Sat Nov 21 08:08:29 2026'");
  }
  /// One that answers with files, and writes down what it was asked.
  void server(const std::string& queues, const std::string& nodes, const std::string& jobs) const {
    file("server", queues);
    file("nodes", nodes);
    file("jobs", jobs);
    file("qstat.more", R"sh(
echo "qstat $*" >>asked
case $* in
'-Q -f') grep -v -A9 '^Server' server ;;
'-B -f') sed -n '/^Server/,$p' server ;;
'-f'|'-t -f') cat jobs; exit "$(cat code 2>/dev/null || echo 0)" ;;
'-x -f '*) [ ! -e no_history ] || exit 0; cat members ;;
'-f 6.vm') ;;
'-f '*) cat members ;;
*) echo "qstat: $*" >&2; exit 2 ;;
esac
)sh");
    scripted("pbsnodes", "[ \"$*\" = -a ] || exit 1; cat nodes");
    scripted("qselect", "[ \"$*\" = '-u alice' ] && cat own");
  }
  CommandOutput looked(const std::string& config = "") const { return run(watch_command(config)); }
  std::string asked() const {
    std::ifstream file(root_ / "asked");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

std::string member(int index) {
  const std::string i = std::to_string(index);
  return "Job Id: 12[" + i +
         "].vm\n    Job_Name = hb-arr\n    Job_Owner = alice@vm\n"
         "    resources_used.walltime = 00:00:00\n    job_state = R\n    queue = workq\n"
         "    exec_host = vm/" +
         std::to_string(index + 4) +
         "\n    Resource_List.ncpus = 1\n"
         "    Resource_List.walltime = 00:02:00\n    stime = Sat Nov 21 08:07:29 2026\n"
         "    Variable_List = PBS_O_HOME=/home/alice,PBS_O_LANG=C.UTF-8,\n"
         "\tPBS_O_LOGNAME=alice\n    array_id = 12[].vm\n    array_index = " +
         i + "\n\n";
}

TEST_F(PbsLook, OpenPbsShowsRealRecordsInAFewLinesEach) {
  is_openpbs();
  server(kQueue + kServer, kNode, recorded("mixed.txt"));
  file("members", member(0) + member(1) + member(2));
  file("own", "6.vm\n");
  std::ofstream(root_ / "qstat.more", std::ios::app) << "[ \"$*\" != '-f 6.vm' ] || cat own_job\n";
  file("own_job", "Job Id: 6.vm\n    Job_Name = hb-ok\n    Variable_List = A=\n    Job_Name = x\n");
  const auto output = looked();
  ASSERT_EQ(output.exit_code, 0) << output.standard_error;
  EXPECT_THAT(output.standard_output, Not(HasSubstr("hb-arr"))) << "another's name";
  EXPECT_THAT(output.standard_output, Not(HasSubstr("PBS_O_")));
  EXPECT_EQ(asked(),
            "qstat -Q -f\nqstat -B -f\nqstat -f 6.vm\n"
            "qstat -x -f 12[0].vm 12[1].vm 12[2].vm\nqstat -f\n");
  const auto queue = read_queue(output);
  ASSERT_TRUE(queue) << queue.error().text;
  ASSERT_THAT(numbers(queue->jobs),
              ElementsAre("12[0].vm", "12[1].vm", "12[2].vm", "6.vm", "8.vm", "11.vm", "10.vm"))
      << "what is held cannot matter";
  const WatchedJob& first = numbered(queue->jobs, "6.vm");
  EXPECT_EQ(first.name, "hb-ok");
  EXPECT_EQ(first.user, "alice");
  EXPECT_EQ(first.elapsed, 1min);
  EXPECT_EQ(first.limit, 5min);
  EXPECT_EQ(first.cpus, 1);
  EXPECT_THAT(first.nodes, ElementsAre("vm"));
  const WatchedJob& large = numbered(queue->jobs, "10.vm");
  EXPECT_EQ(large.cpus, 64);
  EXPECT_FALSE(large.may_start) << "its comment is continued in another line";
  EXPECT_EQ(numbered(queue->jobs, "12[1].vm").elapsed, 1min);
  ASSERT_EQ(queue->partitions.size(), 1U);
  EXPECT_TRUE(queue->partitions[0].is_default);
  EXPECT_EQ(queue->partitions[0].cpus, 8);
  EXPECT_EQ(queue->partitions[0].busy_cpus, 3);
}

TEST_F(PbsLook, AServerWithoutHistoryIsAskedOnceMore) {
  is_openpbs();
  server(kQueue + kServer, kNode, "");
  file("members", member(0));
  file("no_history", "");
  const auto queue = read_queue(looked());
  ASSERT_TRUE(queue) << queue.error().text;
  EXPECT_THAT(numbers(queue->jobs), ElementsAre("12[0].vm"));
}

TEST_F(PbsLook, TorqueIsAskedForTheMembersOfArrays) {
  is_torque();
  server(kTorque, kTorqueNodes, kTorqueJobs + job("15.head", "    job_state = C\n", "batch"));
  const auto output = looked();
  EXPECT_EQ(asked(), "qstat -Q -f\nqstat -B -f\nqstat -u alice\nqstat -t -f\n");
  EXPECT_THAT(output.standard_output, Not(HasSubstr("rectime")));
  EXPECT_THAT(output.standard_output, Not(HasSubstr("15.head")));
  const auto queue = read_queue(output);
  ASSERT_TRUE(queue) << queue.error().text;
  EXPECT_EQ(named(*queue, "batch").busy_cpus, 8);
  EXPECT_THAT(numbers(queue->jobs), ElementsAre("11.head", "12[1].head", "14.head"));
}

TEST_F(PbsLook, SlurmsLookAlikesTellTooLittle) {
  is_slurm();
  const auto queue = read_queue(looked());
  ASSERT_FALSE(queue);
  EXPECT_EQ(queue.error().text,
            "cannot look at the queue of PBS: exit 1: SLURM's qstat does not say since when a "
            "batch job runs; the scheduler 'slurm' can look at this queue");
  const auto answered_itself = read_queue(answer(
      0, answered("Queue:\tcpu\n\tqueue_type = Execution\n\tenabled = yes\n\tstarted = yes\n\n",
                  "n1\n    state = job-exclusive\n    np = 4\n    ntype = cluster\n\n",
                  "Job Id:\t7\n\tJob_Name = x\n\tJob_Owner = ann@head\n\tjob_state = R\n\tqueue = "
                  "cpu\n\tqtime = Sat Nov 21 11:00:00 2026\n\tmtime = Sat Nov 21 11:00:00 2026\n"
                  "\texec_host = n1/4\n\tResource_List.ncpus = 4\n\n")));
  ASSERT_FALSE(answered_itself);
  EXPECT_THAT(answered_itself.error().text, HasSubstr("says of no batch job since when it runs"));
}

TEST_F(PbsLook, AFailureOfAnyPartIsOneOfTheLook) {
  is_openpbs();
  server(kQueue + kServer, kNode, recorded("mixed.txt"));
  file("members", "");
  EXPECT_TRUE(read_queue(looked()));
  file("code", "162");
  EXPECT_FALSE(read_queue(looked())) << "what was listed before it failed is not all";
  file("code", "0");
  scripted("pbsnodes", "echo 'pbsnodes: Unauthorized Request' >&2; exit 1");
  const auto queue = read_queue(looked());
  ASSERT_FALSE(queue);
  EXPECT_EQ(queue.error().text, "cannot look at the queue of PBS: exit 1: Unauthorized Request");
  scripted("pbsnodes", "cat nodes");
  file("qstat.more", "echo 'qstat: cannot connect to server' >&2; exit 162");
  EXPECT_FALSE(read_queue(looked()));
}

TEST_F(PbsLook, PrintsABoundedAmountWhateverIsInTheQueue) {
  is_openpbs();
  std::string jobs;
  for (int i = 0; i < 7000; ++i) jobs += job(std::to_string(i), "    job_state = Q\n\n");
  for (int i = 0; i < 7000; ++i) jobs += job("h" + std::to_string(i), "    job_state = H\n\n");
  const std::string environment =
      "    Variable_List = A=1\nhbend\nhbcode 0\nhbfailed\n    x = 1,\n\t" +
      std::string(1'000'000, 'x') + "\n";
  std::string hosts = "    exec_host = vm/0";
  for (int i = 0; i < 20'000; ++i) hosts += "+\n\tn" + std::to_string(i) + "/0*4";
  jobs += job("r", environment + "    job_state = R\n    stime = Sat Nov 21 08:07:29 2026\n" +
                       hosts + "\n\n");
  server(kQueue + kServer, kNode, jobs);
  file("members", "");
  const auto output = looked();
  EXPECT_LT(output.standard_output.size(), 1'000'000U);
  const auto queue = read_queue(output);
  ASSERT_TRUE(queue) << queue.error().text;
  EXPECT_EQ(queue->jobs.size(), 5001U);
  EXPECT_EQ(queue->jobs[0].number, "r");
  EXPECT_EQ(queue->jobs[0].elapsed, 1min);
}

}  // namespace
}  // namespace hpcbatch
