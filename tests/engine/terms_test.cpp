// Arrays that are to be run alike share what says so, for as long as one of them is there.
#include "engine/state/terms.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

NewArray array(int cpus, int priority = 0) {
  NewArray array{.indices = IndexRange{0, 0}, .needs = {}, .priority = priority};
  array.needs.amounts.set(kCpus, Amount::of(cpus));
  return array;
}

class TermsTest : public testing::Test {
 protected:
  ReadyQueue queue_{[](const Needs&) { return std::vector<bool>{true}; }};
  TermsPool pool_{queue_};
};

TEST_F(TermsTest, AreSharedByThoseThatSayTheSame) {
  const auto one = pool_.of(array(1));
  NewArray other = array(1);
  other.indices = IndexRange{1, 9};
  other.held = true;
  other.after.push_back({ArrayId{1}, std::nullopt});
  EXPECT_EQ(pool_.of(other), one);
  EXPECT_NE(pool_.of(array(2)), one);
  EXPECT_NE(pool_.of(array(1, 5)), one);
  EXPECT_EQ(pool_.of(array(1, 5))->in_class, one->in_class) << "priority is no need";
  EXPECT_EQ(pool_.size(), 3U);
  NewArray inner = array(1);
  inner.within = TaskId{ArrayId{7}, 2};
  EXPECT_NE(pool_.of(inner), one);
  EXPECT_EQ(pool_.of(inner)->in_class, one->in_class) << "who submitted it is no need";
}

TEST_F(TermsTest, AreForgottenByTheLast) {
  auto one = pool_.of(array(1));
  auto same = pool_.of(array(1));
  const ClassId in_class = one->in_class;
  pool_.release(std::move(one));
  EXPECT_EQ(pool_.size(), 1U);
  pool_.release(std::move(same));
  EXPECT_EQ(pool_.size(), 0U);
  EXPECT_EQ(pool_.of(array(1))->in_class, in_class);
}

}  // namespace
}  // namespace hpcbatch
