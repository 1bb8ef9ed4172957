#include "replay/episodes.hpp"

#include "../foresight/played_trace.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::foresight {
namespace {

Episodes some(const Trace& trace) {
  Episodes how;
  how.cluster = how.model = sixteen();
  how.pilot_nodes = 4;
  how.from = 14 * kDay;
  how.until = std::min(trace.jobs.back().job.submitted - 5 * kDay, 18 * kDay);
  how.every = 12 * kHour;
  how.draws.count = 7;
  how.policies = {Policy::Reactive, Policy::Mean, Policy::LookAhead, Policy::AskAhead};
  return how;
}

TEST(EpisodesTest, AskingAheadCutsTheGaps) {
  const Trace trace = played(sixteen(), 3000, 20 * kMinute);
  const auto found = play_episodes(trace, some(trace), [](auto, auto) { return true; });
  ASSERT_EQ(found.policies.size(), 4U);
  const PolicyResult& reactive = found.policies[0];
  const PolicyResult& ahead = found.policies[3];
  ASSERT_EQ(reactive.gaps.size(), 9U);
  EXPECT_EQ(found.bounds.size(), 9U);
  EXPECT_GT(reactive.interruption(), 0.5);
  EXPECT_EQ(reactive.overlap(), 0);
  EXPECT_LT(ahead.interruption(), reactive.interruption() / 2);
  EXPECT_GE(ahead.uninterrupted(), reactive.uninterrupted());
}

TEST(EpisodesTest, TheSameResultsEachTime) {
  const Trace trace = played(sixteen(), 3000, 20 * kMinute);
  const auto one = play_episodes(trace, some(trace), [](auto, auto) { return true; });
  const auto other = play_episodes(trace, some(trace), [](auto, auto) { return true; });
  for (std::size_t i = 0; i < one.policies.size(); ++i)
    EXPECT_EQ(one.policies[i].gaps, other.policies[i].gaps);
}

TEST(EpisodesTest, WhatComesLaterChangesNoDecision) {
  Trace trace = played(sixteen(), 3000, 20 * kMinute);
  Episodes how = some(trace);
  how.until = how.from;
  const auto before = play_episodes(trace, how, [](auto, auto) { return true; });
  // Accounting of what ends after the episode has begun is not known in it.
  for (TracedJob& job : trace.jobs) {
    if (job.job.submitted > how.from + 5 * kDay) job.job.runs = 0;
  }
  const auto after = play_episodes(trace, how, [](auto, auto) { return true; });
  for (std::size_t i = 0; i < before.policies.size(); ++i)
    EXPECT_EQ(before.policies[i].gaps, after.policies[i].gaps);
}

TEST(EpisodesTest, ItCanBeLeft) {
  const Trace trace = played(sixteen(), 3000, 20 * kMinute);
  const auto found = play_episodes(trace, some(trace), [](auto, auto) { return false; });
  EXPECT_LT(found.bounds.size(), 9U);
}

}  // namespace
}  // namespace hpcbatch::foresight
