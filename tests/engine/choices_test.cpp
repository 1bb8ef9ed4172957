// Tasks that choose an account or a QOS run in batch jobs of it, and nobody else's do.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class ChoicesTest : public EngineTest {
 protected:
  ChoicesTest() { given(sites()); }
  static std::vector<Site> sites() {
    Site site = site_of("here", {cpu_shape()});
    site.choices.emplace();
    site.choices->try_emplace("account");
    site.choices->emplace("qos", std::vector<std::string>{"long", "short"});
    return {site};
  }
};

TEST_F(ChoicesTest, APilotIsAskedForWithThemAndRunsNothingElse) {
  submit(New().tag("account=lab"));
  expect({"accept 1", "open A: cpu+account=lab of here"});
  accepts("A");
  registers("A0");
  expect({"welcome A0", "lease 1 to A0"});
  submit(New());
  expect({"accept 2", "open B: cpu of here"});
  submit(New().tag("account=other"));
  expect({"accept 3", "open C: cpu+account=other of here"});
  submit(New().tag("account=lab"));
  expect({"accept 4", "lease 4 to A0"});
}

TEST_F(ChoicesTest, WhatMayNotBeChosenIsRefusedWithWhatMay) {
  submit(New().tag("qos=higher"));
  expect({"refuse: never_fits: *qos=higher where tasks may choose long, short*"});
  submit(New().tag("reservation=course"));
  expect({"refuse: never_fits: *the tag reservation=course*"});
  submit(New().tag("account=a").tag("account=b"));
  expect({"refuse: never_fits: *account=a beside another account, and a batch job has one*"});
  submit(New().tag("account=a'b"));
  expect({"refuse: never_fits: *account=a'b, which is no such value*"});
  submit(New().tag("account=lab").cpus(64));
  expect({"refuse: never_fits: *64 cpus where it has 4*"});
}

TEST_F(ChoicesTest, SoManySetsAndNoMore) {
  std::string last;
  for (int i = 0; i < 64; ++i) submit(New().tag("account=a" + std::to_string(i)).on_hold());
  forget_what_was_asked();
  submit(New().tag("account=one-too-many"));
  expect({"refuse: never_fits: *account=one-too-many, and 64 sets of choices are in use there*"});
  submit(New().tag("account=a7"));
  expect({"accept 65", "open A: cpu+account=a7 of here"});
}

TEST_F(ChoicesTest, SetsThatNobodyUsesMakeRoom) {
  for (int i = 0; i < 64; ++i) submit(New().tag("account=a" + std::to_string(i)).on_hold());
  forget_what_was_asked();
  cancel("8");
  forget_what_was_asked();
  submit(New().tag("account=another"));
  expect({"accept 65", "open A: cpu+account=another of here"});
  submit(New().tag("account=one-too-many"));
  expect({"refuse: never_fits: *account=one-too-many*"});
  accepts("A");
  cancel("65");
  forget_what_was_asked();
  submit(New().tag("account=one-too-many"));
  expect({"refuse: never_fits: *account=one-too-many*"});  // A is still to come
}

TEST_F(ChoicesTest, TasksThatComeTogetherKeepEachOthersSets) {
  for (int i = 0; i < 63; ++i) submit(New().tag("account=a" + std::to_string(i)).on_hold());
  cancel("8");
  forget_what_was_asked();
  happens(TasksSubmitted{
      RequestId{9999}, "me", "", 0, {New().tag("account=x"), New().tag("account=y")}, {}});
  expect({"accept 64*", "open A: cpu+account=x of here", "open B: cpu+account=y of here"});
}

TEST_F(ChoicesTest, WhatIsRefusedUsesUpNone) {
  for (int i = 0; i < 70; ++i) {
    submit(New().tag("account=a" + std::to_string(i)).cpus(64));
    expect({"refuse: never_fits: *64 cpus where it has 4*"});
  }
  EXPECT_EQ(engine_->sites().sites()[0].shapes.size(), 1U);
  submit(New().tag("account=good"));
  expect({"accept 1", "open A: cpu+account=good of here"});
}

TEST_F(ChoicesTest, ARestartKnowsThem) {
  submit(New().tag("account=lab"));
  expect({"accept 1", "open A: cpu+account=lab of here"});
  accepts("A");
  submit(New().tag("account=other").on_hold());
  expect({"accept 2"});
  restarts();
  registers("A0");
  expect({"welcome A0", "lease 1 to A0"});
  submit(New());
  expect({"accept 3", "open B: cpu of here"});
  hold("2", false);
  expect({"*", "open C: cpu+account=other of here"});
}

TEST_F(ChoicesTest, APilotKeepsItsAccountThoughTheConfigurationHasChanged) {
  submit(New().tag("account=lab"));
  expect({"accept 1", "open A: cpu+account=lab of here"});
  accepts("A");
  restarts_with({site_of("here", {cpu_shape("renamed")})});
  registers("A0");
  submit(New());
  expect({"welcome A0", "accept 2", "open B: renamed of here"});
}

TEST_F(ChoicesTest, WhatIsRefusedForGoodEndsTheTasksThatChoseItAndNobodyElses) {
  submit(New().array(1, 20).tag("account=nobody"));
  submit(New().tag("account=nobody").on_hold());
  submit(New().tag("account=lab"));
  forget_what_was_asked();
  refuses("A", Refusal::Permanent, "Invalid account");
  for (const char* name : {"1.1", "1.20"})
    expect_ended(name, Failure::NeverFits,
                 "*here refuses account=nobody: Invalid account*resume here*");
  expect_state("2", TaskState::Held);
  expect_state("3", TaskState::Waiting);
  forget_what_was_asked();
  submit(New());
  expect({"accept 4", "open *: cpu of here"});
  submit(New().tag("account=nobody"));
  expect_ended("5", Failure::NeverFits, "*Invalid account*");
  forget_what_was_asked();
  after(61s);
  submit(New().tag("account=nobody"));
  expect({"accept 6", "open *: cpu+account=nobody of here"});
}

TEST_F(ChoicesTest, ABatchJobThatCanNeverStartEndsThemToo) {
  submit(New().tag("qos=short"));
  accepts("A");
  batch("A", BatchState::NeverStarts, "InvalidQOS");
  after(16s);
  expect_ended("1", Failure::NeverFits,
               "*refuses qos=short: batch job 100A could never start: InvalidQOS*");
  forget_what_was_asked();
}

TEST_F(ChoicesTest, WhatRefusesForNowLetsThemWait) {
  submit(New().tag("account=lab"));
  refuses("A", Refusal::Transient, "try again later");
  forget_what_was_asked();
  after(11s);
  refuses("B", Refusal::Limit, "MaxJobCount");
  forget_what_was_asked();
  expect_state("1", TaskState::Waiting);
}

TEST_F(ChoicesTest, AnotherSiteThatTakesTheChoiceIsAskedFirst) {
  Site there = sites()[0];
  there.name = "there";
  given({sites()[0], there});
  submit(New().tag("account=lab"));
  refuses("A", Refusal::Permanent, "Invalid account");
  expect({"accept 1", "open A: cpu+account=lab of here", "forget A",
          "open B: cpu+account=lab of there"});
  refuses("B", Refusal::Permanent, "Invalid account");
  expect_ended("1", Failure::NeverFits, "*");
  forget_what_was_asked();
}

TEST_F(ChoicesTest, WhatMayNotBeChosenAnyMoreStillCountsForItsShape) {
  Shape one = cpu_shape();
  one.max_running = 1;
  Site site = sites()[0];
  site.shapes = {one};
  given({site});
  submit(New().tag("account=lab"));
  expect({"accept 1", "open A: cpu+account=lab of here"});
  accepts("A");
  registers("A0");
  forget_what_was_asked();
  site.choices->clear();
  restarts_with({site});
  registers("A0", 1h, {}, {});
  forget_what_was_asked();
  submit(New());
  expect({"accept 2"});
}

}  // namespace
}  // namespace hpcbatch
