// A GPU of a pilot's that is set aside: what is left is used, and no retry of the user's is.
#include "engine_test.hpp"

namespace hpcbatch {
namespace {

class GpuTroubleTest : public EngineTest {
 protected:
  GpuTroubleTest() {
    Shape shape = cpu_shape("gpu");
    shape.capacity.set("gpus/a100", Amount::of(2));
    given({site_of("cluster", {shape})});
    given_pilot(1h, capacity(2));
    submit(New().array(1, 4).gpus("gpus/a100", 1));
    starts("2.1-2");
    forget_what_was_asked();
  }

  static Resources capacity(std::int64_t gpus) {
    Resources resources = cpu_shape().capacity;
    resources.set("gpus/a100", Amount::of(gpus));
    return resources;
  }
  void one_breaks() {
    happens(GpusSeen{pilot("A0"), capacity(1), {{0, "GPU-aa", "A100", 0, "", "", "Xid 79"}, {}}});
    ends("2.1", Failure::GpuError);
    expect({"acknowledge 2.1 to A0"});
  }
};

TEST_F(GpuTroubleTest, WhatRanOnItRunsAgainOnTheOthers) {
  one_breaks();
  ASSERT_EQ(saved_.failed_attempts().size(), 1U);
  EXPECT_FALSE(saved_.failed_attempts()[0].charged);
  ends("2.2");
  expect({"tell 2", "acknowledge 2.2 to A0", "lease 2.1 again (2) to A0"});
}

TEST_F(GpuTroubleTest, ItsNodeIsNotInDoubtForIt) {
  one_breaks();
  EXPECT_TRUE(engine_->avoided_nodes("cluster").empty());
}

TEST_F(GpuTroubleTest, WithALinkThatIsGoneNothingChanges) {
  disconnects("A0");
  happens(GpusSeen{pilot("A0"), capacity(1), {}});
  engine_->check_invariants();
}

}  // namespace
}  // namespace hpcbatch
