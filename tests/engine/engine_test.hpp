// The words in which tests of the engine speak: given / happens / expect.  Time is moved by hand,
// the batch system is a small fake that does what the test says, and what a test does not expect
// fails it.
//
// Allocations are called A, B, C in the order in which they are asked for; pilots A0, A1; tasks 1
// and 2.7.
#pragma once

#include "engine/engine.hpp"
#include "planted/planted.hpp"
#include "saved.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

using namespace std::chrono_literals;

/// What is submitted: one task of one cpu unless it is said otherwise.
struct New : NewArray {
  New();
  New& array(std::uint32_t first, std::uint32_t last);
  New& cpus(double count);
  New& memory(std::int64_t bytes);
  New& gpus(const std::string& kind, std::int64_t count);
  New& time(Duration limit);
  New& nodes(std::uint32_t count);
  New& on(const std::string& site);
  New& not_on(const std::string& site);
  New& files_brought_to(std::vector<std::string> sites, bool of_each = true);
  New& tag(const std::string& name);
  New& urgency(std::int32_t value);
  New& may_fail(std::uint32_t times);
  New& at_once(std::uint32_t count);
  /// More than so many of its tasks may not fail.
  New& give_up_after(std::uint32_t failures, bool ends_running = false);
  New& on_hold();
  New& reads_stream();
  New& served_by(const std::string& service);
  New& submitted_by(TaskId task);
  New& wait_for(const std::string& task, Dependency::Kind kind = Dependency::Kind::Success);
};

/// Four cpus, 16 GB, an hour for tasks.
Shape cpu_shape(const std::string& name = "cpu");
Site site_of(const std::string& name, std::vector<Shape> shapes);
/// One that asks for no pilots but those that work needs.
Site patient(Site site);

struct EndAtPilot : AttemptEnd {
  PilotId pilot;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest();
  void TearDown() override;

  // given
  void given(std::vector<Site> sites);
  /// The batch system has accepted each shape before, and A is queued, then running, its pilot A0
  /// registered.
  void given_pilot(Duration left = 1h, Resources capacity = {});

  // happens
  void happens(const Event& event);
  void happens(const EndAtPilot& end) { happens(AttemptsEnded{end.pilot, {end}}); }
  void after(Duration time);
  ArrayId submit(const New& task, const std::string& client = "me");
  /// Work for far more pilots than any limit allows.
  void submit_much();
  void cancel(const std::string& tasks);
  void hold(const std::string& tasks, bool on = true);
  void retry(const std::vector<std::string>& tasks, const NeedsChange& change = {});
  void accepts(const std::string& allocation);
  void refuses(const std::string& allocation, Refusal refusal, const std::string& text = "no");
  void registers(const std::string& pilot, Duration left = 1h, std::vector<HeldAttempt> held = {},
                 Resources capacity = {}, std::uint64_t confirmed_by = 0);
  void disconnects(const std::string& pilot);
  void has_warm(const std::string& pilot, std::vector<std::string> services);
  void starts(const std::string& tasks);
  void ends(const std::string& tasks, Failure failure = Failure::Ok, Duration run = 1s);
  void stages(const std::string& task);
  void gives_back(const std::string& tasks);
  void leaves(const std::string& pilot, const std::string& reason = "idle");
  void reads_outbox(const std::string& allocation, std::vector<AttemptEnd> results = {});
  void restarts();
  /// The same with another configuration.
  void restarts_with(std::vector<Site> sites);

  // the batch system, as the next poll will show it
  void batch(const std::string& allocation, BatchState state, const std::string& reason = "");
  void batch_ended(const std::string& allocation, EndCause cause);
  void batch_forgot(const std::string& allocation);
  bool polls_succeed_{true};
  bool polls_hang_{false};
  bool cancels_work_{true};

  // expect: each pattern (`*` stands for anything) matches one thing asked for, in order; then
  // nothing is left
  void expect(const std::vector<std::string>& patterns);
  void expect_nothing() { expect({}); }
  void expect_ended(const std::string& task, Failure failure, const std::string& message = "*");
  void expect_state(const std::string& task, TaskState state);
  void expect_explained(const std::string& task, const std::string& pattern);
  void forget_what_was_asked() { asked_.clear(); }
  std::uint32_t polls() const { return polls_; }

  TaskId task(const std::string& name) const;
  AttemptId attempt(const std::string& task_name) const { return attempts_.at(task(task_name)); }
  HeldAttempt held(const std::string& task_name,
                   HeldAttempt::State state = HeldAttempt::State::Running) const;
  EndAtPilot result(const std::string& task_name, Failure failure = Failure::Ok) const;
  AllocationId allocation(const std::string& letter) const;
  PilotId pilot(const std::string& name) const;

  std::string node_{"node1"};  ///< of pilots that register
  Time now_{from_microseconds(1'700'000'000'000'000)};
  std::unique_ptr<Engine> engine_;
  Saved saved_;

 private:
  std::string letter_of(const AllocationId& id) const;
  std::string name_of(const PilotId& id) const {
    return letter_of(id.allocation) + std::to_string(id.rank);
  }
  std::vector<std::string> show(const Action& action);
  void answer_poll(const std::string& site);
  std::vector<TaskId> tasks(const std::string& names) const;

  std::vector<Site> sites_;
  std::vector<std::string> asked_;
  std::vector<AllocationId> letters_;
  std::map<TaskId, AttemptId> attempts_;  // the latest sent
  std::map<TaskId, PilotId> holders_;
  std::map<AllocationId, BatchJob> batch_;
  std::map<AllocationId, std::string> batch_sites_;
  std::uint64_t requests_{0};
  std::uint32_t polls_{0};
};

}  // namespace hpcbatch
