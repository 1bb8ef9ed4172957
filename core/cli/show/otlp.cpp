#include "cli/show/otlp.hpp"

#include "cli/show/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr int kSpanInternal = 1, kStatusOk = 1, kStatusError = 2;

/// FNV-1a, which makes the same ids on every machine.
std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 14695981039346656037ULL ^ seed;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash == 0 ? 1 : hash;  // an id of nothing but zeros is none
}

json::object attribute(std::string_view key, std::string_view value) {
  return {{"key", key}, {"value", json::object{{"stringValue", value}}}};
}

json::object attribute(std::string_view key, std::int64_t value) {
  // 64 bits are texts in the JSON of protobuf.
  return {{"key", key}, {"value", json::object{{"intValue", std::to_string(value)}}}};
}

json::array attributes_of(const json::object& of) {
  json::array attributes;
  for (const auto& [key, name] : {std::pair<const char*, const char*>{"failure", "hpcbatch.result"},
                                  {"node", "host.name"},
                                  {"pilot", "hpcbatch.pilot"},
                                  {"site", "hpcbatch.site"},
                                  {"tool", "hpcbatch.tool"}})
    if (const std::string text = text_at(of, key); !text.empty())
      attributes.push_back(attribute(name, text));
  for (const auto& [key, name] :
       {std::pair<const char*, const char*>{"exit_code", "process.exit.code"},
        {"attempt", "hpcbatch.attempt"}})
    if (of.contains(key))
      attributes.push_back(attribute(name, static_cast<std::int64_t>(number_at(of, key))));
  return attributes;
}

struct Span {
  std::string trace, id, parent, name;
  double begin{0}, end{0};  ///< seconds since 1970
};

std::string nanoseconds(double seconds) {
  return fmt::format("{:.0f}000", std::max(0.0, seconds) * 1e6);
}

json::object to_json(const Span& span, json::array attributes, bool is_failed) {
  json::object object{{"traceId", span.trace},
                      {"spanId", span.id},
                      {"name", span.name},
                      {"kind", kSpanInternal},
                      {"startTimeUnixNano", nanoseconds(span.begin)},
                      // Clocks of nodes differ.
                      {"endTimeUnixNano", nanoseconds(std::max(span.begin, span.end))},
                      {"attributes", std::move(attributes)},
                      {"status", json::object{{"code", is_failed ? kStatusError : kStatusOk}}}};
  if (!span.parent.empty()) object["parentSpanId"] = span.parent;
  return object;
}

void add_task(json::array& spans, const json::object& task, const TraceSource& source) {
  if (!task.contains("ended_at")) return;
  const std::string id = text_at(task, "id");
  const std::uint64_t engine = hash_of(source.host + ":" + source.home, 0);
  const std::string trace = fmt::format("{:016x}{:016x}", engine, hash_of(id, engine));
  const auto span_id = [&](std::string_view part) {
    return fmt::format("{:016x}", hash_of(id + "/" + std::string(part), engine));
  };
  const bool is_failed = text_at(task, "state") == "failed";
  const double submitted = number_at(task, "submitted_at");
  const double ended = number_at(task, "ended_at");
  const std::string root = span_id("task");
  const std::string name = text_at(task, "name"), tool = text_at(task, "tool");
  json::array attributes = attributes_of(task);
  attributes.push_back(attribute("hpcbatch.task", id));
  attributes.push_back(attribute("hpcbatch.state", text_at(task, "state")));
  spans.push_back(to_json({trace, root, "",
                           !name.empty()   ? name
                           : !tool.empty() ? tool
                                           : "task",
                           submitted, ended},
                          std::move(attributes), is_failed));
  json::array attempts;
  if (const auto* earlier = task.if_contains("attempts"); earlier && earlier->is_array())
    attempts = earlier->get_array();
  if (task.contains("started_at")) attempts.push_back(task);
  double ready = submitted;
  for (const json::value& one : attempts) {
    const json::object& attempt = one.as_object();
    if (!attempt.contains("started_at") || !attempt.contains("ended_at")) continue;
    const std::string number = fmt::format("{:.0f}", std::max(1.0, number_at(attempt, "attempt")));
    const double started = number_at(attempt, "started_at");
    spans.push_back(
        to_json({trace, span_id("wait" + number), root, "wait", ready, started}, {}, false));
    spans.push_back(to_json({trace, span_id("attempt" + number), root, "attempt " + number, started,
                             number_at(attempt, "ended_at")},
                            attributes_of(attempt), text_at(attempt, "failure") != "ok"));
    ready = number_at(attempt, "ended_at");
  }
}

}  // namespace

json::object otlp_traces(const json::array& tasks, const TraceSource& source) {
  json::array spans;
  for (const json::value& task : tasks) add_task(spans, task.as_object(), source);
  json::array resource{attribute("service.name", "hpcbatch"),
                       attribute("service.version", source.version),
                       attribute("service.instance.id", source.host + ":" + source.home)};
  json::object scope{{"scope", json::object{{"name", "hpcbatch"}}}, {"spans", std::move(spans)}};
  return {{"resourceSpans",
           json::array{json::object{{"resource", json::object{{"attributes", std::move(resource)}}},
                                    {"scopeSpans", json::array{std::move(scope)}}}}}};
}

}  // namespace hpcbatch
