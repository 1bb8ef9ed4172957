// What a batch system refuses is asked for again ever more slowly.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class RefusalTest : public EngineTest {};

TEST_F(RefusalTest, ARefusalIsAskedAgainAfterABackOffThatDoubles) {
  submit(New());
  refuses("A", Refusal::Transient, "rate limit");
  expect({"accept 1", "open A: *", "forget A"});
  expect_explained("1", "*shape cpu of here is not asked for during the next 10s: *rate limit*");
  after(9s);
  expect_nothing();
  after(2s);
  expect({"open B: *"});
  refuses("B", Refusal::Transient, "rate limit");
  after(19s);
  expect({"forget B"});
  after(2s);
  expect({"open C: *"});
  for (int i = 0; i < 12; ++i) {
    refuses(std::string(1, static_cast<char>('C' + i)), Refusal::Transient);
    after(11min);
    expect({"forget *", "open *"});
  }
}

TEST_F(RefusalTest, ALimitIsRespectedForAMinuteAPermanentRefusalForAnHour) {
  submit(New());
  refuses("A", Refusal::Limit, "MaxJobCount");
  forget_what_was_asked();
  after(59s);
  expect_nothing();
  after(2s);
  expect({"open B: *"});
  refuses("B", Refusal::Permanent, "invalid partition");
  expect({"forget B"});
  after(59min);
  expect_explained("1", "*invalid partition*");
  expect_nothing();
}

TEST_F(RefusalTest, ManyRefusalsAtOnceAreOneFailure) {
  submit_much();
  accepts("A");
  forget_what_was_asked();
  for (const char* letter : {"B", "C", "D", "E", "F", "G", "H"})
    refuses(letter, Refusal::Limit, "MaxJobCount");
  expect({"forget *", "forget *", "forget *", "forget *", "forget *", "forget *", "forget *"});
  after(61s);
  expect(
      {"open I: *", "open J: *", "open K: *", "open L: *", "open M: *", "open N: *", "open O: *"});
}

TEST_F(RefusalTest, TheGoodEndOfAnEarlierOneMakesRoomForTheNext) {
  submit_much();
  accepts("A");
  batch("A", BatchState::Running);
  registers("A0");
  after(1s);
  for (const char* letter : {"B", "C", "D", "E", "F", "G", "H", "I"})
    refuses(letter, Refusal::Limit, "MaxJobCount");
  batch_ended("A", EndCause::Timeout);
  forget_what_was_asked();
  after(16s);
  EXPECT_GT(engine_->sites().allocations().size(), 1U) << "not only after the pause of a minute";
  forget_what_was_asked();
}

TEST_F(RefusalTest, AnotherSiteIsAskedWhileOneBacksOff) {
  given({site_of("here", {cpu_shape()}), site_of("there", {cpu_shape()})});
  submit(New());
  refuses("A", Refusal::Limit);
  expect({"accept 1", "open A: cpu of here", "forget A", "open B: cpu of there"});
}

}  // namespace
}  // namespace hpcbatch
