// Tasks as traces of OpenTelemetry, in OTLP's JSON.  Pure.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace hpcbatch {

/// Of which engine the tasks are: its name makes traces of two engines different.
struct TraceSource {
  std::string host, home, version;
};

/// One request of OTLP (opentelemetry-proto, ExportTraceServiceRequest) of tasks as GET /v1/tasks tells
/// them; those that have not ended are left out.  `attempts` of a task are told where it has the key.
/// The same task makes the same ids each time.
boost::json::object otlp_traces(const boost::json::array& tasks, const TraceSource& source);

}  // namespace hpcbatch
