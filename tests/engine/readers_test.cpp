// Work that a program waits for ends once that program has been away for too long.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

constexpr const char* kUnread =
    "cancelled, because the program that waited for it has been away for 60 s; *";

class ReadersTest : public EngineTest {
 protected:
  void submit_for(const std::optional<std::string>& reader, const New& task,
                  const std::string& key = "") {
    const auto by = reader ? std::optional(ReadBy{*reader, 60s}) : std::nullopt;
    happens(TasksSubmitted{RequestId{77}, "me", key, 0, {task}, {}, by});
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

TEST_F(ReadersTest, ASubmitThatIsSentAgainIsForWhoSendsIt) {
  happens(ReaderHeard{"one", true});
  happens(ReaderHeard{"other", true});
  submit_for("one", New(), "key");
  submit_for("other", New(), "key");
  happens(ReaderHeard{"one", false});
  after(1h);
  expect_state("1", TaskState::Waiting);
  restarts();
  happens(ReaderHeard{"other", true});
  after(1h);
  expect_state("1", TaskState::Waiting);
  happens(ReaderHeard{"other", false});
  after(60s);
  expect_ended("1", Failure::Cancelled, kUnread);
  forget_what_was_asked();
}

TEST_F(ReadersTest, ASubmitThatIsSentAgainWithoutAReaderGoesOn) {
  submit_for("one", New(), "key");
  submit_for(std::nullopt, New(), "key");
  after(1h);
  expect_state("1", TaskState::Waiting);
  restarts();
  after(1h);
  expect_state("1", TaskState::Waiting);
  forget_what_was_asked();
}

TEST_F(ReadersTest, WhatIsRetriedGoesOnWithoutItsReader) {
  submit_for("one", New());
  after(60s);
  expect_ended("1", Failure::Cancelled, kUnread);
  retry({"1"});
  after(1h);
  expect_state("1", TaskState::Waiting);
  restarts();
  after(1h);
  expect_state("1", TaskState::Waiting);
  forget_what_was_asked();
}

TEST_F(ReadersTest, WhatIsRetriedWhileItsReaderIsAwayGoesOn) {
  given_pilot();
  submit_for("one", New().array(1, 9).cpus(2));
  starts("2.1-2");
  ends("2.1", Failure::ToolFailed);
  retry({"2.1"});
  after(1h);
  expect_state("2.9", TaskState::Waiting);
  forget_what_was_asked();
}

TEST_F(ReadersTest, WhatIsRetriedAndThenCancelledIsSoByItsUser) {
  given_pilot();
  submit_for("one", New().array(1, 3).cpus(2));
  starts("2.1-2");
  after(60s);
  expect_ended("2.3", Failure::Cancelled, kUnread);
  ends("2.1", Failure::ToolSignal);
  expect_ended("2.1", Failure::Cancelled, kUnread);
  retry({"2.1"});
  starts("2.1");
  cancel("2.1");
  ends("2.1", Failure::ToolSignal);
  expect_ended("2.1", Failure::Cancelled, "cancelled by user");
  forget_what_was_asked();
}

TEST_F(ReadersTest, WhatWaitsForAnotherIsCancelledItself) {
  submit_for("one", New());
  submit_for("two", New());
  submit_for("one", New().wait_for("1"));
  after(60s);
  for (const char* task : {"1", "2", "3"}) expect_ended(task, Failure::Cancelled, kUnread);
  forget_what_was_asked();
}

TEST_F(ReadersTest, ReadersAreForgottenWithTheirArrays) {
  using Ids = std::pair<ArrayId, ArrayId>;
  Readers readers;
  readers.reads({"one", 60s}, ArrayId{1}, 5, now_);
  readers.reads({"one", 60s}, ArrayId{6}, 1, now_);
  EXPECT_EQ(readers.arrays(), std::vector<Ids>({{ArrayId{1}, ArrayId{6}}}));
  EXPECT_TRUE(readers.forget(ArrayId{3}, ArrayId{3}));
  EXPECT_FALSE(readers.forget(ArrayId{3}, ArrayId{3}));
  EXPECT_EQ(readers.arrays(),
            std::vector<Ids>({{ArrayId{1}, ArrayId{2}}, {ArrayId{4}, ArrayId{6}}}));
  readers.reads({"other", 60s}, ArrayId{2}, 3, now_ + 1s);
  EXPECT_EQ(readers.arrays(),
            std::vector<Ids>(
                {{ArrayId{1}, ArrayId{1}}, {ArrayId{2}, ArrayId{4}}, {ArrayId{5}, ArrayId{6}}}));
  const auto unread = readers.take_unread(now_ + 60s);
  ASSERT_EQ(unread.size(), 2U);
  EXPECT_EQ(unread[1].first, ArrayId{5});
  EXPECT_EQ(readers.next_wake(), now_ + 61s);
  EXPECT_TRUE(readers.forget(ArrayId{1}, ArrayId{9}));
  EXPECT_EQ(readers.next_wake(), std::nullopt);
}

}  // namespace
}  // namespace hpcbatch
