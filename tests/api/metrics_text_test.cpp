#include "api/answers/metrics_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace hpcbatch {
namespace {

constexpr std::array kTwo{1.0, 10.0};

TEST(MetricsText, AFamilyHasItsHelpItsTypeAndItsSamples) {
  MetricsText text;
  text.gauge("a", "Things.");
  text.add(3, {{"state", "new"}, {"site", "x"}});
  text.counter("b_total", "Other things.", 1e15);
  EXPECT_EQ(text.text(),
            "# HELP a Things.\n# TYPE a gauge\na{state=\"new\",site=\"x\"} 3\n"
            "# HELP b_total Other things.\n# TYPE b_total counter\nb_total 1000000000000000\n");
}

TEST(MetricsText, WhatALabelHoldsStaysInIt) {
  MetricsText text;
  text.gauge("a", "One\nline, one \\.");
  text.add(0, {{"site", "\"} 1\nb{x=\"\\"}});
  text.add(0, {{"site", "\xff"}});
  EXPECT_EQ(text.text(),
            "# HELP a One\\nline, one \\\\.\n# TYPE a gauge\n"
            "a{site=\"\\\"} 1\\nb{x=\\\"\\\\\"} 0\na{site=\"\uFFFD\"} 0\n");
}

TEST(MetricsText, BucketsOfAHistogramAreCumulative) {
  Histogram<kTwo> histogram;
  for (const double value : {0.5, 1.0, 2.0, 11.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    histogram.add(value);
  MetricsText text;
  text.histogram("t", "Times.");
  text.add(histogram, {{"site", "x"}});
  EXPECT_EQ(text.text(),
            "# HELP t Times.\n# TYPE t histogram\n"
            "t_bucket{site=\"x\",le=\"1\"} 3\nt_bucket{site=\"x\",le=\"10\"} 4\n"
            "t_bucket{site=\"x\",le=\"+Inf\"} 5\nt_sum{site=\"x\"} 14.5\nt_count{site=\"x\"} 5\n");
}

TEST(MetricsText, NumbersAreWrittenAsTheFormatHasThem) {
  MetricsText text;
  text.gauge("a", "A.");
  for (const double value : {std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), 0.25, 9007199254740991.0})
    text.add(value);
  EXPECT_THAT(text.text(), testing::EndsWith("a +Inf\na -Inf\na 0.25\na 9007199254740991\n"));
}

}  // namespace
}  // namespace hpcbatch
