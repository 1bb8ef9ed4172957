#include "cli/show/otlp.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <gmock/gmock.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

const TraceSource kSource{"login1", "/home/me/hpcbatch", "1.0.0"};

json::array spans_of(const char* tasks, const TraceSource& source = kSource) {
  return otlp_traces(json::parse(tasks).as_array(), source)
      .at("resourceSpans")
      .at(0)
      .at("scopeSpans")
      .at(0)
      .at("spans")
      .as_array();
}

TEST(Otlp, ATaskIsATraceOfItsWaitsAndAttempts) {
  const json::array spans = spans_of(R"([{"id": "1", "state": "failed", "name": "fit", "failure":
      "tool_failed", "exit_code": 3, "submitted_at": 10, "started_at": 30.25, "ended_at": 31,
      "node": "n2", "attempt": 2, "attempts": [{"attempt": 1, "failure": "node_lost",
      "started_at": 12, "ended_at": 20, "node": "n1"}]}])");
  std::vector<std::string> names;
  for (const json::value& span : spans) names.emplace_back(span.at("name").as_string());
  EXPECT_THAT(names, testing::ElementsAre("fit", "wait", "attempt 1", "wait", "attempt 2"));
  EXPECT_EQ(spans[0].at("startTimeUnixNano").as_string(), "10000000000");
  EXPECT_EQ(spans[0].at("endTimeUnixNano").as_string(), "31000000000");
  EXPECT_EQ(spans[0].at("status").at("code").as_int64(), 2);
  EXPECT_EQ(spans[3].at("startTimeUnixNano").as_string(), "20000000000");
  EXPECT_EQ(spans[4].at("startTimeUnixNano").as_string(), "30250000000");
  for (const json::value& span : spans) {
    EXPECT_EQ(span.at("traceId").as_string().size(), 32U);
    EXPECT_EQ(span.at("spanId").as_string().size(), 16U);
    EXPECT_EQ(span.at("traceId"), spans[0].at("traceId"));
    if (&span != &spans[0]) {
      EXPECT_EQ(span.at("parentSpanId"), spans[0].at("spanId"));
    }
  }
}

TEST(Otlp, IdsAreTheSameEachTimeAndOthersForAnotherEngine) {
  const char* task = R"([{"id": "1.2", "state": "done", "submitted_at": 1, "ended_at": 2}])";
  EXPECT_EQ(spans_of(task), spans_of(task));
  EXPECT_NE(spans_of(task).at(0).at("traceId"),
            spans_of(task, {"login2", kSource.home, ""}).at(0).at("traceId"));
}

TEST(Otlp, WhatHasNotEndedIsLeftOutAndClocksThatDifferMakeNoNegativeTimes) {
  EXPECT_TRUE(
      spans_of(R"([{"id": "1", "state": "waiting", "submitted_at": 1, "tasks": 5}])").empty());
  const json::array spans = spans_of(R"([{"id": "1", "state": "done", "failure": "ok",
      "submitted_at": 10, "started_at": 9, "ended_at": 8}])");
  for (const json::value& span : spans)
    EXPECT_GE(span.at("endTimeUnixNano").as_string(), span.at("startTimeUnixNano").as_string());
}

}  // namespace
}  // namespace hpcbatch
