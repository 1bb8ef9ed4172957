// What a person is told of a task that waits, runs, or cannot be seen (texts of single cases are
// tested where they arise).
#include "engine_test.hpp"

#include <gmock/gmock.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;
using testing::Not;

class ExplainTest : public EngineTest {};

std::string join(const std::optional<Explanation>& why) {
  if (!why) return "";
  std::string text = why->text;
  for (const std::string& detail : why->details) text += "; " + detail;
  return text;
}

TEST_F(ExplainTest, EveryWaitHasAReason) {
  submit(New().cpus(4).time(10min));
  expect_explained(
      "1",
      "ready, 0 tasks with the same needs ahead; no pilot has room; allocation * on here is "
      "submitting since 0s");
  accepts("A");
  after(90s);
  expect_explained("1", "ready*allocation * on here, batch job 100A, is queued since 1m30s");
  batch("A", BatchState::Queued, "Priority");
  after(15s);
  expect_explained("1", "*(Priority)");
  batch("A", BatchState::Running);
  after(15s);
  expect_explained("1", "*is running since*and its pilot has not registered yet");
  registers("A0");
  expect_explained("1", "waits at pilot *.0 on node1 for room*");
  starts("1");
  after(61s);
  expect_explained("1", "runs at pilot *.0 on node1 for 1m1s*");
  submit(New().cpus(4));
  submit(New().cpus(4));
  expect_explained(
      "3",
      "ready, 1 task with the same needs ahead; no pilot has room*1 pilot could run it once "
      "there is room*");
  ends("1");
  EXPECT_FALSE(engine_->explain(task("1"), now_)) << "what has ended is the store's to explain";
  EXPECT_FALSE(engine_->explain(task("77"), now_));
  EXPECT_FALSE(engine_->explain(task("3.5"), now_));
  forget_what_was_asked();
}

TEST_F(ExplainTest, SaysThatNoSiteIsLeft) {
  given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})});
  submit(New().not_on("there"));
  restarts_with({site_of("there", {cpu_shape()})});
  forget_what_was_asked();
  expect_explained("1",
                   "ready*no site is left in the configuration that may run it: it needs 1 cpu, "
                   "not on there*");
}

TEST_F(ExplainTest, SaysWhichTasksAreWaitedFor) {
  submit(New().array(1, 3));
  submit(New().wait_for("1").wait_for("1.2", Dependency::Kind::AnyEnd));
  submit(New().array(1, 3).wait_for("1", Dependency::Kind::EachSuccess));
  forget_what_was_asked();
  expect_explained("2", "waits for other tasks; for the success of 1; for the end of 1.2");
  expect_explained("3.1", "waits for other tasks; for the task with the same index of 1");
}

TEST_F(ExplainTest, SaysThatTheCpusAreHeldByTasksThatMayWaitForTheirOwn) {
  given_pilot();
  submit(New().array(1, 2).cpus(2).time(10min));
  starts("2.1-2");
  submit(New().cpus(1).time(10min).submitted_by(task("2.1")));
  forget_what_was_asked();
  const auto words = [this] { return join(engine_->explain(task("3"), now_)); };
  EXPECT_THAT(words(), Not(HasSubstr("submitted tasks"))) << "2.2 gives room when it ends";
  submit(New().cpus(1).time(10min).submitted_by(task("2.2")));
  submit(New().cpus(1).time(10min));
  forget_what_was_asked();
  EXPECT_THAT(words(),
              HasSubstr("all 4 cpus of site here are held by 2 tasks; all of them submitted tasks "
                        "that have not ended, among them 2.1, which submitted this one. If they "
                        "wait for these, no room becomes free: end some of them ('hpcbatch cancel "
                        "2.1'), give the site more cpus, or submit the inner tasks to another "
                        "site"));
  expect_explained("5", "*all of them submitted tasks that have not ended. If they wait*");
  restarts();
  registers("A0", 1h, {held("2.1"), held("2.2")});
  forget_what_was_asked();
  EXPECT_THAT(words(), HasSubstr("among them 2.1"));
  cancel("4");
  forget_what_was_asked();
  EXPECT_THAT(words(), Not(HasSubstr("submitted tasks")));
}

}  // namespace
}  // namespace hpcbatch
