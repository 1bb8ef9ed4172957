// Work that a program waits for ends once that program has been away for too long.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

constexpr const char* kUnread =
    "cancelled, because the program that waited for it has been away for 60 s; *";

class ReadersTest : public EngineTest {
 protected:
  void submit_for(const std::string& reader, const New& task) {
    happens(TasksSubmitted{RequestId{77}, "me", "", 0, {task}, {}, ReadBy{reader, 60s}});
  }
};

TEST_F(ReadersTest, WithItsReaderAwayAllOfItIsCancelled) {
  given_pilot();
  submit_for("one", New().array(1, 9).cpus(2));
  submit(New().cpus(2));
  starts("2.1-2");
  forget_what_was_asked();
  after(59s);
  forget_what_was_asked();
  expect_state("2.3", TaskState::Waiting);
  after(1s);
  expect({"tell 2", "kill 2.1 at A0", "kill 2.2 at A0"});
  expect_ended("2.3", Failure::Cancelled, kUnread);
  ends("2.1", Failure::ToolSignal);
  ends("2.2", Failure::ToolSignal);
  expect_ended("2.1", Failure::Cancelled, kUnread);
  expect_state("3", TaskState::Waiting);
  EXPECT_EQ(engine_->tasks().arrays().size(), 1U) << "what another submitted goes on";
  forget_what_was_asked();
}

TEST_F(ReadersTest, WhileItIsThereNothingEnds) {
  happens(ReaderHeard{"one", true});
  submit_for("one", New().array(1, 9).cpus(2));
  after(1h);
  expect_state("1.3", TaskState::Waiting);
  // A second connection before the first is gone.
  happens(ReaderHeard{"one", true});
  happens(ReaderHeard{"one", false});
  after(1h);
  expect_state("1.3", TaskState::Waiting);
  happens(ReaderHeard{"one", false});
  after(59s);
  happens(ReaderHeard{"one", true});
  after(1h);
  expect_state("1.3", TaskState::Waiting);
  happens(ReaderHeard{"one", false});
  after(60s);
  expect_ended("1.3", Failure::Cancelled, kUnread);
  forget_what_was_asked();
}

TEST_F(ReadersTest, ARestartOfTheEngineBeginsEachLeaseAnew) {
  submit_for("one", New().array(1, 9).cpus(2));
  happens(ReaderHeard{"one", true});
  after(50s);
  restarts();
  after(50s);
  expect_state("1.3", TaskState::Waiting);
  happens(ReaderHeard{"one", true});
  after(1h);
  expect_state("1.3", TaskState::Waiting);
  restarts();
  after(60s);
  expect_ended("1.3", Failure::Cancelled, kUnread);
  forget_what_was_asked();
}

TEST_F(ReadersTest, OneThatIsForgottenMayComeAgain) {
  submit_for("one", New());
  after(61s);
  happens(ReaderHeard{"one", false});
  happens(ReaderHeard{"one", true});
  submit_for("one", New());
  after(1h);
  expect_state("2", TaskState::Waiting);
  forget_what_was_asked();
}

}  // namespace
}  // namespace hpcbatch
