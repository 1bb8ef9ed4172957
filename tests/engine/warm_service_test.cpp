// Tasks that share a service go to a pilot that has it, and wait for that one no longer than it
// takes to start the service elsewhere.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class WarmServiceTest : public EngineTest {
 protected:
  /// A0 and B0, of four cpus each; the service lives at B0.
  void given_one_of_two_warm(Duration left = 1h) {
    given_pilot();
    submit(New().array(1, 2000).time(30min).on_hold());
    hold("2", false);
    cancel("2");
    accepts("B");
    registers("B0", left);
    for (const auto& [id, lease] :
         std::map(engine_->pilots().leases().begin(), engine_->pilots().leases().end())) {
      gives_back(to_string(id));
    }
    has_warm("B0", {"preloaded"});
    forget_what_was_asked();
  }
};

TEST_F(WarmServiceTest, ThePilotThatHasItGoesFirst) {
  given_one_of_two_warm();
  submit(New().array(1, 4).served_by("preloaded"));
  expect({"accept 3", "lease 3.1-4 to B0"});
}

TEST_F(WarmServiceTest, WhereNobodyHasItAnyPilotTakesItAtOnce) {
  given_one_of_two_warm();
  submit(New().array(1, 8).served_by("another"));
  expect({"accept 3", "lease 3.1-4 to A0", "lease 3.5-8 to B0"});
}

TEST_F(WarmServiceTest, WhatNeedsNoneGoesToTheOthers) {
  given_one_of_two_warm();
  has_warm("B0", {});
  has_warm("A0", {"preloaded"});
  submit(New());
  expect({"accept 3", "lease 3 to B0"});
}

TEST_F(WarmServiceTest, HavingWaitedOnceIsForgottenWhereThereIsRoom) {
  given_one_of_two_warm();
  submit(New().array(1, 5).served_by("preloaded"));
  ends("3.1");
  expect({"accept 3", "lease 3.1-4 to B0", "tell 3", "acknowledge 3.1 to B0", "lease 3.5 to B0"});
  ends("3.2");
  after(1s);
  forget_what_was_asked();
  submit(New().served_by("preloaded"));
  expect({"accept 4", "lease 4 to B0"});
}

TEST_F(WarmServiceTest, WhatTheWarmPilotCannotTakeWaitsAWhile) {
  given_one_of_two_warm();
  submit(New().array(1, 6).served_by("preloaded"));
  expect({"accept 3", "lease 3.1-4 to B0"});
  after(499ms);
  expect_nothing();
  after(1ms);
  expect({"lease 3.5-6 to A0"});
}

TEST_F(WarmServiceTest, AfterTheWaitAnyPilotTakesWhatNoWarmOneHasRoomFor) {
  given_one_of_two_warm();
  submit(New().array(1, 100).served_by("preloaded"));
  after(500ms);
  expect({"accept 3", "lease 3.1-4 to B0", "lease 3.5-8 to A0"});
  after(20s);
  ends("3.5", Failure::Ok, 20s);
  expect({"tell 3", "acknowledge 3.5 to A0", "lease 3.9 to A0"});
}

TEST_F(WarmServiceTest, OthersDoNotWaitMeanwhile) {
  given_one_of_two_warm();
  submit(New().array(1, 6).served_by("preloaded"));
  submit(New().array(1, 3));
  expect({"accept 3", "lease 3.1-4 to B0", "accept 4", "lease 4.1-3 to A0"});
  after(500ms);
  expect({"lease 3.5 to A0"});
}

TEST_F(WarmServiceTest, WhatIsLessUrgentDoesNotGoFirst) {
  given_one_of_two_warm();
  submit(New().array(1, 6).urgency(1).served_by("preloaded"));
  expect({"accept 3", "lease 3.1-4 to B0"});
  submit(New());
  expect({"accept 4", "lease 3.5-6 to A0", "lease 4 to A0"});
}

TEST_F(WarmServiceTest, APilotThatComesForItIsOfUse) {
  given_pilot();
  has_warm("A0", {"preloaded"});
  submit(New().array(1, 2000).time(30min).served_by("preloaded"));
  accepts("B");
  forget_what_was_asked();
  registers("B0");
  expect({"welcome B0", "open *"});  // more of its kind are asked for as before
  after(500ms);
  expect({"lease 2.5-8 to B0"});
}

TEST_F(WarmServiceTest, ForAPilotThatCannotRunItNobodyWaits) {
  given_one_of_two_warm(10min);
  submit(New().time(20min).served_by("preloaded"));
  expect({"accept 3", "lease 3 to A0"});
  leaves("B0");
  forget_what_was_asked();
  submit(New().served_by("preloaded"));
  expect({"accept 4", "lease 4 to A0"});
}

TEST_F(WarmServiceTest, ANewLinkSaysAnewWhatIsWarm) {
  given_one_of_two_warm();
  disconnects("B0");
  registers("B0");
  forget_what_was_asked();
  submit(New().served_by("preloaded"));
  expect({"accept 3", "lease 3 to A0"});
}

TEST_F(WarmServiceTest, WhatWaitsAtTheWarmPilotIsNotCalledBackWhileItIsSoonThere) {
  given_one_of_two_warm();
  submit(New().served_by("preloaded"));
  ends("3", Failure::Ok, 10ms);
  forget_what_was_asked();
  submit(New().array(1, 44).served_by("preloaded"));
  expect({"accept 4", "lease 4.1-44 to B0"});
  after(499ms);
  expect_nothing();
  // They take longer than the last ones did: then another may start the service.
  after(1ms);
  expect({"recall 20 from B0"});
  gives_back("4.25-44");
  expect({"lease 4.25-44 to A0"});
}

TEST_F(WarmServiceTest, WhereItsStartTakesLongOthersHaveTheRoomAndItsTasksWaitWithoutALease) {
  given_pilot();
  submit(New().array(1, 6).served_by("preloaded"));
  expect({"accept 2", "lease 2.1-4 to A0"});
  happens(ServicesWarm{pilot("A0"), {}, {"preloaded"}});
  gives_back("2.1-4");
  expect_nothing();
  expect_explained("2.1", "*its service preloaded is starting on pilot *.0 on node1*");
  submit(New().array(1, 3));
  expect({"accept 3", "lease 3.1-3 to A0"});
  // What is served by another may have it as well.
  submit(New().served_by("another"));
  expect({"accept 4", "lease 4 to A0"});
  ends("3.1-2");
  expect({"tell 3", "acknowledge 3.1 to A0", "tell 3", "acknowledge 3.2 to A0"});
  has_warm("A0", {"preloaded"});
  expect({"lease 2.1-2 to A0"});
}

TEST_F(WarmServiceTest, WhoHasItGoesOnWhileItStartsElsewhere) {
  given_one_of_two_warm();
  happens(ServicesWarm{pilot("A0"), {}, {"preloaded"}});
  submit(New().array(1, 6).served_by("preloaded"));
  expect({"accept 3", "lease 3.1-4 to B0"});
  after(1s);
  expect_nothing();
  ends("3.1");
  expect({"tell 3", "acknowledge 3.1 to B0", "lease 3.5-6 to B0"});
}

TEST_F(WarmServiceTest, ANewLinkKnowsOfNoStart) {
  given_pilot();
  happens(ServicesWarm{pilot("A0"), {}, {"preloaded"}});
  disconnects("A0");
  registers("A0");
  forget_what_was_asked();
  submit(New().served_by("preloaded"));
  expect({"accept 2", "lease 2 to A0"});
}

TEST_F(WarmServiceTest, WhatRunsBehindATaskIsForeseen) {
  given_pilot();
  submit(New());
  submit(New().served_by("preloaded").wait_for("2", Dependency::Kind::AnyEnd));
  forget_what_was_asked();
  EXPECT_EQ(engine_->served_after(ArrayId{2}), ArrayId{3});
  EXPECT_EQ(engine_->served_after(ArrayId{3}), std::nullopt);
}

TEST_F(WarmServiceTest, OneTaskBehindThousandsIsNotForeseenAtEachOfTheirPilots) {
  given_pilot();
  submit(New().array(1, 2000));
  submit(New().served_by("preloaded").wait_for("2", Dependency::Kind::AnyEnd));
  forget_what_was_asked();
  EXPECT_EQ(engine_->served_after(ArrayId{2}), std::nullopt);
}

}  // namespace
}  // namespace hpcbatch
