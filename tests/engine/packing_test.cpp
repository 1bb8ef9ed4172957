// How full pilots are kept by tasks over several nodes beside small ones, and how fairly: played in
// virtual time, with pilots that start what has room there.
#include "engine_test.hpp"

#include <array>
#include <queue>
#include <random>

namespace hpcbatch {
namespace {

double in_seconds(Duration time) {
  return static_cast<double>(time.count()) / 1e6;
}

class PackingTest : public EngineTest {
 protected:
  void SetUp() override {
    Shape shape = cpu_shape("wide");
    shape.nodes = 4;
    shape.walltime = 6h;
    given({patient(site_of("here", {shape}))});
    submit(New().cpus(0.1));
    accepts("A");
    for (int rank = 0; rank < 4; ++rank) registers("A" + std::to_string(rank), 6h);
    ends("1");
    forget_what_was_asked();
    begin_ = now_;
  }

  /// Tasks of the array run for so long.
  void add(const New& task, Duration run) {
    const ArrayId id = submit(task);
    runs_[id] = run;
    added_[id] = {task.needs.nodes, static_cast<int>(task.needs.amounts.get(kCpus).value()),
                  static_cast<std::uint32_t>(task.indices.size()), run};
  }

  /// Until all have ended.
  void play() {
    start_new();
    while (!ends_.empty()) {
      const Time at = ends_.top().first;
      const TaskId next = ends_.top().second;
      ends_.pop();
      after(at - now_);
      start_new();
      now_ = at;
      ends(to_string(next), Failure::Ok, runs_.at(next.array));
      forget_what_was_asked();
      start_new();
      if (ends_.empty() && engine_->tasks().queue().size() != 0) {
        after(30s);
        start_new();
      }
    }
    ASSERT_EQ(engine_->tasks().queue().size(), 0U) << "nothing runs, and something waits";
  }

  /// By how much the latest task began later than it would if none ever went before an older one.
  double latest() const {
    double most = 0;
    std::multimap<Time, std::pair<std::size_t, int>> ends;  // which node has how many cpus back
    std::array<int, 4> free{4, 4, 4, 4};
    Time at = begin_;
    for (const auto& [id, task] : added_) {
      Time last{};
      for (std::uint32_t i = 0; i < task.tasks; ++i) {
        std::array<std::size_t, 4> order{0, 1, 2, 3};
        while (true) {
          std::stable_sort(order.begin(), order.end(),
                           [&](std::size_t x, std::size_t y) { return free.at(x) > free.at(y); });
          if (free.at(order.at(task.nodes - 1)) >= task.cpus) break;
          at = std::max(at, ends.begin()->first);
          free.at(ends.begin()->second.first) += ends.begin()->second.second;
          ends.erase(ends.begin());
        }
        for (std::uint32_t node = 0; node < task.nodes; ++node) {
          free.at(order.at(node)) -= task.cpus;
          ends.insert({at + task.run, {order.at(node), task.cpus}});
        }
        last = at;
      }
      most = std::max(most, in_seconds(started_.at(id) - last));
    }
    return most;
  }
  void expect_used(double least, double most_late) {
    const double used = used_ / (16 * in_seconds(now_ - begin_));
    EXPECT_GE(used, least) << "in " << in_seconds(now_ - begin_) << " s";
    EXPECT_LE(latest(), most_late);
  }

  Time begin_;

 private:
  void start_new() {
    std::vector<TaskId> fresh;
    for (const auto& [id, lease] : engine_->pilots().leases()) {
      if (lease.counted && lease.state == Lease::State::Sent) fresh.push_back(id);
    }
    std::sort(fresh.begin(), fresh.end());
    for (const TaskId id : fresh) {
      starts(to_string(id));
      const Lease& lease = *engine_->pilots().lease(id);
      const Duration run = runs_.at(id.array);
      ends_.push({now_ + run, id});
      started_[id.array] = now_;
      used_ += in_seconds(run) * static_cast<double>(1 + lease.members.get().size()) *
               static_cast<double>(lease.granted.get(kCpus).ticks) /
               static_cast<double>(Amount::of(1).ticks);
    }
  }

  struct Added {
    std::uint32_t nodes;
    int cpus;
    std::uint32_t tasks;
    Duration run;
  };
  std::map<ArrayId, Added> added_;
  std::map<ArrayId, Duration> runs_;
  std::map<ArrayId, Time> started_;
  std::priority_queue<std::pair<Time, TaskId>, std::vector<std::pair<Time, TaskId>>, std::greater<>>
      ends_;
  double used_{0};
};

class Mix {
 public:
  int between(int least, int most) {
    return least + static_cast<int>(draw_() % static_cast<unsigned>(most - least + 1));
  }
  Duration run(int least, int most) { return 1ms * between(least, most); }
  /// Over 2 to 4 nodes in turn.
  New wide() {
    return New()
        .nodes(static_cast<std::uint32_t>(2 + number_++ % 3))
        .cpus(between(1, 4))
        .time(1min);
  }

 private:
  std::mt19937 draw_{1};  // NOLINT(cert-msc51-cpp): the same ones in each run
  int number_{0};
};

TEST_F(PackingTest, InTurnsWithSmallOnes) {
  Mix mix;
  for (int batch = 0; batch < 20; ++batch) {
    for (int i = 0; i < 10; ++i) add(mix.wide(), mix.run(2500, 3500));
    add(New().array(1, 100).time(1min), mix.run(600, 2000));
  }
  play();
  expect_used(0.9, 10);
}

TEST_F(PackingTest, BehindSmallOnes) {
  Mix mix;
  add(New().array(1, 2000).time(1min), mix.run(600, 2000));
  for (int i = 0; i < 200; ++i) add(mix.wide(), mix.run(2500, 3500));
  play();
  expect_used(0.85, 20);
}

TEST_F(PackingTest, BeforeSmallOnes) {
  Mix mix;
  for (int i = 0; i < 200; ++i) add(mix.wide(), mix.run(2500, 3500));
  add(New().array(1, 2000).time(1min), mix.run(600, 2000));
  play();
  expect_used(0.93, 15);
}

TEST_F(PackingTest, ShortOnesFillWhatLongOnesLeaveBeforeWholeNodesAreFree) {
  Mix mix;
  for (int batch = 0; batch < 10; ++batch) {
    for (int i = 0; i < 5; ++i) add(New().array(1, 8).time(10min), mix.run(60'000, 240'000));
    for (int i = 0; i < 3; ++i) add(New().nodes(4).cpus(4).time(10min), mix.run(20'000, 60'000));
    add(New().array(1, 400).time(10s), mix.run(2'000, 8'000));
  }
  play();
  expect_used(0.96, 60);
}

}  // namespace
}  // namespace hpcbatch
