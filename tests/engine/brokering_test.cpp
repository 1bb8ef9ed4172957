// On which device a task runs that leaves it open.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class BrokeringTest : public EngineTest {
 protected:
  BrokeringTest() {
    Shape shape = cpu_shape("gpu");
    shape.capacity = capacity();
    given({patient(site_of("cluster", {shape}))});
    given_pilot(10h, capacity());
  }

  static Resources capacity() {
    Resources resources = cpu_shape().capacity;
    resources.set("gpus/k80", Amount::of(1));
    resources.set("gpus/v100", Amount::of(1));
    return resources;
  }
  static New of_kind(const std::string& kind, const std::string& gpus = "gpus") {
    New task = New().gpus(gpus, 1).cpus(0.1);
    task.needs.device.edit().kind = kind;
    return task;
  }
  static New either(double cpus_alone) {
    New task = of_kind("either");
    Resources alone;
    alone.set(kCpus, Amount::of_fraction(cpus_alone));
    task.needs.device.edit().instead.push_back(alone);
    return task;
  }
  std::string queue(const New& task, const std::string& client = "me") {
    return std::to_string(submit(task, client).value);
  }
  void ran(const std::string& kind, const std::string& device, Duration run) {
    const std::string id = queue(of_kind(kind, device));
    starts(id);
    ends(id, Failure::Ok, run);
  }
  void given_speeds(const std::string& kind, Duration on_v100, Duration on_k80) {
    for (int i = 0; i < 3; ++i) {
      ran(kind, "gpus/v100", on_v100);
      ran(kind, "gpus/k80", on_k80);
    }
    forget_what_was_asked();
  }
  /// What it runs on; empty: it waits.
  std::string device(const std::string& name) const {
    const Lease* lease = engine_->pilots().lease(task(name));
    return lease ? std::string(device_of(lease->granted)) : "";
  }
  void after_each_second(int seconds) {
    for (int i = 0; i < seconds; ++i) after(1s);
  }
};

TEST_F(BrokeringTest, WhatGainsMostGetsTheFastDevice) {
  given_speeds("even", 60s, 60s);
  given_speeds("steep", 10s, 600s);
  const std::string busy = queue(of_kind("other", "gpus/v100"));
  const std::string busy_too = queue(of_kind("other", "gpus/k80"));
  const std::string even = queue(of_kind("even").array(1, 8));
  const std::string steep = queue(of_kind("steep").array(1, 8));
  starts(busy);
  starts(busy_too);
  ends(busy, Failure::Ok, 60s);
  ends(busy_too, Failure::Ok, 60s);
  EXPECT_EQ(device(steep + ".1"), "gpus/v100");
  EXPECT_EQ(device(even + ".1"), "gpus/k80");
  forget_what_was_asked();
}

TEST_F(BrokeringTest, TheLastOneWaitsForTheFastDeviceWhereItEndsSoonerThere) {
  given_speeds("steep", 10s, 600s);
  const std::string first = queue(of_kind("steep"));
  EXPECT_EQ(device(first), "gpus/v100");
  starts(first);
  const std::string second = queue(of_kind("steep"));
  EXPECT_EQ(device(second), "");
  ends(first, Failure::Ok, 10s);
  EXPECT_EQ(device(second), "gpus/v100");
  forget_what_was_asked();
}

TEST_F(BrokeringTest, ItWaitsNoLongerThanTheSlowDeviceWouldTake) {
  given_speeds("steep", 10s, 30s);
  const std::string first = queue(of_kind("steep"));
  starts(first);
  const std::string second = queue(of_kind("steep"));
  EXPECT_EQ(device(second), "");
  // The first one takes longer than any did.
  after_each_second(45);
  EXPECT_EQ(device(second), "gpus/k80");
  forget_what_was_asked();
}

TEST_F(BrokeringTest, WithNothingKnownWhatIsFreeIsUsed) {
  const std::string two = queue(of_kind("new").array(1, 2));
  EXPECT_NE(device(two + ".1"), "");
  EXPECT_NE(device(two + ".2"), "");
  EXPECT_NE(device(two + ".1"), device(two + ".2"));
  forget_what_was_asked();
}

TEST_F(BrokeringTest, EachDeviceIsTriedWhateverItCosts) {
  given_speeds("steep", 10s, 600s);
  const std::string tried = queue(of_kind("new").array(1, 60));
  const std::string known = queue(of_kind("steep").urgency(0).array(1, 60));
  // The three on each, and then as the prices say.
  std::map<std::string, int> on;
  for (int i = 1; i <= 60; ++i) {
    const std::string name = tried + "." + std::to_string(i);
    if (device(name).empty()) break;
    ++on[device(name)];
    starts(name);
    ends(name, Failure::Ok, 10s);
  }
  EXPECT_GE(on["gpus/v100"], 3);
  EXPECT_GE(on["gpus/k80"], 3);
  cancel(tried);
  cancel(known);
  forget_what_was_asked();
}

TEST_F(BrokeringTest, TheFirstWayIsTakenAndAnotherWhereThatIsFull) {
  const std::string three = queue(either(1.5).array(1, 3));
  EXPECT_EQ(device(three + ".1"), "gpus/k80");
  EXPECT_EQ(device(three + ".2"), "gpus/v100");
  EXPECT_EQ(device(three + ".3"), "cpus");
  EXPECT_EQ(engine_->pilots().lease(task(three + ".3"))->granted.get(kCpus),
            Amount::of_fraction(1.5));
  forget_what_was_asked();
}

TEST_F(BrokeringTest, WaysFitWhereAnyOfThemDoes) {
  New task = either(1);
  task.needs.amounts.set("gpus", Amount::of(100));
  EXPECT_EQ(device(queue(task)), "cpus");
  task.needs.device.edit().instead.front().set(kCpus, Amount::of(1000));
  const auto misfit = engine_->misfit_of(task);
  ASSERT_TRUE(misfit);
  EXPECT_NE(misfit->find("100 gpus of any kind"), std::string::npos) << *misfit;
  EXPECT_NE(misfit->find(" or 1000 cpus"), std::string::npos) << *misfit;
  forget_what_was_asked();
}

TEST_F(BrokeringTest, BetweenClientsTurnsDecide) {
  given_speeds("steep", 10s, 20s);
  const std::string mine = queue(of_kind("steep").array(1, 40), "me");
  const std::string yours = queue(of_kind("steep").array(1, 40), "you");
  int my_turns = 0, your_turns = 0;
  for (int round = 0; round < 40; ++round) {
    for (const std::string& array : {mine, yours}) {
      for (int i = 1; i <= 40; ++i) {
        const std::string name = array + "." + std::to_string(i);
        const std::string on = device(name);
        if (on.empty()) continue;
        starts(name);
        ends(name, Failure::Ok, on == "gpus/v100" ? 10s : 20s);
        ++(array == mine ? my_turns : your_turns);
      }
    }
  }
  EXPECT_EQ(my_turns, 40);
  EXPECT_EQ(your_turns, 40);
  forget_what_was_asked();
}

TEST_F(BrokeringTest, RoomThatWasKeptIsTakenOnWhateverDevice) {
  given_speeds("steep", 10s, 600s);
  // One that asks for two GPUs is passed over by others until room is kept for it.
  New both = of_kind("steep");
  both.needs.amounts.set("gpus", {});
  both.needs.amounts.set("gpus/k80", Amount::of(1));
  both.needs.amounts.set(kCpus, Amount::of(4));
  both.needs.device.edit().instead.push_back(both.needs.amounts);
  both.needs.device.edit().instead.back().set("gpus/k80", {});
  both.needs.device.edit().instead.back().set("gpus/v100", Amount::of(1));
  std::vector<std::string> arrays{queue(New().cpus(1).array(1, 4))};
  const std::string large = queue(both);
  arrays.push_back(queue(New().cpus(1).array(1, 400)));
  const auto end_one = [&] {
    for (const std::string& array : arrays) {
      for (int i = 1; i <= (array == arrays.front() ? 4 : 400); ++i) {
        const std::string name = array + "." + std::to_string(i);
        if (device(name).empty()) continue;
        starts(name);
        ends(name, Failure::Ok, 1s);
        return;
      }
    }
  };
  for (int round = 0; round < 200 && device(large).empty(); ++round) {
    end_one();
    after(1s);
  }
  EXPECT_NE(device(large), "");
  cancel(arrays.back());
  forget_what_was_asked();
}

TEST_F(BrokeringTest, WhatAPilotBringsIsKnownAtOnce) {
  given_speeds("steep", 10s, 600s);
  leaves("A0");
  const std::string pair = queue(of_kind("steep").array(1, 2));
  forget_what_was_asked();
  accepts("B");
  registers("B0", 10h, {}, capacity());
  EXPECT_EQ(device(pair + ".1"), "gpus/v100");
  EXPECT_EQ(device(pair + ".2"), "") << "it ends sooner there although it waits";
  forget_what_was_asked();
}

}  // namespace
}  // namespace hpcbatch
